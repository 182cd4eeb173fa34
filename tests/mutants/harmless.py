"""Mutants that need no test, since nothing that anybody relies on is different: by module, line and change."""

from __future__ import annotations

from tests.mutants.mutations import Mutant

COUNTED = "len(set(self._live.values()))"
HARMLESS: dict[tuple[str, str, str], str] = {
    (
        "engine/exchange/frames.py",
        "self._timed = False",
        "constant: False  ->  True",
    ): "Writers say whether records have timestamps before they add the first one.",
    (
        "engine/windows/column_panes.py",
        "return self._latest_start(columns) + self._assigner.size - 1 <= watermark",
        "constant: 1  ->  2",
    ): "Rows that seem to be behind are looked at one by one, with the same result.",
    (
        "engine/operators/timers.py",
        "if len(set(self._live.values())) < len(self._live):",
        f"compare: {COUNTED} < len(self._live)  ->  {COUNTED} <= len(self._live)",
    ): "Timers whose order is clear already are counted anew in the same order.",
    (
        "engine/operators/timers.py",
        "if order > began and time <= reached:",
        "compare: order > began  ->  order >= began",
    ): "No timer has the number that `began` has taken.",
    (
        "engine/operators/watermarks.py",
        "if emitted.timestamp is not None or emitted.idle is not None:",
        "compare: emitted.timestamp is not None  ->  emitted.timestamp is None",
    ): "Records leave one by one, with the same timestamps and watermarks.",
    (
        "engine/operators/watermarks.py",
        "if start < len(values):",
        "compare: start < len(values)  ->  start <= len(values)",
    ): "A chunk without records follows, which nobody sees.",
    (
        "engine/operators/sinks/committing.py",
        "self._pending.clear()",
        "delete: self._pending.clear()  ->  pass",
    ): "Nothing is prepared or committed after the end of a job without checkpoints.",
    (
        "engine/job/adaptive.py",
        "seen: int | None = -1",
        "constant: 1  ->  2",
    ): "No number of cores is below 0.",
    (
        "engine/job/restarts.py",
        "moved = int(self._backoff) + self._random.randint(-spread, spread)",
        "compute: int(self._backoff) + self._random.randint(-spread, spread)  ->  "
        "int(self._backoff) - self._random.randint(-spread, spread)",
    ): "The random number is as likely below 0 as above.",
    (
        "engine/job/state_machine.py",
        "self._news = False",
        "constant: False  ->  True",
    ): "The command of the first epoch forgets it, and nothing asks before.",
    (
        "engine/job/state_machine.py",
        "self._started = 0",
        "constant: 0  ->  1",
    ): "The command of the first epoch sets it, and nothing asks before.",
    (
        "spark/links/links.py",
        "network.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)",
        "constant: 1  ->  2",
    ): "Any number but 0 turns the option on.",
}
"""(module below penstock, text of the line, change) and the reason."""

CHOSEN = {
    ("cep/cep_operator.py", "MANY"),
    ("engine/exchange/frames.py", "FRAME_RECORDS"),
    ("engine/exchange/writers.py", "_CACHED_KEYS"),
    ("engine/operators/sinks/committing.py", "AT_THE_END"),
    ("engine/state/tables.py", "PAGE_ENTRIES"),
    ("engine/state/ttl.py", "RECORDS_PER_EPOCH"),
    ("engine/windows/window_operator.py", "_CACHED_WINDOWS"),
    ("spark/links/lifelines.py", "MOST_FRAMES"),
    ("spark/links/links.py", "HANDSHAKE_SECONDS"),
    ("spark/links/links.py", "LONGEST_BODY"),
    ("spark/links/door.py", "MOST_STRANGERS"),
    ("spark/links/links.py", "_AT_ONCE"),
    ("spark/links/links.py", "_BUFFER"),
    ("spark/links/links.py", "_READ_AHEAD"),
    ("spark/links/mesh.py", "MOST_RIDING"),
    ("table/operators/aggregate/group_aggregate.py", "FEW"),
    ("table/operators/rank/top_n.py", "MANY"),
    ("table/operators/window/session_aggregate.py", "FEW"),
}
"""Sizes and times that were chosen, by module and name. A little more or less of them changes no result."""


def reason(module: str, mutant: Mutant) -> str | None:
    """Why a mutant does not matter; None if it does."""
    module = module.removeprefix("penstock/")
    name, sign, _ = mutant.source.partition(" = ")
    if sign and mutant.change.startswith("constant:") and (module, name) in CHOSEN:
        return "The number was chosen, and a little more or less changes no result."
    return HARMLESS.get((module, mutant.source, mutant.change))
