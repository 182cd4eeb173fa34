"""Table: a query that is built step by step. Nothing runs before it is executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.base.arguments import check_arguments
from penstock.errors import TableException, ValidationException
from penstock.table import functions
from penstock.table.api.functions_of_user import of_row
from penstock.table.api.grouped_table import GroupedTable, GroupWindowedTable, OverWindowedTable, WindowGroupedTable
from penstock.table.api.selecting import (
    FieldLike,
    RowFunction,
    TableFunctionCall,
    arguments,
    as_expression,
    column_name,
    contains,
    expanded,
    function_of,
    is_aggregate,
    kind_of,
    name_of,
    position,
    selected,
    unnamed,
    user_function,
    without_alias,
)
from penstock.table.api.temporal_function import TemporalTableFunction, temporal_table_function
from penstock.table.catalogs.resolved_schema import ResolvedSchema, TableSchema
from penstock.table.catalogs.table_declaration import Schema
from penstock.table.catalogs.table_descriptors import TableDescriptor
from penstock.table.explain_detail import ExplainDetail
from penstock.table.expression.expression import Expression
from penstock.table.expression.expression_functions import col, lit
from penstock.table.expression.function_declarations import wrapper_of
from penstock.table.functions.typing.binding import bind
from penstock.table.logical import building
from penstock.table.logical.nodes import Column, Columns, Correlate, Relation, Sort
from penstock.table.logical.rex import Call, InputRef, Rex, SortKey, conjuncts
from penstock.table.sql.subqueries.decorrelate import decorrelated
from penstock.table.types.data_types import ArrayType, BooleanType, DataType, MapType, MultisetType, RowType

if TYPE_CHECKING:
    import pandas

    from penstock.table.api.group_windows import GroupWindow, OverWindow
    from penstock.table.api.results import TableResult
    from penstock.table.api.statement_sets import TablePipeline
    from penstock.table.environments.environment import TableEnvironment

__all__ = ["GroupWindowedTable", "GroupedTable", "OverWindowedTable", "Table", "WindowGroupedTable"]


@check_arguments
class Table:
    """A table of an environment: a query. Every method returns a new table."""

    def __init__(self, relation: Relation, t_env: TableEnvironment, declared: Schema | None = None) -> None:
        """Take the schema in `declared` if the table is no query, but declared."""
        self._relation = relation
        self._t_env = t_env
        self._declared = declared
        self._view: str | None = None

    def __getattr__(self, name: str) -> Any:
        """Return a column as an expression: `table.price * 2`."""
        if name.startswith("_") or name not in self._relation.names():
            raise AttributeError(f"a Table has no {name!r}; its columns are: {', '.join(self._relation.names())}")
        return col(name)

    def __str__(self) -> str:
        """Return a name that SQL knows from now on, as in f"SELECT * FROM {table}"."""
        if self._view is None:
            self._view = self._t_env._unnamed_view(self)
        return self._view

    def create_temporal_table_function(
        self, time_attribute: FieldLike, primary_key: FieldLike
    ) -> TemporalTableFunction:
        """Return a function of a time. It returns the row of each key that was valid then, for LATERAL TABLE in SQL.

        Register it with `create_temporary_system_function`. `time_attribute` and `primary_key` name one column each.
        """
        return temporal_table_function(self, time_attribute, primary_key)

    # --- rows and columns ---
    def select(self, *fields: FieldLike) -> Table:
        """Return columns and expressions. With aggregates among them, return one row over all rows."""
        chosen = expanded(self._expressions(fields, "select"), self._relation.columns)
        if any(contains(one, is_aggregate) for one in chosen):
            return GroupedTable(self, ()).select(*chosen)
        return self._then(decorrelated(functions, selected(self._relation, chosen)))

    def alias(self, field: str, *fields: str) -> Table:
        """Rename the first columns."""
        given, names = (field, *fields), self._relation.names()
        if len(given) > len(names):
            raise ValidationException(f"{len(given)} names do not fit {len(names)} columns: {', '.join(names)}")
        return self._then(building.renamed(self._relation, [*given, *names[len(given) :]]))

    def filter(self, predicate: FieldLike) -> Table:
        """Keep the rows for which a condition is true."""
        kept = building.where(self._relation, self._condition(predicate, self._relation.columns))
        return self._then(decorrelated(functions, kept))

    where = filter

    def _condition(self, predicate: Any, columns: Columns) -> Rex:
        condition = bind(self._t_env._resolved(as_expression(predicate, "where"), columns), columns)
        if not isinstance(condition.type, BooleanType):
            raise ValidationException(f"a condition is a BOOLEAN, and {predicate} is {condition.type.as_sql()}")
        return condition

    def add_columns(self, *fields: FieldLike) -> Table:
        """Add columns at the end."""
        return self._then(
            selected(self._relation, [*map(col, self._relation.names()), *self._expressions(fields, "this method")])
        )

    def add_or_replace_columns(self, *fields: FieldLike) -> Table:
        """Add columns. A new column replaces a column of the same name."""
        fresh, new = unnamed("_c"), self._expressions(fields, "this method")
        by_name = {name_of(one, fresh): one for one in new}
        kept = [by_name.pop(name, col(name)) for name in self._relation.names()]
        return self._then(selected(self._relation, [*kept, *by_name.values()]))

    def rename_columns(self, *fields: FieldLike) -> Table:
        """Rename columns: `rename_columns(col("a").alias("b"))`."""
        names = self._relation.names()
        for one in self._expressions(fields, "this method"):
            old = column_name(without_alias(one))
            if kind_of(one) != "alias" or old is None:
                raise ValidationException(f"rename_columns takes col('old').alias('new'), not {one}")
            names[position(old, names)] = name_of(one, str)
        return self._then(building.renamed(self._relation, names))

    def drop_columns(self, *fields: FieldLike) -> Table:
        """Remove columns."""
        names = self._relation.names()
        chosen = expanded(self._expressions(fields, "this method"), self._relation.columns)
        gone = {names[position(column_name(one) or str(one), names)] for one in chosen}
        return self._then(selected(self._relation, [col(name) for name in names if name not in gone]))

    def map(self, func: RowFunction) -> Table:
        """Make one row of each row, with a scalar function that returns a ROW."""
        call = self._row_call(func)
        rex = bind(without_alias(call), self._relation.columns)
        names = call.node[2] if kind_of(call) == "alias" else None
        return self._then(self._flattened(rex, names))

    def _flattened(self, rex: Rex, names: Sequence[str] | None) -> Relation:
        if not isinstance(rex.type, RowType):
            return building.project(self._relation, [rex], list(names or ["f0"]))
        parts = [functions.resolve("FIELD", [rex, _number(index)]) for index in range(len(rex.type))]
        return building.project(self._relation, parts, list(names or rex.type.field_names()))

    def _row_call(self, func: Any) -> Any:
        """Return a call of a function. A function without arguments takes the whole row."""
        wrapper = None if isinstance(func, Expression) else wrapper_of(func)
        return self._expression(func, "this method") if wrapper is None else of_row(wrapper, self._relation.names())

    def flat_map(self, func: RowFunction) -> Table:
        """Make any number of rows of each row, with a table function."""
        call = self._row_call(func)
        wide = len(self._relation.columns)
        joined = self._correlated(call, outer=False, predicate=None)._relation
        exprs = [joined.ref(index) for index in range(wide, len(joined.columns))]
        return self._then(building.project(joined, exprs, joined.names()[wide:]))

    # --- groups ---
    def group_by(self, *fields: FieldLike) -> GroupedTable:
        """Group the rows by fields; `select`, `aggregate` or `flat_aggregate` follows."""
        return GroupedTable(self, tuple(self._expressions(fields, "this method")))

    def distinct(self) -> Table:
        """Keep one of all equal rows."""
        return self._then(building.aggregate(self._relation, range(len(self._relation.columns)), ()))

    def aggregate(self, func: RowFunction) -> Any:
        """Apply an aggregate function to all rows; `select` follows."""
        return GroupedTable(self, ()).aggregate(func)

    def flat_aggregate(self, func: RowFunction) -> Any:
        """Apply a table aggregate function to all rows; `select` follows."""
        return GroupedTable(self, ()).flat_aggregate(func)

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Set a group window; `group_by` with the window's name follows."""
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Set windows of rows around each row; `select` follows."""
        return OverWindowedTable(self, over_windows)

    # --- joins ---
    def join(self, right: Table, join_predicate: FieldLike | None = None) -> Table:
        """Join with another table. Without a condition, each row is joined with every row."""
        return self._joined(right, "INNER", join_predicate)

    def left_outer_join(self, right: Table, join_predicate: FieldLike | None = None) -> Table:
        """Join with another table. A row of this table without a partner has NULLs for the other's columns."""
        return self._joined(right, "LEFT", join_predicate)

    def right_outer_join(self, right: Table, join_predicate: FieldLike) -> Table:
        """Join with another table. A row of the other table without a partner has NULLs for this table's columns."""
        return self._joined(right, "RIGHT", join_predicate)

    def full_outer_join(self, right: Table, join_predicate: FieldLike) -> Table:
        """Join with another table. A row of either table without a partner has NULLs for the other's columns."""
        return self._joined(right, "FULL", join_predicate)

    def _joined(self, right: Table, kind: str, predicate: Any) -> Table:
        _check_table(right, "a join")
        both = set(self._relation.names()) & set(right._relation.names())
        if both:
            raise ValidationException(f"both sides have a column {', '.join(sorted(both))}; rename one with alias")
        columns = self._relation.columns + right._relation.columns
        condition = None if predicate is None else self._condition(predicate, columns)
        if kind != "INNER" and predicate is not None and not any(map(_is_equality, conjuncts(condition))):
            raise ValidationException(f"a {kind} join of tables needs an equality of columns among its conditions")
        return self._then(building.join(self._relation, right._relation, kind, condition))

    def join_lateral(
        self,
        table_function_call: TableFunctionCall,
        join_predicate: FieldLike | None = None,
    ) -> Table:
        """Join each row with the rows that a table function returns for it."""
        return self._correlated(self._row_call(table_function_call), False, join_predicate)

    def left_outer_join_lateral(
        self,
        table_function_call: TableFunctionCall,
        join_predicate: FieldLike | None = None,
    ) -> Table:
        """Join each row with the rows that a table function returns for it. A row without any has NULLs instead."""
        return self._correlated(self._row_call(table_function_call), True, join_predicate)

    def _correlated(self, call: Any, outer: bool, predicate: Any) -> Table:
        rex = bind(without_alias(call), self._relation.columns)
        wrapper = user_function(without_alias(call))
        unnests = function_of(without_alias(call)) == "UNNEST"
        if (wrapper is None or wrapper.kind != "table") and not unnests:
            raise ValidationException(f"{call} is no table function")
        kind = rex.type if isinstance(rex.type, RowType) else _unnested(rex)
        names = list(call.node[2]) if kind_of(call) == "alias" else kind.field_names()
        if len(names) != len(kind):
            raise ValidationException(f"{call} makes {len(kind)} columns, and {len(names)} names are given")
        made = tuple(
            Column(name, field.data_type.nullable() if outer else field.data_type)
            for name, field in zip(names, kind.fields, strict=True)
        )
        columns = self._relation.columns + made
        condition = None if predicate is None else self._condition(predicate, columns)
        return self._then(Correlate(columns, self._relation, replace(rex, type=kind), outer, condition))

    # --- sets ---
    def union(self, right: Table) -> Table:
        """Return the rows of both tables without duplicates. Only in batch mode."""
        return self._set(right, "UNION", False)

    def union_all(self, right: Table) -> Table:
        """Return the rows of both tables."""
        return self._set(right, "UNION", True)

    def intersect(self, right: Table) -> Table:
        """Return the rows that are in both tables, without duplicates. Only in batch mode."""
        return self._set(right, "INTERSECT", False)

    def intersect_all(self, right: Table) -> Table:
        """Return the rows that are in both tables, as often as in both. Only in batch mode."""
        return self._set(right, "INTERSECT", True)

    def minus(self, right: Table) -> Table:
        """Return the rows of this table that are not in the other, without duplicates. Only in batch mode."""
        return self._set(right, "EXCEPT", False)

    def minus_all(self, right: Table) -> Table:
        """Return the rows of this table, without one for each equal row of the other. Only in batch mode."""
        return self._set(right, "EXCEPT", True)

    def _set(self, right: Table, kind: str, all: bool) -> Table:
        _check_table(right, "a set operation")
        if not self._t_env._batch and not (kind == "UNION" and all):
            raise ValidationException(
                f"the {kind} operation on two unbounded tables is not supported in the Table API; SQL has it"
            )
        mine, other = self._relation, right._relation
        if len(mine.columns) != len(other.columns):
            raise ValidationException(f"{kind} of {len(mine.columns)} and of {len(other.columns)} columns")
        columns = tuple(
            replace(one, type=_united(kind, one, two)) for one, two in zip(mine.columns, other.columns, strict=True)
        )
        parts = [_cast_to(part, columns) for part in (mine, other)]
        return self._then(building.set_operation(parts, kind, all, columns))

    # --- order ---
    def order_by(self, *fields: FieldLike) -> Table:
        """Sort the rows. On a stream, the first field must be its time, ascending. NULL is the greatest value here."""
        relation, keys = self._relation, []
        exprs, names = building.identity(relation), relation.names()
        for one in self._expressions(fields, "this method"):
            word = function_of(one)
            inner = arguments(one)[0] if word in {"ASC", "DESC"} else one
            rex = bind(inner, relation.columns)
            if not isinstance(rex, InputRef):
                exprs.append(rex)
                names.append(f"$sort{len(names)}")
                rex = InputRef(rex.type, len(exprs) - 1)
            keys.append(SortKey(rex.index, word == "DESC", nulls_first=word == "DESC"))
        wide = len(relation.columns)
        if len(exprs) == wide:
            return self._then(building.sort(relation, keys))
        sorted_rows = building.sort(building.project(relation, exprs, names), keys)
        return self._then(building.project(sorted_rows, building.identity(sorted_rows)[:wide], names[:wide]))

    def offset(self, offset: int) -> Table:
        """Skip the first rows."""
        return self._limited(offset, None)

    def fetch(self, fetch: int) -> Table:
        """Keep only the first rows."""
        return self._limited(None, fetch)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Keep `fetch` rows after the first `offset` rows."""
        return self._limited(offset, fetch)

    def _limited(self, offset: int | None, fetch: int | None) -> Table:
        for number, what in ((offset, "an offset"), (fetch, "a number of rows")):
            if number is not None and (not isinstance(number, int) or number < 0):
                raise ValidationException(f"{what} is a number of at least 0, not {number!r}")
        relation = self._relation
        if not isinstance(relation, Sort) or relation.limit is not None:
            relation = building.sort(relation, ())
        changed = replace(relation, offset=relation.offset if offset is None else offset, limit=fetch)
        return self._then(changed)

    # --- what it is ---
    def get_schema(self) -> TableSchema:
        """Return the columns in the older form."""
        return TableSchema.of(self.get_resolved_schema())

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the columns with their types, and the declared watermark and key."""
        return ResolvedSchema.of_table(self._relation.columns, self._declared)

    def print_schema(self) -> None:
        """Print the columns."""
        print(self.get_resolved_schema())

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return a text with the query, the plan, and the operators that would run."""
        return self._t_env._explained([self._relation], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the query, the plan, and the operators that would run."""
        print(self.explain(*extra_details))

    # --- running ---
    def execute(self) -> TableResult:
        """Run the query, and return a result with its rows."""
        return self._t_env._executed(self._relation)

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TableResult:
        """Write the rows into a table."""
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def insert_into(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TablePipeline:
        """Return a pipeline that writes the rows into a table when it is executed."""
        from penstock.table.api.statement_sets import TablePipeline

        return TablePipeline(self._t_env._inserted(self._relation, table_path_or_descriptor, overwrite), self._t_env)

    def to_pandas(self) -> pandas.DataFrame:
        """Run the query, and return the final rows as a pandas DataFrame."""
        return self.execute().to_pandas()

    def to_spark(self) -> Any:
        """Run the query, and return the final rows as a DataFrame of the active Spark session."""
        return self._t_env._to_spark(self)

    def _then(self, relation: Relation) -> Table:
        return Table(relation, self._t_env)

    def _expression(self, value: Any, method: str) -> Any:
        """Return an expression over the columns, with registered functions and SQL resolved."""
        return self._t_env._resolved(as_expression(value, method), self._relation.columns)

    def _expressions(self, fields: Sequence[Any], method: str) -> list[Any]:
        return [self._expression(one, method) for one in fields]


def _is_equality(rex: Rex) -> bool:
    return isinstance(rex, Call) and rex.function in {"=", "IS NOT DISTINCT FROM"}


def _number(value: int) -> Rex:
    return bind(lit(value), ())


def _check_table(right: Any, what: str) -> None:
    if not isinstance(right, Table):
        raise TypeError(f"{what} takes a Table, not {right!r}")


def _united(kind: str, one: Column, two: Column) -> DataType:
    found = functions.common_type([one.type, two.type])
    if found is None:
        raise ValidationException(f"{kind} of columns whose types do not fit: {one} and {two}")
    return found


def _cast_to(relation: Relation, columns: Columns) -> Relation:
    """Cast a relation to the types of other columns."""
    if [column.type.nullable() for column in columns] == [kind.nullable() for kind in relation.types()]:
        return relation
    exprs: list[Rex] = [
        relation.ref(index)
        if relation.columns[index].type.nullable() == column.type.nullable()
        else functions.cast(relation.ref(index), column.type)
        for index, column in enumerate(columns)
    ]
    return building.project(relation, exprs, relation.names())


def _unnested(rex: Rex) -> RowType:
    """Return the columns that UNNEST makes."""
    if not isinstance(rex, Call) or not rex.args:
        raise TableException(f"{rex} has no rows")
    match rex.args[0].type:
        case ArrayType() | MultisetType() as kind:
            inner = kind.element_type
            return inner if isinstance(inner, RowType) else RowType([("EXPR$0", inner)])
        case MapType() as kind:
            return RowType([("key", kind.key_type), ("value", kind.value_type)])
    raise ValidationException(f"UNNEST takes an ARRAY, a MAP or a MULTISET, not {rex.args[0].type.as_sql()}")
