"""Writes `flink-options.md`: each option of Flink, and what becomes of it. The names are recorded from Flink."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.base.options.option import Effect
from penstock.service.options.known_options import FREE, known_options
from penstock.service.options.options_without_effect import reason_without_effect
from penstock.table.options.table_options import ALL

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/flink-options.md"
RECORDED = ROOT / "tests/docs/recorded/flink_options.json"
EFFECT, TRANSLATED, NONE = "effect", "translated", "none"
INTRODUCTION = """\
# The options of Flink

Each option of the configuration references of Flink 1.8 and 2.3 is in one of three classes:

- **effect**: the option has its effect, as [Configuration](configuration.md) or the page that is named says.
- **translated**: the option becomes a setting of Spark, or of the processes that run a job. A setting `spark.*` that
  you give takes precedence.
- **none**: the option cannot have a meaning here, for the reason in the last column. `penstock run`, `penstock server
  start` and a program that is given it say so once, and go on.

`docs/list_flink_options.py` writes this page.

| option | in Flink | class | here |
|---|---|---|---|
"""


def judge(name: str) -> tuple[str, str]:
    """Return the class of an option, and what becomes of it."""
    if name in ALL:
        no_effect = ALL[name].effect in (Effect.IRRELEVANT, Effect.REFUSED)
        return (NONE if no_effect else EFFECT), f"{ALL[name].effect.value}; see [options of queries](sql/options.md)"
    option = known_options().get(name)
    if option is None:
        return _judge_others(name)
    spelling = "" if option.name == name else f"another name of `{option.name}`"
    if option.effect is Effect.TRANSLATED:
        return TRANSLATED, spelling or option.note
    return EFFECT, spelling or _page(name)


def _judge_others(name: str) -> tuple[str, str]:
    if name.startswith("flink.hadoop."):
        return TRANSLATED, "`spark.hadoop.<key>`"
    if name.startswith(FREE):
        return EFFECT, "read by the [reporter](reporters.md)"
    reason = reason_without_effect(name)
    if reason is None:
        raise ValueError(f"the option {name} of Flink is in no class")
    return NONE, reason


def _page(name: str) -> str:
    if name.startswith("sql-"):
        return "see [SQL client and gateway](sql/client.md)"
    if name.startswith("python.logging."):
        return "see [logging](logging.md)"
    return "see [reporters](reporters.md)" if name.endswith(".reporters") else ""


def page() -> str:
    """Return the text of the page."""
    recorded = json.loads(RECORDED.read_text())
    old, new = set(recorded["1.8"]), set(recorded["2.3"])
    rows = []
    for name in sorted(old | new):
        versions = ", ".join(version for version, names in (("1.8", old), ("2.3", new)) if name in names)
        kind, text = judge(name)
        rows.append(f"| `{name}` | {versions} | {kind} | {text} |\n")
    return INTRODUCTION + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
