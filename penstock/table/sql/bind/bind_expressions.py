"""Expressions with names and types resolved: from syntax to rex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import ValidationException
from penstock.table.logical.nodes import Relation
from penstock.table.logical.rex import Call, Literal, Rex, Subquery
from penstock.table.sql.bind import aggregate_calls
from penstock.table.sql.bind.binder_session import Functions, Session
from penstock.table.sql.bind.placeholders import Grouping, WindowProperty
from penstock.table.sql.bind.scope import Scope, field_by_name
from penstock.table.sql.parse.problems import invalid, not_supported, suggestion, with_place
from penstock.table.sql.parse.syntax import (
    CastTo,
    Constant,
    Descriptor,
    FieldOf,
    Invoke,
    Name,
    Nested,
    Node,
    Query,
    Star,
    TableArg,
    Window,
    Word,
)
from penstock.table.sql.parse.tokens import Position
from penstock.table.sql.subqueries import quantified
from penstock.table.types.data_types import (
    BigIntType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    LocalZonedTimestampType,
    NullType,
    NumericType,
    TimestampType,
    YearMonthIntervalType,
)

_PROPERTIES = {"START": "start", "END": "end", "ROWTIME": "rowtime", "PROCTIME": "proctime"}
AUXILIARIES = {
    f"{kind}_{name}": (kind, value) for kind in ("TUMBLE", "HOP", "SESSION") for name, value in _PROPERTIES.items()
}
"""Functions such as TUMBLE_START, with the kind of window and the property."""
_ONLY_MATCH = {"MATCH_ROWTIME", "MATCH_PROCTIME", "CLASSIFIER", "MATCH_NUMBER", "PREV", "NEXT", "FIRST", "LAST"}


@dataclass
class ExpressionBinder:
    """Binds expressions over a scope.

    `aggregates` is None where aggregate functions are allowed. Elsewhere it is a text for the error that refuses them.
    """

    session: Session
    functions: Functions
    scope: Scope
    query: Callable[[Query, Scope], Relation]
    """A function that binds a query inside of the scope."""
    aggregates: str | None = "here"
    spans: str | None = None
    """The same for functions over windows, which are allowed only where aggregates are."""
    total: bool = False
    """True if there are no keys, so that an aggregate may see no row at all."""
    windows: dict[str, Window] = field(default_factory=dict)
    aliases: dict[str, Rex] = field(default_factory=dict)
    """Names of the select list. ORDER BY finds them before the names of the scope."""
    places: dict[int, tuple[Rex, Position]] = field(default_factory=dict)
    """The positions of columns in the text, by the identity of their rex."""

    def bind(self, node: Node) -> Rex:
        """Return the typed form of an expression."""
        rex: Rex = getattr(self, _BINDERS[type(node)])(node)
        self.places.setdefault(id(rex), (rex, node.at))
        return rex

    def all(self, nodes: Sequence[Node]) -> tuple[Rex, ...]:
        """Return the typed forms of expressions."""
        return tuple(self.bind(node) for node in nodes)

    def condition(self, node: Node, clause: str) -> Rex:
        """Return a typed condition. Raise an error that names the clause if the type is not BOOLEAN."""
        rex = self.bind(node)
        if isinstance(rex.type, NullType):
            return self.functions.cast(rex, BooleanType())
        if not isinstance(rex.type, BooleanType):
            raise invalid(node.at, f"{clause} clause must be a condition, but is a {rex.type.summary()}")
        return rex

    def without_aggregates(self, why: str) -> ExpressionBinder:
        """Return a binder that refuses aggregates."""
        return replace(self, aggregates=why)

    def resolve(self, at: Position, name: str, args: Sequence[Rex]) -> Rex:
        """Return the call of a built-in function. An error gets the position."""
        return with_place(at, lambda: self.functions.resolve(name, args))

    # --- leaves ---
    def _name(self, node: Name) -> Rex:
        if len(node.parts) == 1 and node.parts[0] in self.aliases:
            return self.aliases[node.parts[0]]
        return self.column(node)

    def column(self, node: Name) -> Rex:
        """Return the column with a name."""
        return self.scope.resolve(node)

    def _constant(self, node: Constant) -> Rex:
        return Literal(node.type, node.value)

    def _word(self, node: Word) -> Rex:
        return Literal(NullType(), node.word)

    def _star(self, node: Star) -> Rex:
        raise invalid(node.at, "* can stand in the select list and in COUNT(*) only")

    def _refuse_misplaced(self, node: Node) -> Rex:
        raise invalid(node.at, "tables and descriptors can be arguments of table functions only")

    # --- calls ---
    def _cast(self, node: CastTo) -> Rex:
        value = self.bind(node.value)
        return with_place(node.at, lambda: self.functions.explicit_cast(value, node.aim, node.safe))

    def _field(self, node: FieldOf) -> Rex:
        value = self.bind(node.value)
        return field_by_name(value, node.field, Name(node.at, (node.field,)))

    def _invoke(self, node: Invoke) -> Rex:
        name = node.name.upper()
        own = self.session.function(".".join((*node.path, node.name))) if name[0].isalpha() or name[0] == "_" else None
        if own is not None:
            return self._user_function(node, own)
        if node.over is not None or self.functions.is_aggregate(name):
            return self.aggregate(node, name, None)
        special = _SPECIAL_CALLS.get(name) or (ExpressionBinder._property if name in AUXILIARIES else None)
        if special is not None:
            return special(self, node)
        if name in _ONLY_MATCH:
            raise invalid(node.at, f"Function '{name}' can only be used in MATCH_RECOGNIZE")
        return self._call_built_in(node, name)

    def _call_built_in(self, node: Invoke, name: str) -> Rex:
        self._plain(node)
        if not self.session.has_core:
            raise invalid(node.at, f"there is no function {node.name}: the module core is not used; LOAD or USE it")
        args = self.all(node.args)
        try:
            return self.resolve(node.at, name, args)
        except ValidationException as problem:
            unknown = "there is no function" in str(problem) and "did you mean" not in str(problem)
            hint = suggestion(node.name.lower(), self.session.suggestions("function")) if unknown else ""
            if hint:
                raise ValidationException(f"{problem}{hint}") from problem
            raise

    def _plain(self, node: Invoke) -> None:
        """Refuse syntax of aggregates and of table functions."""
        if node.names:
            raise invalid(node.at, f"{node.name.upper()} takes no named arguments; window functions in FROM do")
        if node.distinct or node.star or node.filter or node.order:
            raise invalid(
                node.at, f"{node.name.upper()} is no aggregate: DISTINCT, *, FILTER, ORDER BY do not belong to it"
            )

    def _user_function(self, node: Invoke, own: Any) -> Rex:
        if own.kind == "aggregate":
            return self.aggregate(node, node.name.upper(), own)
        if own.kind != "scalar":
            kind = own.kind.replace("_", " ")
            raise invalid(
                node.at, f"{node.name} is a {kind} function: use it as LATERAL TABLE({node.name}(...)) in FROM"
            )
        self._plain(node)
        return user_call(self.functions, node, own, self.all(node.args), own.result_type)

    def aggregate(self, node: Invoke, name: str, own: Any) -> Rex:
        """Return a placeholder for the value of an aggregate function."""
        why = self.aggregates or (self.spans if node.over is not None else None)
        if why is not None:
            raise invalid(node.at, f"{'Windowed a' if node.over else 'A'}ggregate expression {name} is illegal {why}")
        return aggregate_calls.bind_aggregate(self, node, name, own)

    # --- special calls ---
    def _grouping(self, node: Invoke) -> Rex:
        if self.aggregates is not None:
            raise invalid(node.at, f"{node.name.upper()} is illegal {self.aggregates}")
        return Grouping(BigIntType(False), self.without_aggregates("inside of GROUPING").all(node.args))

    def _property(self, node: Invoke) -> Rex:
        kind, name = AUXILIARIES[node.name.upper()]
        if self.aggregates is not None:
            raise invalid(node.at, f"{node.name.upper()} is illegal {self.aggregates}")
        args = self.without_aggregates("inside of a window").all(node.args)
        if name in {"start", "end"}:
            aim: DataType = TimestampType(3, False)
        elif name == "proctime":
            aim = LocalZonedTimestampType(3, False)
        else:
            aim = args[0].type.nullable() if args else TimestampType(3)
        return WindowProperty(aim, kind, name, tuple(args))

    def _comparison(self, node: Invoke) -> Rex:
        """Compare rows field by field, and other values as they are."""
        rows = [arg.args for arg in node.args if isinstance(arg, Invoke) and arg.name == "ROW"]
        if len(rows) != 2 or node.name not in {"=", "<>"}:
            return self._call_built_in(node, node.name)
        if len(rows[0]) != len(rows[1]):
            raise invalid(node.at, f"rows of {len(rows[0])} and of {len(rows[1])} fields cannot be compared")
        tests = [Invoke(node.at, "=", pair) for pair in zip(*rows, strict=True)]
        equal = _all_of(self, node.at, tests)
        return equal if node.name == "=" else self.resolve(node.at, "NOT", (equal,))

    def _membership(self, node: Invoke) -> Rex:
        left, *values = node.args
        if not (isinstance(left, Invoke) and left.name == "ROW"):
            return self._call_built_in(node, "IN")
        tests = [self._comparison(Invoke(node.at, "=", (left, value))) for value in values]
        whole = tests[0]
        for test in tests[1:]:
            whole = self.resolve(node.at, "OR", (whole, test))
        return whole

    def _chain(self, node: Invoke) -> Rex:
        """Bind AND and OR of many conditions as a balanced tree, so that a long list does not become a deep tree."""
        parts: list[Node] = []
        rest: Node = node
        while isinstance(rest, Invoke) and rest.name == node.name:
            parts.append(rest.args[1])
            rest = rest.args[0]
        return self._halve(node, self.all([rest, *reversed(parts)]))

    def _halve(self, node: Invoke, parts: Sequence[Rex]) -> Rex:
        if len(parts) == 1:
            return parts[0]
        half = (len(parts) + 1) // 2
        return self.resolve(node.at, node.name, (self._halve(node, parts[:half]), self._halve(node, parts[half:])))

    def _positive(self, node: Invoke) -> Rex:
        value = self.bind(node.args[0])
        if not isinstance(value.type, NumericType | DayTimeIntervalType | YearMonthIntervalType):
            raise invalid(node.at, f"+ stands in front of numbers and intervals, not of a {value.type.summary()}")
        return value

    def _constructor(self, node: Invoke) -> Rex:
        if not node.args:
            raise invalid(node.at, f"{node.name}[] needs at least one element, which says what type it has")
        return self._call_built_in(node, node.name)

    # --- subqueries ---
    def _subquery(self, node: Nested) -> Rex:
        plan = self.query(node.query, self.scope)
        args = self.all(node.args)
        if node.kind == "EXISTS":
            return Subquery(BooleanType(False), "EXISTS", plan)
        if node.kind == "SCALAR":
            if len(plan.columns) != 1:
                raise invalid(node.at, f"a query that stands for a value must have one column, not {len(plan.columns)}")
            return Subquery(plan.columns[0].type.nullable(), "SCALAR", plan)
        if len(plan.columns) != len(args):
            raise invalid(node.at, f"{len(args)} values are compared with a query of {len(plan.columns)} columns")
        if node.kind == "IN":
            return quantified.membership(self, node, plan, args)
        return quantified.comparison(self, node, plan, args[0])


def _all_of(binder: ExpressionBinder, at: Position, nodes: Sequence[Node]) -> Rex:
    whole = binder.bind(nodes[0])
    for node in nodes[1:]:
        whole = binder.resolve(at, "AND", (whole, binder.bind(node)))
    return whole


def user_call(functions: Functions, node: Invoke, own: Any, args: Sequence[Rex], result: DataType) -> Call:
    """Return a call of a user's function, with its arguments cast to the declared types."""
    wanted = own.input_types or [arg.type for arg in args]
    if len(wanted) != len(args):
        raise invalid(node.at, f"{node.name} takes {len(wanted)} arguments, not {len(args)}")
    fitted = tuple(_fit(functions, node, arg, aim) for arg, aim in zip(args, wanted, strict=True))
    return Call(result, node.name, fitted, own)


def _fit(functions: Functions, node: Invoke, arg: Rex, aim: DataType) -> Rex:
    if arg.type.nullable() == aim.nullable():
        return arg
    return with_place(node.at, lambda: functions.cast(arg, aim))


def refuse_table_function(binder: ExpressionBinder, node: Invoke) -> Rex:
    """Refuse a table function in an expression."""
    raise not_supported(node.at, f"{node.name.upper()} is a table function and can stand in FROM only")


_BINDERS: dict[type[Node], str] = {
    Name: "_name",
    Constant: "_constant",
    Word: "_word",
    Star: "_star",
    CastTo: "_cast",
    FieldOf: "_field",
    Invoke: "_invoke",
    Nested: "_subquery",
    TableArg: "_refuse_misplaced",
    Descriptor: "_refuse_misplaced",
}
"""The name of the method for each kind of node."""
_SPECIAL_CALLS: dict[str, Callable[[ExpressionBinder, Invoke], Rex]] = {
    "GROUPING": ExpressionBinder._grouping,
    "GROUPING_ID": ExpressionBinder._grouping,
    "GROUP_ID": lambda binder, node: Literal(BigIntType(False), 0),
    "AND": ExpressionBinder._chain,
    "OR": ExpressionBinder._chain,
    "=": ExpressionBinder._comparison,
    "<>": ExpressionBinder._comparison,
    "IN": ExpressionBinder._membership,
    "POSITIVE": ExpressionBinder._positive,
    "ARRAY": ExpressionBinder._constructor,
    "MAP": ExpressionBinder._constructor,
    "UNNEST": refuse_table_function,
}
