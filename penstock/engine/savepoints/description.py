"""The operators and states of a checkpoint or savepoint, for people. Only the metadata is read."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.base.display.explanation import TextWithPicture
from penstock.base.display.html_parts import Heading, code, failure, grid, head, whole
from penstock.base.display.short_texts import count, size_text
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.store import read_snapshot
from penstock.engine.savepoints.contents import states_of
from penstock.engine.state.snapshot_file import Kind, Name
from penstock.engine.state.state_schema import Schema, schema_text
from penstock.errors import PenstockError


@dataclass(frozen=True)
class StateInfo:
    """A state of an operator, as the metadata describes it."""

    name: str
    kind: str
    """Kind of the state: 'keyed', 'timers', 'list', 'union' or 'broadcast'."""
    window: bool
    """Whether the state belongs to a key and a window, and not to a key alone."""
    type: str
    """Type of the state, such as 'map<STRING, LONG>'. 'pickled' stands for an undeclared type."""
    ttl: bool


@dataclass(frozen=True)
class OperatorInfo:
    """An operator, as the metadata describes it."""

    uid: str
    name: str
    parallelism: int
    max_parallelism: int
    states: list[StateInfo] = field(default_factory=list)


def operators_of(metadata: Metadata) -> list[OperatorInfo]:
    """Return every operator with its states."""
    return [
        OperatorInfo(uid, shape.name, shape.parallelism, shape.max_parallelism, _states(metadata, uid))
        for uid, shape in metadata.shapes.items()
    ]


def _states(metadata: Metadata, uid: str) -> list[StateInfo]:
    return [
        StateInfo(name.name, name.kind.value, name.scope == "window", _type_text(name, schema), has_ttl(schema))
        for name, schema in states_of(metadata, uid).items()
    ]


def describe(metadata: Metadata) -> str:
    """Return the operators and their states as a text table."""
    title = f"{_kind(metadata)} {metadata.number} of job '{metadata.job_name}', {count(len(metadata.slots), 'slot')}"
    return "\n".join([title, *_align([_HEADINGS, *_all_rows(metadata)])])


def path_with_picture(path: str) -> TextWithPicture:
    """Return the path of a savepoint. In a notebook it shows the savepoint's contents."""
    return TextWithPicture(path, lambda: _picture(path))


def _picture(path: str) -> str:
    try:
        return as_html(read_snapshot(path), path)
    except PenstockError as error:
        return whole(code(path), failure(str(error)))


def as_html(metadata: Metadata, path: str) -> str:
    """Return the operators and their states as HTML."""
    taken = datetime.datetime.fromtimestamp(metadata.timestamp / 1000).strftime("%Y-%m-%d %H:%M:%S")
    title = f"{_kind(metadata).capitalize()} {metadata.number} of {metadata.job_name}"
    facts = [taken, size_text(metadata.size()), count(len(metadata.slots), "slot"), metadata.job_id]
    return whole(head(title, *facts), grid([Heading(name) for name in _HEADINGS], _all_rows(metadata)), code(path))


def _kind(metadata: Metadata) -> str:
    return "savepoint" if metadata.savepoint else "checkpoint"


def _all_rows(metadata: Metadata) -> list[tuple[str, ...]]:
    return [row for info in operators_of(metadata) for row in _rows(info)]


_HEADINGS = ("uid", "name", "parallelism", "state", "kind", "of", "type")


def _rows(info: OperatorInfo) -> Iterator[tuple[str, ...]]:
    first = info.uid, info.name, f"{info.parallelism} of {info.max_parallelism}"
    for cells in map(_cells, info.states) if info.states else [("-",) * 4]:
        yield (*first, *cells)
        first = "", "", ""


def _cells(state: StateInfo) -> tuple[str, ...]:
    owner = {"keyed": "key", "timers": "key"}.get(state.kind, "subtask")
    return state.name, state.kind, "key, window" if state.window else owner, state.type


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _type_text(name: Name, schema: Schema) -> str:
    if "kind" in schema:
        return schema_text(schema)
    return "timer" if name.kind is Kind.TIMERS else "unknown"


def has_ttl(schema: Schema) -> bool:
    """Return True if a state has a time to live."""
    return bool(schema.get("ttl", False))
