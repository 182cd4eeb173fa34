"""FROM: tables, queries, functions and joins, and the names that they make visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.errors import TableException, ValidationException
from penstock.table.logical.changelog_relations import refuse_batch
from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.nodes import Column, Columns, Correlate, Join, Relation
from penstock.table.logical.rex import Call, InputRef, Literal, Rex
from penstock.table.sql.bind import changelog_functions
from penstock.table.sql.bind import window_table_functions as window_functions
from penstock.table.sql.bind.bind_expressions import user_call
from penstock.table.sql.bind.bind_match import match_relation
from penstock.table.sql.bind.scope import Scope, Visible
from penstock.table.sql.parse.hints import name_of
from penstock.table.sql.parse.problems import IllegalStateException, invalid, not_supported, suggestion, with_place
from penstock.table.sql.parse.syntax import (
    Aliased,
    Constant,
    Derived,
    FunctionTable,
    Invoke,
    Joined,
    Matched,
    Node,
    Source,
    TableName,
    Unnest,
)
from penstock.table.sql.subqueries.decorrelate import lateral_join
from penstock.table.types.data_types import ArrayType, DataType, IntType, MapType, MultisetType, RowType

if TYPE_CHECKING:
    from penstock.table.sql.bind.bind_queries import QueryBinder


@dataclass(frozen=True)
class Right:
    """The right side of a join without its alias."""

    source: Source
    alias: str | None
    columns: tuple[str, ...]


class FromClause:
    """Binds the sources of a SELECT. `outer` is the scope of the surrounding query."""

    def __init__(self, queries: QueryBinder, outer: Scope | None, ttl: tuple[tuple[str, int], ...] = ()) -> None:
        """Create a binder. `ttl` has the time to live, in milliseconds, of the state of some tables."""
        self.queries, self.outer, self.ttl = queries, outer, dict(ttl)
        self.functions = queries.functions

    def bind(self, source: Source | None) -> tuple[Relation, Scope]:
        """Return the relation and the scope of a FROM clause."""
        from penstock.table.sql.bind.bind_queries import ONE_ROW

        if source is None:
            return ONE_ROW, Scope((), self.outer)
        relation, scope = self._bind(source)
        return relation, scope.inside(self.outer)

    def _bind(self, source: Source) -> tuple[Relation, Scope]:
        if isinstance(source, Joined):
            return self._bind_join(source)
        right = _split_alias(source)
        inner = right.source
        if _is_correlated(self, inner) or (isinstance(inner, Derived) and inner.lateral):
            return self._alone(right, source)
        return self._name_columns(self._relation(inner), right, source)

    def _name_columns(self, relation: Relation, right: Right, node: Node) -> tuple[Relation, Scope]:
        from penstock.table.sql.bind.bind_queries import rename_columns

        if right.columns:
            relation = rename_columns(relation, right.columns, node)
        table = (right.alias,) if right.alias else right.source.path if isinstance(right.source, TableName) else ()
        return relation, Scope.over(relation.columns, table)

    def _relation(self, source: Source) -> Relation:
        if isinstance(source, TableName):
            if source.as_of is not None:
                problem = not_supported if isinstance(source.as_of, Constant) else invalid
                raise problem(source.at, "FOR SYSTEM_TIME AS OF can stand on the right side of a join only")
            return self.table(source)
        if isinstance(source, Derived):
            return self.queries.query(source.query, self.outer)
        if isinstance(source, FunctionTable):
            if source.call.name.upper() in changelog_functions.FUNCTIONS:
                return self._changelog_function(source.call)
            return self._window_function(source.call)
        assert isinstance(source, Matched)
        below, scope = self._bind(source.source)
        return match_relation(self.queries, source, below, scope.inside(self.outer))

    def table(self, source: TableName) -> Relation:
        """Return the plan of a table, a view or a common table expression."""
        if len(source.path) == 1 and source.path[0] in self.queries.tables:
            return self.queries.tables[source.path[0]]
        session = self.queries.session
        found = session.relation(source.path, source.options) if source.options else session.relation(source.path)
        if found is None:
            names = [*self.queries.tables, *session.suggestions("table")]
            raise invalid(source.at, f"Table '{'.'.join(source.path)}' not found{suggestion(source.path[-1], names)}")
        return found

    # --- window functions ---
    def _window_function(self, call: Invoke) -> Relation:
        args = window_functions.arguments(call)
        data = window_functions.table_argument(call, args)
        relation, scope = self._bind(data.source)
        partition = self.queries.expressions(scope, "in PARTITION BY").all(data.partition)
        if partition and call.name.upper() != "SESSION":
            raise invalid(data.at, f"{call.name.upper()} takes no PARTITION BY; only SESSION does")
        return window_functions.window_table(call, args, relation, partition, self.queries.session.batch)

    def _changelog_function(self, call: Invoke) -> Relation:
        if self.queries.session.batch:
            refuse_batch()
        args = changelog_functions.arguments(call)
        relation, _ = self._bind(changelog_functions.table_argument(call, args).source)
        mapping = None
        if "op_mapping" in args:
            mapping = self.queries.expressions(Scope(), "in FROM clause").bind(args["op_mapping"])
        return with_place(call.at, lambda: changelog_functions.changelog_relation(call, args, relation, mapping))

    # --- joins ---
    def _bind_join(self, node: Joined) -> tuple[Relation, Scope]:
        left, scope = self._bind(node.left)
        right = _split_alias(node.right)
        if _is_correlated(self, right.source):
            return self._correlate(node, left, scope, right)
        if isinstance(right.source, Derived) and right.source.lateral:
            return self._lateral(node, left, scope, right)
        if isinstance(right.source, TableName) and right.source.as_of is not None:
            return self._temporal(node, left, scope, right)
        other, other_scope = self._bind(node.right)
        return self._join(node, (left, scope), (other, other_scope), None)

    def _join(
        self, node: Joined, left: tuple[Relation, Scope], right: tuple[Relation, Scope], temporal: int | None
    ) -> tuple[Relation, Scope]:
        width = len(left[0].columns)
        both = left[1].beside(right[1], width)
        kind = JoinKind.INNER if node.kind == "CROSS" and not node.natural else JoinKind(node.kind)
        names = self._common(node, left[1], right[1])
        condition = self._using(node, both, names) if names else self._condition(node, both)
        columns = columns_of_join(left[0].columns, right[0].columns, kind)
        ttl = self.ttl.get(name_of(node.left) or ""), self.ttl.get(name_of(node.right) or "")
        plan = Join(columns, left[0], right[0], kind, condition, temporal, ttl=ttl)
        scope = both.with_types(columns)
        return plan, self._merge(node, scope, names) if names else scope

    def _condition(self, node: Joined, scope: Scope) -> Rex | None:
        if node.condition is None:
            if node.kind != "CROSS" and not node.natural:
                raise invalid(node.at, "INNER, LEFT, RIGHT or FULL join requires a condition: NATURAL, ON or USING")
            return None
        binder = self.queries.expressions(scope.inside(self.outer), "in ON clause")
        try:
            condition = binder.condition(node.condition, "ON")
        except ValidationException as problem:
            if ": = cannot be applied to" not in str(problem):
                raise
            raise TableException(str(problem)) from problem
        return None if isinstance(condition, Literal) and condition.value is True else condition

    def _common(self, node: Joined, left: Scope, right: Scope) -> tuple[str, ...]:
        """Return the names of USING, or the common names of a NATURAL join."""
        names = [one.name for one in right.columns if not one.merged]
        if node.natural:
            return tuple(one.name for one in left.columns if one.name in names and not one.merged)
        for name in node.using:
            for side in (left, right):
                if sum(one.name == name and not one.merged for one in side.columns) != 1:
                    known = [one.name for one in side.columns]
                    raise invalid(
                        node.at, f"USING: column '{name}' must be once on either side{suggestion(name, known)}"
                    )
        return node.using

    def _using(self, node: Joined, scope: Scope, names: Sequence[str]) -> Rex:
        tests = []
        for name in names:
            left, right = (one.value for one in scope.columns if one.name == name and not one.merged)
            tests.append(self.functions.resolve("=", (left, right)))
        whole = tests[0]
        for test in tests[1:]:
            whole = self.functions.resolve("AND", (whole, test))
        return whole

    def _merge(self, node: Joined, scope: Scope, names: Sequence[str]) -> Scope:
        """Replace the two columns of each name by one column, in front of the others."""
        merged: list[Visible] = []
        for name in names:
            pair = [one.value for one in scope.columns if one.name == name and not one.merged]
            if node.kind == "FULL":
                value = self.functions.resolve("COALESCE", pair)
            else:
                value = pair[1] if node.kind == "RIGHT" else pair[0]
            merged.append(Visible(name, (), value))
        rest = tuple(replace(one, merged=one.merged or one.name in names) for one in scope.columns)
        return Scope((*merged, *rest), scope.outer)

    def _temporal(self, node: Joined, left: Relation, scope: Scope, right: Right) -> tuple[Relation, Scope]:
        source = right.source
        assert isinstance(source, TableName) and source.as_of is not None
        time = self.queries.expressions(scope.inside(self.outer), "in FOR SYSTEM_TIME").bind(source.as_of)
        if not isinstance(time, InputRef) or left.columns[time.index].time is None:
            raise invalid(source.as_of.at, "FOR SYSTEM_TIME AS OF takes a time attribute of the left table")
        if node.kind not in {"INNER", "LEFT"} or node.condition is None:
            raise IllegalStateException(f"{node.at}: a temporal join is an inner or a left join with an ON clause")
        table = self.table(replace(source, as_of=None))
        named = self._name_columns(table, replace(right, source=replace(source, as_of=None)), source)
        return self._join(node, (left, scope), named, time.index)

    def _lateral(self, node: Joined, left: Relation, scope: Scope, right: Right) -> tuple[Relation, Scope]:
        source = right.source
        assert isinstance(source, Derived)
        plan = self.queries.query(source.query, scope.inside(self.outer))
        plan, other = self._name_columns(plan, right, source)
        condition = self._condition(node, scope.beside(other, len(left.columns)))
        kind = JoinKind.LEFT if node.kind == "LEFT" else JoinKind.INNER
        joined = lateral_join(self.functions, left, plan, kind, condition)
        return joined, scope.beside(other, len(left.columns)).with_types(joined.columns)

    # --- table functions and UNNEST ---
    def _alone(self, right: Right, node: Source) -> tuple[Relation, Scope]:
        """Bind a source that has no left side. A function gets one row as its left side."""
        from penstock.table.sql.bind.bind_queries import ONE_ROW

        if isinstance(right.source, Derived):
            return self._name_columns(self.queries.query(right.source.query, self.outer), right, node)
        relation, scope = self._correlate(Joined(node.at, node, node, "CROSS"), ONE_ROW, Scope(), right)
        return relation, scope

    def _correlate(self, node: Joined, left: Relation, scope: Scope, right: Right) -> tuple[Relation, Scope]:
        if node.kind not in {"INNER", "CROSS", "LEFT"}:
            raise not_supported(node.at, f"a table function cannot be on the right side of a {node.kind} join")
        if isinstance(right.source, FunctionTable):
            own = self._own_function(right.source)
            if own is not None and own.kind == "temporal":
                return self._versions(node, left, scope, right, own)
        call, ordinality = self._call(right.source, scope)
        row = call.type
        assert isinstance(row, RowType)
        columns = _function_columns(row, right, ordinality)
        if right.columns:
            columns = _rename(columns, right, node)
        outer = node.kind == "LEFT"
        width = len(left.columns)
        other = Scope.over(columns, (right.alias,) if right.alias else ())
        condition = self._condition(node, scope.beside(other, width))
        added = tuple(replace(one, type=one.type.nullable()) for one in columns) if outer else columns
        plan = Correlate((*left.columns, *added), left, call, outer, condition, ordinality)
        return plan, scope.beside(other, width).with_types(plan.columns)

    def _own_function(self, source: FunctionTable) -> Any | None:
        """Return the user's function of a call, or None for other functions."""
        return self.queries.session.function(".".join((*source.call.path, source.call.name)))

    def _versions(self, node: Joined, left: Relation, scope: Scope, right: Right, own: Any) -> tuple[Relation, Scope]:
        """Bind a temporal table function: a join with the versions at the time in its argument."""
        source = right.source
        assert isinstance(source, FunctionTable)
        call = source.call
        args = self.queries.expressions(scope.inside(self.outer), "in FROM clause").all(call.args)
        time = args[0] if len(args) == 1 else None
        if not isinstance(time, InputRef) or left.columns[time.index].time is None:
            raise invalid(call.at, f"{call.name} takes a time attribute of the left table, as in {call.name}(o.ts)")
        joined, both = self._join(node, (left, scope), self._name_columns(own.relation, right, source), time.index)
        assert isinstance(joined, Join)
        return replace(joined, version_key=own.key), both

    def _call(self, source: Source, scope: Scope) -> tuple[Call, bool]:
        binder = self.queries.expressions(scope.inside(self.outer), "in FROM clause")
        if isinstance(source, Unnest):
            value = binder.bind(source.value)
            return Call(_elements(value.type, source), "UNNEST", (value,)), source.ordinality
        assert isinstance(source, FunctionTable)
        node, own = source.call, self._own_function(source)
        if own is None:
            made = binder.resolve(node.at, node.name.upper(), binder.all(node.args))
            if not isinstance(made, Call) or not isinstance(made.type, RowType):
                raise invalid(node.at, f"{node.name} is no table function")
            return made, False
        if own.kind != "table":
            raise invalid(node.at, f"{node.name} is a {own.kind} function; in FROM stand table functions")
        return user_call(self.functions, node, own, binder.all(node.args), _row_of(own)), False


def _split_alias(source: Source) -> Right:
    if isinstance(source, Aliased):
        return Right(source.source, source.alias, source.columns)
    return Right(source, None, ())


def _is_correlated(clause: FromClause, source: Source) -> bool:
    """Return True if the source is a function of the rows on its left."""
    if isinstance(source, FunctionTable):
        own = clause._own_function(source)
        name = source.call.name.upper()
        tables = name in window_functions.PARAMETERS or name in changelog_functions.FUNCTIONS
        return own is not None or not tables
    return isinstance(source, Unnest)


def columns_of_join(left: Columns, right: Columns, kind: str) -> Columns:
    """Return the columns of a join. Those of a side that may be missing become nullable."""
    if kind in {JoinKind.SEMI, JoinKind.ANTI}:
        return left
    return (*_pad(left, kind in {JoinKind.RIGHT, JoinKind.FULL}), *_pad(right, kind in {JoinKind.LEFT, JoinKind.FULL}))


def _pad(columns: Columns, missing: bool) -> Columns:
    return tuple(replace(one, type=one.type.nullable()) for one in columns) if missing else columns


def _elements(kind: DataType, node: Unnest) -> RowType:
    """Return the row type for the elements of a collection."""
    if isinstance(kind, MapType):
        return RowType([("KEY", kind.key_type), ("VALUE", kind.value_type)], False)
    if not isinstance(kind, ArrayType | MultisetType):
        raise invalid(node.at, f"UNNEST takes an array, a map or a multiset, not a {kind.summary()}")
    element = kind.element_type
    if not isinstance(element, RowType):
        return RowType([("EXPR$0", element)], False)
    pairs = zip(element.field_names(), element.field_types(), strict=True)
    return RowType([(name, one.nullable() if element.is_nullable else one) for name, one in pairs], False)


def _row_of(own: Any) -> RowType:
    """Return the row type of a user's table function."""
    types = list(own.result_types)
    if len(types) == 1 and isinstance(types[0], RowType):
        return types[0].not_null()
    return RowType([(f"f{index}", kind) for index, kind in enumerate(types)], False)


def _function_columns(row: RowType, right: Right, ordinality: bool) -> Columns:
    names = row.field_names()
    single = isinstance(right.source, Unnest) and names == ["EXPR$0"]
    if single and right.alias:
        names = [right.alias]
    columns = [Column(name, kind) for name, kind in zip(names, row.field_types(), strict=True)]
    return (*columns, Column("ORDINALITY", IntType(False))) if ordinality else tuple(columns)


def _rename(columns: Columns, right: Right, node: Node) -> Columns:
    if len(columns) != len(right.columns):
        raise invalid(node.at, f"{len(right.columns)} names are given for {len(columns)} columns of the function")
    return tuple(replace(one, name=name) for one, name in zip(columns, right.columns, strict=True))
