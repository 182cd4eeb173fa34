"""TUMBLE, HOP, CUMULATE and SESSION in FROM: a table with the windows of its rows."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.table.logical.kinds import WindowKind
from penstock.table.logical.nodes import PROCTIME, ROWTIME, Column, Relation, WindowTable
from penstock.table.logical.rex import InputRef, Literal, Rex
from penstock.table.sql.parse.problems import invalid, not_supported, suggestion
from penstock.table.sql.parse.syntax import Constant, Derived, Descriptor, Invoke, Nested, Node, TableArg
from penstock.table.sql.parse.tokens import Position
from penstock.table.types.data_types import (
    DataType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    TimestampType,
    YearMonthIntervalType,
)

PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
"""The window functions with the names of their arguments. OFFSET is optional."""


def arguments(call: Invoke) -> dict[str, Node]:
    """Return the arguments by name."""
    kind = call.name.upper()
    names = PARAMETERS[kind]
    if not call.names:
        if not len(names) - ("OFFSET" in names) <= len(call.args) <= len(names):
            raise invalid(call.at, f"{kind} takes {_signature(kind)}, not {len(call.args)} arguments")
        return dict(zip(names, call.args, strict=False))
    found: dict[str, Node] = {}
    for name, arg in zip(call.names, call.args, strict=True):
        if name is None or name.upper() not in names:
            raise invalid(arg.at, f"{kind} takes {_signature(kind)}{suggestion((name or '').upper(), names)}")
        found[name.upper()] = arg
    missing = [name for name in names if name not in found and name != "OFFSET"]
    if missing:
        raise invalid(call.at, f"{kind} misses {', '.join(missing)}; it takes {_signature(kind)}")
    return found


def _signature(kind: str) -> str:
    return f"({', '.join(PARAMETERS[kind])})".replace(", OFFSET)", "[, OFFSET])")


def window_table(
    call: Invoke, args: dict[str, Node], relation: Relation, partition: Sequence[Rex], batch: bool
) -> Relation:
    """Return the table with window_start, window_end and window_time after its columns."""
    kind = call.name.upper()
    time = _time_column(kind, args["TIMECOL"], relation, batch)
    spans = {name: _interval_argument(args[name]) for name in PARAMETERS[kind][2:] if name in args}
    size = spans["GAP"] if kind == "SESSION" else spans["SIZE"]
    slide = spans.get("SLIDE", spans.get("STEP", 0))
    if any(spans[name] <= 0 for name in spans if name != "OFFSET"):
        raise invalid(call.at, f"{kind} needs intervals above 0")
    if abs(spans.get("OFFSET", 0)) >= size:
        raise invalid(args["OFFSET"].at, f"{kind} needs an offset that is shorter than the size of its windows")
    keys = tuple(_key(one, args["DATA"]) for one in partition)
    offset = spans.get("OFFSET", 0)
    return WindowTable(_columns(relation, time), relation, WindowKind(kind), time, size, slide, offset, keys)


def _columns(relation: Relation, time: int) -> tuple[Column, ...]:
    attribute = relation.columns[time]
    local = isinstance(attribute.type, LocalZonedTimestampType)
    kind: DataType = LocalZonedTimestampType(3, False) if local else TimestampType(3, False)
    edge = TimestampType(3, False)
    added = (
        Column("window_start", edge),
        Column("window_end", edge),
        Column("window_time", kind, attribute.time or ROWTIME),
    )
    return (*relation.columns, *added)


def _key(rex: Rex, data: Node) -> int:
    if not isinstance(rex, InputRef):
        raise invalid(data.at, "PARTITION BY of a window function takes columns of the table")
    return rex.index


def _time_column(kind: str, descriptor: Node, relation: Relation, batch: bool) -> int:
    if not isinstance(descriptor, Descriptor):
        raise invalid(descriptor.at, f"{kind} takes DESCRIPTOR(column) with the time attribute as second argument")
    name = descriptor.columns[0]
    if name not in relation.names():
        raise invalid(descriptor.at, f"Column '{name}' not found in the table{suggestion(name, relation.names())}")
    index = relation.names().index(name)
    column = relation.columns[index]
    if not isinstance(column.type, TimestampType | LocalZonedTimestampType):
        found = column.type.summary()
        raise invalid(descriptor.at, f"{kind} requires the timecol to be TIMESTAMP or TIMESTAMP_LTZ, but is {found}")
    if not batch and column.time not in {ROWTIME, PROCTIME}:
        raise invalid(
            descriptor.at,
            f"{kind} requires the timecol to be a time attribute, but '{name}' is {column.type.summary()};"
            f" the table needs a WATERMARK FOR `{name}`",
        )
    return index


def _interval_argument(node: Node) -> int:
    if not isinstance(node, Constant):
        raise invalid(node.at, "the sizes of windows are constants, such as INTERVAL '10' MINUTE")
    return interval_of(Literal(node.type, node.value), node.at)


def interval_of(rex: Rex, at: Position) -> int:
    """Return the milliseconds of a constant interval."""
    if isinstance(rex, Literal) and isinstance(rex.type, DayTimeIntervalType):
        return int(rex.value)
    if isinstance(rex.type, YearMonthIntervalType):
        raise not_supported(at, "a window cannot be months or years long; take days")
    raise invalid(at, f"a window has a constant interval, such as INTERVAL '10' MINUTE, not {rex}")


def table_argument(call: Invoke, args: dict[str, Node]) -> TableArg:
    """Return the table argument of a window function."""
    data = args["DATA"]
    if isinstance(data, Nested) and data.kind == "SCALAR":
        return TableArg(data.at, Derived(data.at, data.query))
    if not isinstance(data, TableArg):
        raise invalid(data.at, f"{call.name.upper()} takes TABLE and a name, or a query in brackets, as first argument")
    return data
