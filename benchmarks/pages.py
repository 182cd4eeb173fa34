"""The parts that pages of results are made of, and writing them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

NOTHING = "—"


def save(folder: Path, name: str, results: dict, page: str) -> None:
    """The results as JSON, and the page that tells about them."""
    (folder / f"{name}.json").write_text(json.dumps(results, indent=2) + "\n")
    (folder / f"{name}.md").write_text(page)


def joined(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part)


def quick_warning(results: dict) -> str:
    warning = "**A quick run: it shows that everything works, and its numbers mean nothing.**\n"
    return warning if results["quick"] else ""


def about(results: dict) -> str:
    machine = results["machine"]
    versions = [f"{name} {v} ({env})" for env, found in results["versions"].items() for name, v in found.items()]
    return (
        f"Measured on {results['date']}, all in one run on one machine: {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gb']} GB of memory, {machine['system']}, "
        f"Python {machine['python']}, {machine['java']}; load before the run "
        f"{machine['load_before']:.1f}. Versions: {', '.join(versions)}.\n"
    )


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def targets(results: dict, rows: Iterable[tuple[str, str, bool | None]]) -> str:
    """A table of targets, what was measured, and whether the target was reached; None means not measured."""
    quick = "too quick to tell" if results["quick"] else ""
    return table(["target", "measured", "verdict"], ([text, found, quick or judged(met)] for text, found, met in rows))


def judged(met: bool | None) -> str:
    return "not measured" if met is None else "met" if met else "**not met**"


def verdict(measured: float | None, met: bool) -> str:
    return judged(None if measured is None else met)


def times(ratio: float | None) -> str:
    if ratio is None:
        return NOTHING
    if ratio < 0.1:
        return f"{ratio:.1g}x"
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2f}x"


def failures(results: dict) -> str:
    lines = [f"- {where}: {error}" for part in results for where, error in errors_in(results[part], part)]
    return "## Failures\n\n" + "\n".join(lines) + "\n" if lines else ""


def errors_in(found: object, where: str) -> list[tuple[str, str]]:
    if not isinstance(found, dict):
        return []
    if "error" in found:
        return [(where, found["error"])]
    return [error for name, inner in found.items() for error in errors_in(inner, f"{where}, {name}")]
