"""Tables between group_by, window or over_window, and the final select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.base.arguments import check_arguments
from penstock.errors import ValidationException
from penstock.table.api.functions_of_user import of_row
from penstock.table.api.group_windows import GroupWindow as WindowSpec
from penstock.table.api.group_windows import OverWindow
from penstock.table.api.selecting import (
    PROPERTIES,
    Aggregates,
    FieldLike,
    Prepared,
    RowFunction,
    arguments,
    column_index,
    column_name,
    expand_fields,
    fresh_names,
    function_of,
    is_aggregate,
    kind_of,
    name_of,
    replace_parts,
    select_fields,
    user_function,
    without_alias,
)
from penstock.table.expression.expression import Expression
from penstock.table.expression.expression_functions import col
from penstock.table.expression.function_declarations import wrapper_of
from penstock.table.functions import resolve
from penstock.table.functions.typing.binding import bind
from penstock.table.logical import building
from penstock.table.logical.kinds import WindowKind
from penstock.table.logical.nodes import PROCTIME, ROWTIME, Column, GroupWindow, Relation, TableAggregate
from penstock.table.logical.rex import Frame, Literal, OverSpec, Rex, SortKey
from penstock.table.types.data_types import (
    BigIntType,
    DayTimeIntervalType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    RowType,
    TimestampType,
)

if TYPE_CHECKING:
    from penstock.table.api.table_api import Table

__all__ = ["AggregatedTable", "GroupWindowedTable", "GroupedTable", "OverWindowedTable", "WindowGroupedTable"]


def _place_keys(prepared: Prepared, keys: tuple[Any, ...]) -> tuple[list[int], dict[str, str]]:
    """Return the columns of the keys, and the names of keys that are no columns."""
    fresh, known = fresh_names("$key"), {}
    places = []
    for key in keys:
        name = name_of(key, fresh)
        known[str(without_alias(key))] = name
        places.append(prepared.add(key, name))
    return places, known


def _replace_keys(expression: Any, keys: dict[str, str]) -> Any:
    """Replace the parts of an expression that are keys by their columns."""
    return replace_parts(
        expression,
        lambda one: col(keys[str(one)]) if kind_of(one) != "alias" and str(one) in keys else None,
    )


@check_arguments
class GroupedTable:
    """A grouped table; `select`, `aggregate` or `flat_aggregate` follows."""

    def __init__(self, table: Table, keys: tuple[Any, ...]) -> None:
        self._table = table
        self._keys = keys

    def select(self, *fields: FieldLike) -> Table:
        """Return a table with keys, aggregates, and expressions of them."""
        table = self._table
        chosen = table.prepare_expressions(fields, "select")
        prepared = Prepared(table.relation)
        places, known = _place_keys(prepared, self._keys)
        aggregates = Aggregates(prepared)
        rewritten = [aggregates.extract(_replace_keys(one, known)) for one in chosen]
        relation = building.aggregate(prepared.relation(), places, aggregates.calls)
        return table.derive(select_fields(relation, rewritten, _names(chosen)))

    def aggregate(self, func: RowFunction) -> AggregatedTable:
        """Apply an aggregate function that returns a ROW, or an aggregate with a name.

        `select` of its columns follows.
        """
        return AggregatedTable(self._table, self._keys, func, None)

    def flat_aggregate(self, func: RowFunction) -> AggregatedTable:
        """Apply a table aggregate function, which returns any number of rows for each group. `select` follows."""
        return AggregatedTable(self._table, self._keys, func, None)


def _names(fields: list[Any]) -> list[str]:
    """Return the names of fields.

    Aggregates and properties of windows are numbered in their order, others by position.
    """
    found: dict[str, int] = {}

    def note(part: Any) -> Any:
        if kind_of(part) == "over" or not (is_aggregate(part) or function_of(part) in PROPERTIES):
            return None
        found.setdefault(str(part), len(found))
        return part

    names = []
    for place, one in enumerate(fields):
        replace_parts(one, note)
        number = found.get(str(one))
        fresh = f"_c{place}" if number is None else f"EXPR${number}"
        names.append(name_of(one, fresh.__str__))
    return names


@dataclass
class AggregatedTable:
    """An aggregated table; `select` follows."""

    _table: Table
    _keys: tuple[Any, ...]
    _func: Any
    _window: _WindowParts | None

    @check_arguments
    def select(self, *fields: FieldLike) -> Table:
        """Return a table with keys, properties of the window, and columns of the function's result."""
        chosen = self._table.prepare_expressions(fields, "select")
        call = self._func if isinstance(self._func, Expression) else self._of_row()
        wrapper = user_function(without_alias(call))
        relation = self._flat(call) if wrapper is not None and wrapper.kind == "table_aggregate" else self._one(call)
        rewritten = [replace_parts(one, _property) for one in chosen]
        rewritten = expand_fields(rewritten, relation.columns)
        names = _names(chosen) if len(rewritten) == len(chosen) else None
        return self._table.derive(select_fields(relation, rewritten, names))

    def _of_row(self) -> Expression:
        wrapper = wrapper_of(self._func)
        if wrapper is None:
            raise ValidationException(f"{self._func!r} is not an aggregate function: create it with udaf or udtaf")
        return of_row(wrapper, self._table.relation.names())

    def _one(self, call: Any) -> Relation:
        prepared = Prepared(self._table.relation)
        places, _ = _place_keys(prepared, self._keys)
        made = Aggregates(prepared)
        inner = made.extract(without_alias(call))
        relation = (
            building.aggregate(prepared.relation(), places, made.calls)
            if self._window is None
            else self._window.relation(prepared, places, made)
        )
        names = list(call.node[2]) if kind_of(call) == "alias" else []
        kept = building.identity(relation)
        position = len(places) + next(i for i, one in enumerate(made.calls) if one.name == column_name(inner))
        kind = relation.columns[position].type
        if not isinstance(kind, RowType):
            columns = relation.names()
            columns[position] = names[0] if names else "EXPR$0"
            return building.rename_columns(relation, columns)
        from penstock.table import functions

        parts = [functions.resolve("FIELD", [relation.ref(position), _index(i)]) for i in range(len(kind))]
        before, behind = kept[:position], kept[position + 1 :]
        field_names = names or _other_names(kind.names, relation.names()[: len(places)])
        all_names = [*relation.names()[:position], *field_names, *relation.names()[position + 1 :]]
        return building.project(relation, [*before, *parts, *behind], all_names)

    def _flat(self, call: Any) -> Relation:
        prepared = Prepared(self._table.relation)
        places, _ = _place_keys(prepared, self._keys)
        aggregate = Aggregates(prepared).call(without_alias(call))
        kind = aggregate.type
        fields = list(kind.fields) if isinstance(kind, RowType) else []
        names = list(call.node[2]) if kind_of(call) == "alias" else [field.name for field in fields]
        if len(names) != len(fields):
            raise ValidationException(f"{call} returns {len(fields)} columns, but {len(names)} names are given")
        made = tuple(Column(name, field.data_type) for name, field in zip(names, fields, strict=True))
        window = None if self._window is None else self._window.relation(prepared, places, Aggregates(prepared))
        input = prepared.relation()
        columns = tuple(input.columns[place] for place in places) + made
        properties = () if window is None else window.columns[len(places) :]
        return TableAggregate(columns + properties, input, tuple(places), aggregate, window)


def _other_names(names: list[str], taken: list[str]) -> list[str]:
    """Return names of fields, each with a number at its end if a key has the same name, as in Flink."""
    found = []
    for name in names:
        number = 0
        while name in taken:
            name, number = f"{name}_{number}", number + 1
        found.append(name)
    return found


def _index(value: int) -> Literal:
    from penstock.table.types.data_types import IntType

    return Literal(IntType(nullable=False), value)


def _property(expression: Any) -> Any:
    """Return the column of a window's property; None if the expression is no such property."""
    name = PROPERTIES.get(function_of(expression) or "")
    return col(f"${name}") if name is not None and len(arguments(expression)) == 1 else None


@check_arguments
class GroupWindowedTable:
    """A table with a window; `group_by` follows, with the name of the window among the fields."""

    def __init__(self, table: Table, window: WindowSpec) -> None:
        if not isinstance(window, WindowSpec):
            raise TypeError(
                f"window takes a window with a name, such as Tumble.over(..).on(..).alias('w'), not {window}"
            )
        self._table = table
        self._window = window

    def group_by(self, *fields: FieldLike) -> WindowGroupedTable:
        """Group the rows by fields and by the window. The name of the window is one of the fields."""
        chosen = self._table.prepare_expressions(fields, "group_by")
        name = self._window.name if isinstance(self._window.name, str) else column_name(self._window.name)
        keys = tuple(one for one in chosen if column_name(one) != name)
        if len(keys) == len(chosen):
            raise ValidationException(f"group_by must name the window: group_by(col('{name}'), ...)")
        return WindowGroupedTable(self._table, self._window, keys)


@dataclass
class _WindowParts:
    """A group window of the Table API."""

    spec: WindowSpec
    table: Table

    def relation(self, prepared: Prepared, keys: list[int], aggregates: Aggregates) -> GroupWindow:
        """Return keys, aggregates, and all properties, under names that begin with $."""
        columns = self.table.relation.columns
        time = column_index(self.spec.time, columns, "the time of a window")
        attribute = columns[time]
        moment: Rex = self.table.relation.ref(time)
        if isinstance(attribute.type, BigIntType) and self.table.t_env.is_batch:
            moment = resolve("TO_TIMESTAMP_LTZ", (moment, Literal(IntType(False), 3)))
        elif not isinstance(attribute.type, TimestampType | LocalZonedTimestampType):
            raise ValidationException(f"a group window needs a time attribute, and {attribute} is not a time attribute")
        place = prepared.add_rex(moment)
        (size, by_rows), (slide, _) = _extent(self.spec.size), _extent(self.spec.slide)
        properties = [] if by_rows else ["start", "end"]
        if attribute.time == ROWTIME or attribute.time is None:
            properties += [] if by_rows else ["rowtime"]
        else:
            properties += [] if by_rows else ["proctime"]
        input = prepared.relation()
        made = tuple(Column(call.name, call.type) for call in aggregates.calls)
        kept = tuple(input.columns[key] for key in keys)
        extra = tuple(_property_column(name) for name in properties)
        return GroupWindow(
            kept + made + extra,
            input,
            WindowKind(self.spec.kind),
            place,
            size,
            slide,
            tuple(keys),
            tuple(aggregates.calls),
            tuple(properties),
            by_rows,
        )


def _property_column(name: str) -> Column:
    if name == "proctime":
        return Column("$proctime", LocalZonedTimestampType(3, nullable=False), PROCTIME)
    return Column(f"${name}", TimestampType(3, nullable=False), ROWTIME if name == "rowtime" else None)


def _extent(size: Any) -> tuple[int, bool]:
    """Return milliseconds and False, or a number of rows and True."""
    if size is None:
        return 0, False
    node = getattr(size, "node", None)
    if isinstance(node, tuple) and node[0] == "rows":
        return int(node[1]), True
    rex = bind(size, ())
    if isinstance(rex, Literal) and isinstance(rex.type, DayTimeIntervalType):
        return int(rex.value), False
    if isinstance(rex, Literal) and isinstance(rex.type, IntegralType):
        return int(rex.value), True
    raise ValidationException(f"the size of a window is an interval or row_interval(n), not {size}")


@check_arguments
class WindowGroupedTable:
    """A table that is grouped by a window; `select`, `aggregate` or `flat_aggregate` follows."""

    def __init__(self, table: Table, window: WindowSpec, keys: tuple[Any, ...]) -> None:
        self._table = table
        self._parts = _WindowParts(window, table)
        self._keys = keys

    def select(self, *fields: FieldLike) -> Table:
        """Return a table with keys, aggregates, and start, end, rowtime or proctime of the window."""
        chosen = self._table.prepare_expressions(fields, "select")
        prepared = Prepared(self._table.relation)
        places, known = _place_keys(prepared, self._keys)
        aggregates = Aggregates(prepared)
        rewritten = [aggregates.extract(_replace_keys(replace_parts(one, _property), known)) for one in chosen]
        relation = self._parts.relation(prepared, places, aggregates)
        return self._table.derive(select_fields(relation, rewritten, _names(chosen)))

    def aggregate(self, func: RowFunction) -> AggregatedTable:
        """Apply an aggregate function that returns a ROW, or an aggregate with a name.

        `select` of its columns follows.
        """
        return AggregatedTable(self._table, self._keys, func, self._parts)

    def flat_aggregate(self, func: RowFunction) -> AggregatedTable:
        """Apply a table aggregate function, which returns any number of rows for each group and window.

        `select` of its columns follows.
        """
        return AggregatedTable(self._table, self._keys, func, self._parts)


@check_arguments
class OverWindowedTable:
    """A table with windows of OVER; `select` follows."""

    def __init__(self, table: Table, windows: tuple[OverWindow, ...]) -> None:
        for window in windows:
            if not isinstance(window, OverWindow):
                raise TypeError(f"over_window takes windows with a name, such as Over...alias('w'), not {window!r}")
        self._table = table
        self._windows = windows

    def select(self, *fields: FieldLike) -> Table:
        """Return a table with columns, and with aggregates such as `col("n").sum.over(col("w"))`."""
        chosen = self._table.prepare_expressions(fields, "select")
        relation = self._table.relation
        prepared = Prepared(relation, building.identity(relation), relation.names())
        specs: list[OverSpec] = []
        rewritten = [replace_parts(one, lambda part: self._extract_over(part, prepared, specs)) for one in chosen]
        return self._table.derive(select_fields(building.over(prepared.relation(), specs), rewritten, _names(chosen)))

    def _extract_over(self, part: Any, prepared: Prepared, specs: list[OverSpec]) -> Any:
        if kind_of(part) != "over":
            return None
        aggregate, alias = part.node[1], part.node[2]
        window = self._window(alias if isinstance(alias, str) else column_name(alias))
        call = Aggregates(prepared).call(aggregate)
        name = f"$over{len(specs)}"
        partition = tuple(prepared.add(key) for key in window.partition)
        order = (SortKey(column_index(window.order, prepared.input.columns, "the order of an over window")),)
        ordering = prepared.input.columns[order[0].index]
        if ordering.time is None and not self._table.t_env.is_batch:
            raise ValidationException(
                f"an over window must be ordered by a time attribute, and {ordering} is not a time attribute"
            )
        specs.append(OverSpec(partition, order, _frame(window), (_rename(call, name),)))
        return col(name)

    def _window(self, name: str | None) -> OverWindow:
        for window in self._windows:
            known = window.name if isinstance(window.name, str) else column_name(window.name)
            if known == name:
                return window
        raise ValidationException(f"there is no over window {name}")


def _rename(call: Any, name: str) -> Any:
    from dataclasses import replace

    return replace(call, name=name)


def _frame(window: OverWindow) -> Frame:
    before, rows = _read_bound(window.before, "UNBOUNDED_RANGE")
    behind, _ = _read_bound(window.behind, "CURRENT_ROW" if rows else "CURRENT_RANGE")
    return Frame(rows, None if before is None else -before, behind)


def _read_bound(bound: Any, default: str) -> tuple[int | None, bool]:
    """Return the distance of a bound, None if it is unlimited; and True if it counts rows."""
    word = default if bound is None else function_of(bound) or ""
    if word.startswith(("UNBOUNDED", "CURRENT")):
        return None if word.startswith("UNBOUNDED") else 0, word.endswith("ROW")
    return _extent(bound)
