"""Table: a query that is built step by step. Nothing runs before it is executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.base.arguments import check_arguments
from penstock.errors import TableException, ValidationException
from penstock.table import functions
from penstock.table.api.changelog_calls import changelog_arguments
from penstock.table.api.functions_of_user import of_row
from penstock.table.api.grouped_table import (
    AggregatedTable,
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    WindowGroupedTable,
)
from penstock.table.api.selecting import (
    FieldLike,
    RowFunction,
    TableFunctionCall,
    arguments,
    as_expression,
    column_name,
    contains,
    expand_fields,
    fresh_names,
    function_of,
    is_aggregate,
    kind_of,
    name_of,
    position,
    select_fields,
    user_function,
    without_alias,
)
from penstock.table.api.temporal_function import TemporalTableFunction, temporal_table_function
from penstock.table.catalogs.resolved_schema import ResolvedSchema, TableSchema
from penstock.table.catalogs.table_declaration import Schema
from penstock.table.catalogs.table_descriptors import TableDescriptor
from penstock.table.display.first_rows import UNLIMITED
from penstock.table.display.table_displays import ShowsTable
from penstock.table.explain_detail import ExplainDetail
from penstock.table.expression.expression import Expression
from penstock.table.expression.expression_functions import col, lit
from penstock.table.expression.function_declarations import wrapper_of
from penstock.table.functions.typing.binding import bind
from penstock.table.logical import building, changelog_relations
from penstock.table.logical.kinds import JoinKind, SetKind
from penstock.table.logical.nodes import Column, Columns, Correlate, Relation, Sort
from penstock.table.logical.rex import Call, InputRef, Rex, SortKey, conjuncts
from penstock.table.sql.subqueries.decorrelate import decorrelate
from penstock.table.types.data_types import ArrayType, BooleanType, DataType, MapType, MultisetType, RowType

if TYPE_CHECKING:
    import pandas

    from penstock.table.api.group_windows import GroupWindow, OverWindow
    from penstock.table.api.results import TableResult
    from penstock.table.api.statement_sets import TablePipeline
    from penstock.table.environments.environment import TableEnvironment

__all__ = ["GroupWindowedTable", "GroupedTable", "OverWindowedTable", "Table", "WindowGroupedTable"]


@check_arguments
class Table(ShowsTable):
    """A table of an environment: a query. Every method returns a new table."""

    def __init__(self, relation: Relation, t_env: TableEnvironment, declared: Schema | None = None) -> None:
        """Create a table. `declared` is the schema of a table that was declared and is not a query."""
        self.relation = relation
        self.t_env = t_env
        self._declared = declared
        self._view: str | None = None

    def __getattr__(self, name: str) -> Any:
        """Return a column as an expression: `table.price * 2`."""
        if name.startswith("_") or name not in self.relation.names():
            raise AttributeError(f"a Table has no {name!r}; its columns are: {', '.join(self.relation.names())}")
        return col(name)

    def __str__(self) -> str:
        """Return a name that SQL knows from now on, as in f"SELECT * FROM {table}"."""
        if self._view is None:
            self._view = self.t_env.create_unnamed_view(self)
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
        chosen = expand_fields(self.prepare_expressions(fields, "select"), self.relation.columns)
        if any(contains(one, is_aggregate) for one in chosen):
            return GroupedTable(self, ()).select(*chosen)
        return self.derive(decorrelate(functions, select_fields(self.relation, chosen)))

    def alias(self, field: str, *fields: str) -> Table:
        """Rename the first columns."""
        given, names = (field, *fields), self.relation.names()
        if len(given) > len(names):
            raise ValidationException(f"{len(given)} names do not fit {len(names)} columns: {', '.join(names)}")
        return self.derive(building.rename_columns(self.relation, [*given, *names[len(given) :]]))

    def filter(self, predicate: FieldLike) -> Table:
        """Keep the rows for which a condition is true."""
        kept = building.where(self.relation, self._condition(predicate, self.relation.columns))
        return self.derive(decorrelate(functions, kept))

    where = filter

    def _condition(self, predicate: Any, columns: Columns) -> Rex:
        condition = bind(self.t_env.session.resolve(as_expression(predicate, "where"), columns), columns)
        if not isinstance(condition.type, BooleanType):
            raise ValidationException(f"a condition must be a BOOLEAN, but {predicate} is {condition.type.as_sql()}")
        return condition

    def add_columns(self, *fields: FieldLike) -> Table:
        """Add columns at the end."""
        return self.derive(
            select_fields(
                self.relation, [*map(col, self.relation.names()), *self.prepare_expressions(fields, "this method")]
            )
        )

    def add_or_replace_columns(self, *fields: FieldLike) -> Table:
        """Add columns. A new column replaces a column of the same name."""
        fresh, new = fresh_names("_c"), self.prepare_expressions(fields, "this method")
        by_name = {name_of(one, fresh): one for one in new}
        kept = [by_name.pop(name, col(name)) for name in self.relation.names()]
        return self.derive(select_fields(self.relation, [*kept, *by_name.values()]))

    def rename_columns(self, *fields: FieldLike) -> Table:
        """Rename columns: `rename_columns(col("a").alias("b"))`."""
        names = self.relation.names()
        for one in self.prepare_expressions(fields, "this method"):
            old = column_name(without_alias(one))
            if kind_of(one) != "alias" or old is None:
                raise ValidationException(f"rename_columns takes col('old').alias('new'), not {one}")
            names[position(old, names)] = name_of(one, str)
        return self.derive(building.rename_columns(self.relation, names))

    def drop_columns(self, *fields: FieldLike) -> Table:
        """Remove columns."""
        names = self.relation.names()
        chosen = expand_fields(self.prepare_expressions(fields, "this method"), self.relation.columns)
        gone = {names[position(column_name(one) or str(one), names)] for one in chosen}
        return self.derive(select_fields(self.relation, [col(name) for name in names if name not in gone]))

    def map(self, func: RowFunction) -> Table:
        """Make one row of each row, with a scalar function that returns a ROW."""
        call = self._row_call(func)
        rex = bind(without_alias(call), self.relation.columns)
        names = call.node[2] if kind_of(call) == "alias" else None
        return self.derive(self._flatten(rex, names))

    def _flatten(self, rex: Rex, names: Sequence[str] | None) -> Relation:
        if not isinstance(rex.type, RowType):
            return building.project(self.relation, [rex], list(names or ["f0"]))
        parts = [functions.resolve("FIELD", [rex, _number(index)]) for index in range(len(rex.type))]
        return building.project(self.relation, parts, list(names or rex.type.field_names()))

    def _row_call(self, func: Any) -> Any:
        """Return a call of a function. A function without arguments takes the whole row."""
        wrapper = None if isinstance(func, Expression) else wrapper_of(func)
        return self._expression(func, "this method") if wrapper is None else of_row(wrapper, self.relation.names())

    def flat_map(self, func: RowFunction) -> Table:
        """Make any number of rows of each row, with a table function."""
        call = self._row_call(func)
        wide = len(self.relation.columns)
        joined = self._correlate(call, outer=False, predicate=None).relation
        exprs = [joined.ref(index) for index in range(wide, len(joined.columns))]
        return self.derive(building.project(joined, exprs, joined.names()[wide:]))

    # --- changelogs ---
    def to_changelog(self, *arguments: Expression) -> Table:
        """Return each change of the table as a row that is inserted, with the code of its kind in the first column.

        The column is `op`, or that of `descriptor("code").as_argument("op")`. The codes are the names of the kinds, or
        those of `map_("INSERT, UPDATE_AFTER", "upsert", "DELETE", "delete").as_argument("op_mapping")`. Changes of
        other kinds are then left out.
        """
        return self._changelog("to_changelog", changelog_relations.to_changelog, arguments)

    def from_changelog(self, *arguments: Expression) -> Table:
        """Return the changelog that the rows describe: a column has the code of each change.

        It takes the arguments of `to_changelog`, but the keys of the map are codes, and its values are kinds.
        """
        return self._changelog("from_changelog", changelog_relations.from_changelog, arguments)

    def _changelog(self, method: str, make: Callable[..., Relation], arguments: Sequence[Expression]) -> Table:
        if self.t_env.is_batch:
            changelog_relations.refuse_batch()
        return self.derive(make(self.relation, *changelog_arguments(method, arguments)))

    # --- groups ---
    def group_by(self, *fields: FieldLike) -> GroupedTable:
        """Group the rows by fields; `select`, `aggregate` or `flat_aggregate` follows."""
        return GroupedTable(self, tuple(self.prepare_expressions(fields, "this method")))

    def distinct(self) -> Table:
        """Keep one of all equal rows."""
        return self.derive(building.aggregate(self.relation, range(len(self.relation.columns)), ()))

    def aggregate(self, func: RowFunction) -> AggregatedTable:
        """Apply an aggregate function to all rows; `select` follows."""
        return GroupedTable(self, ()).aggregate(func)

    def flat_aggregate(self, func: RowFunction) -> AggregatedTable:
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
        return self._join(right, "INNER", join_predicate)

    def left_outer_join(self, right: Table, join_predicate: FieldLike | None = None) -> Table:
        """Join with another table. A row of this table without a partner has NULLs for the other's columns."""
        return self._join(right, "LEFT", join_predicate)

    def right_outer_join(self, right: Table, join_predicate: FieldLike) -> Table:
        """Join with another table. A row of the other table without a partner has NULLs for this table's columns."""
        return self._join(right, "RIGHT", join_predicate)

    def full_outer_join(self, right: Table, join_predicate: FieldLike) -> Table:
        """Join with another table. A row of either table without a partner has NULLs for the other's columns."""
        return self._join(right, "FULL", join_predicate)

    def _join(self, right: Table, kind: str, predicate: Any) -> Table:
        _check_table(right, "a join")
        both = set(self.relation.names()) & set(right.relation.names())
        if both:
            raise ValidationException(f"both sides have a column {', '.join(sorted(both))}; rename one with alias")
        columns = self.relation.columns + right.relation.columns
        condition = None if predicate is None else self._condition(predicate, columns)
        if kind != "INNER" and predicate is not None and not any(map(_is_equality, conjuncts(condition))):
            raise ValidationException(f"a {kind} join of tables needs an equality of columns among its conditions")
        return self.derive(building.join(self.relation, right.relation, JoinKind(kind), condition))

    def join_lateral(
        self,
        table_function_call: TableFunctionCall,
        join_predicate: FieldLike | None = None,
    ) -> Table:
        """Join each row with the rows that a table function returns for it."""
        return self._correlate(self._row_call(table_function_call), False, join_predicate)

    def left_outer_join_lateral(
        self,
        table_function_call: TableFunctionCall,
        join_predicate: FieldLike | None = None,
    ) -> Table:
        """Join each row with the rows that a table function returns for it. A row without any has NULLs instead."""
        return self._correlate(self._row_call(table_function_call), True, join_predicate)

    def _correlate(self, call: Any, outer: bool, predicate: Any) -> Table:
        rex = bind(without_alias(call), self.relation.columns)
        wrapper = user_function(without_alias(call))
        unnests = function_of(without_alias(call)) == "UNNEST"
        if (wrapper is None or wrapper.kind != "table") and not unnests:
            raise ValidationException(f"{call} is not a table function")
        kind = rex.type if isinstance(rex.type, RowType) else _unnest_columns(rex)
        names = list(call.node[2]) if kind_of(call) == "alias" else kind.field_names()
        if len(names) != len(kind):
            raise ValidationException(f"{call} returns {len(kind)} columns, but {len(names)} names are given")
        made = tuple(
            Column(name, field.data_type.nullable() if outer else field.data_type)
            for name, field in zip(names, kind.fields, strict=True)
        )
        columns = self.relation.columns + made
        condition = None if predicate is None else self._condition(predicate, columns)
        return self.derive(Correlate(columns, self.relation, replace(rex, type=kind), outer, condition))

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
        if not self.t_env.is_batch and not (kind == "UNION" and all):
            raise ValidationException(
                f"the {kind} operation on two unbounded tables is not supported in the Table API; SQL has it"
            )
        mine, other = self.relation, right.relation
        if len(mine.columns) != len(other.columns):
            raise ValidationException(
                f"{kind} needs tables with the same number of columns, not {len(mine.columns)} and {len(other.columns)}"
            )
        columns = tuple(
            replace(one, type=_common_type(kind, one, two))
            for one, two in zip(mine.columns, other.columns, strict=True)
        )
        parts = [_cast_to(part, columns) for part in (mine, other)]
        return self.derive(building.set_operation(parts, SetKind(kind), all, columns))

    # --- order ---
    def order_by(self, *fields: FieldLike) -> Table:
        """Sort the rows. On a stream, the first field must be its time, ascending. NULL is the greatest value here."""
        relation, keys = self.relation, []
        exprs, names = building.identity(relation), relation.names()
        for one in self.prepare_expressions(fields, "this method"):
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
            return self.derive(building.sort(relation, keys))
        sorted_rows = building.sort(building.project(relation, exprs, names), keys)
        return self.derive(building.project(sorted_rows, building.identity(sorted_rows)[:wide], names[:wide]))

    def offset(self, offset: int) -> Table:
        """Skip the first rows."""
        return self._limit(offset, None)

    def fetch(self, fetch: int) -> Table:
        """Keep only the first rows."""
        return self._limit(None, fetch)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Keep `fetch` rows after the first `offset` rows."""
        return self._limit(offset, fetch)

    def _limit(self, offset: int | None, fetch: int | None) -> Table:
        for number, what in ((offset, "an offset"), (fetch, "a number of rows")):
            if number is not None and (not isinstance(number, int) or number < 0):
                raise ValidationException(f"{what} is a number of at least 0, not {number!r}")
        relation = self.relation
        if not isinstance(relation, Sort) or relation.limit is not None:
            relation = building.sort(relation, ())
        changed = replace(relation, offset=relation.offset if offset is None else offset, limit=fetch)
        return self.derive(changed)

    # --- what it is ---
    def get_schema(self) -> TableSchema:
        """Return the columns in the older form."""
        return TableSchema.of(self.get_resolved_schema())

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the columns with their types, and the declared watermark and key."""
        return ResolvedSchema.of_table(self.relation.columns, self._declared)

    def print_schema(self) -> None:
        """Print the columns."""
        print(self.get_resolved_schema())

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return a text with the query, the plan, and the operators that would run."""
        return self.t_env.execution.explain([self.relation], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the query, the plan, and the operators that would run."""
        print(self.explain(*extra_details))

    # --- running ---
    def show(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """Run the query, and print its first rows, as Spark's DataFrame does.

        A table that never ends, but only grows, is read until it has `n` rows.

        Args:
            n: The greatest number of rows.
            truncate: The greatest width of a column; 20 for True, and no limit for False.
            vertical: Print each value in a line of its own.
        """
        if n < 0:
            raise ValidationException(f"show prints a number of rows of at least 0, not {n}")
        widest = {True: 20, False: UNLIMITED}[truncate] if isinstance(truncate, bool) else truncate
        if widest < 1:
            raise ValidationException(f"a column has at least 1 character, not {widest}")
        print(self.t_env.execution.first_rows(self, n).as_text(widest, vertical), end="")

    def execute(self) -> TableResult:
        """Run the query, and return a result with its rows."""
        return self.t_env.execution.query(self.relation)

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TableResult:
        """Write the rows into a table."""
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def insert_into(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TablePipeline:
        """Return a pipeline that writes the rows into a table when it is executed."""
        from penstock.table.api.statement_sets import TablePipeline

        return TablePipeline(self.t_env.make_insert(self.relation, table_path_or_descriptor, overwrite), self.t_env)

    def to_pandas(self) -> pandas.DataFrame:
        """Run the query, and return the final rows as a pandas DataFrame."""
        return self.execute().to_pandas()

    def to_spark(self) -> Any:
        """Run the query, and return the final rows as a DataFrame of the active Spark session."""
        return self.t_env.execution.to_spark(self)

    def derive(self, relation: Relation) -> Table:
        return Table(relation, self.t_env)

    def _expression(self, value: Any, method: str) -> Any:
        """Return an expression over the columns, with registered functions and SQL resolved."""
        return self.t_env.session.resolve(as_expression(value, method), self.relation.columns)

    def prepare_expressions(self, fields: Sequence[Any], method: str) -> list[Any]:
        return [self._expression(one, method) for one in fields]


def _is_equality(rex: Rex) -> bool:
    return isinstance(rex, Call) and rex.function in {"=", "IS NOT DISTINCT FROM"}


def _number(value: int) -> Rex:
    return bind(lit(value), ())


def _check_table(right: Any, what: str) -> None:
    if not isinstance(right, Table):
        raise TypeError(f"{what} takes a Table, not {right!r}")


def _common_type(kind: str, one: Column, two: Column) -> DataType:
    found = functions.common_type([one.type, two.type])
    if found is None:
        raise ValidationException(f"{kind} needs columns with compatible types, not {one} and {two}")
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


def _unnest_columns(rex: Rex) -> RowType:
    """Return the columns that UNNEST makes."""
    if not isinstance(rex, Call) or not rex.args:
        raise TableException(f"{rex} does not return rows")
    match rex.args[0].type:
        case ArrayType() | MultisetType() as kind:
            inner = kind.element_type
            return inner if isinstance(inner, RowType) else RowType([("EXPR$0", inner)])
        case MapType() as kind:
            return RowType([("key", kind.key_type), ("value", kind.value_type)])
    raise ValidationException(f"UNNEST takes an ARRAY, a MAP or a MULTISET, not {rex.args[0].type.as_sql()}")
