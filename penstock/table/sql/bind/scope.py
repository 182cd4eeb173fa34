"""The names that an expression can use, and the columns that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from penstock.table.logical.nodes import Columns, Relation
from penstock.table.logical.rex import Call, InputRef, Literal, OuterRef, Rex, rewritten, shift_refs
from penstock.table.sql.parse.problems import invalid, suggestion
from penstock.table.sql.parse.syntax import Name, Star
from penstock.table.types.data_types import IntType, RowType


@dataclass(frozen=True)
class Visible:
    """A column under the names by which a query can refer to it."""

    name: str
    table: tuple[str, ...]
    """The alias, or the path of the table. Empty if it has no name."""
    value: Rex
    merged: bool = False
    """True if a column of USING replaces it. Then it is found only with the name of its table."""


@dataclass(frozen=True)
class Scope:
    """The columns of a FROM clause. `outer` is the scope of the surrounding query."""

    columns: tuple[Visible, ...] = ()
    outer: Scope | None = field(default=None, repr=False)

    @classmethod
    def over(cls, columns: Columns, table: tuple[str, ...] = (), outer: Scope | None = None) -> Scope:
        """Return the scope of a relation's columns."""
        visible = (Visible(one.name, table, InputRef(one.type, index)) for index, one in enumerate(columns))
        return cls(tuple(visible), outer)

    def beside(self, right: Scope, width: int) -> Scope:
        """Return both scopes as one. The left one has `width` columns."""
        moved = tuple(replace(one, value=shift_refs(one.value, width)) for one in right.columns)
        return Scope((*self.columns, *moved), self.outer)

    def inside(self, outer: Scope | None) -> Scope:
        """Return the scope inside of another one."""
        return replace(self, outer=outer)

    def with_types(self, columns: Columns) -> Scope:
        """Return the scope for a relation whose columns may have become nullable."""

        def change(rex: Rex) -> Rex | None:
            return InputRef(columns[rex.index].type, rex.index) if isinstance(rex, InputRef) else None

        return replace(self, columns=tuple(replace(one, value=rewritten(one.value, change)) for one in self.columns))

    # --- looking up ---
    def resolve(self, name: Name) -> Rex:
        """Return the column of a name, from this query or a surrounding one."""
        scope: Scope | None = self
        depth = 0
        while scope is not None:
            found = scope._own(name)
            if found is not None:
                return found if depth == 0 else _outer(found, depth)
            scope, depth = scope.outer, depth + 1
        raise self._unknown(name)

    def _own(self, name: Name) -> Rex | None:
        for length in range(len(name.parts) - 1, 0, -1):
            prefix, column, rest = name.parts[:length], name.parts[length], name.parts[length + 1 :]
            table = [one for one in self.columns if _has_name(one.table, prefix)]
            fitting = [one for one in table if one.name == column]
            if len(fitting) > 1:
                raise invalid(name.at, f"Column '{column}' is ambiguous")
            if fitting:
                return _fields(fitting[0].value, rest, name)
            field = _find_nested_field([one.value for one in table], column, rest, name)
            if field is not None:
                return field
        fitting = [one for one in self.columns if one.name == name.parts[0] and not one.merged]
        if len(fitting) > 1:
            raise invalid(name.at, f"Column '{name.parts[0]}' is ambiguous; write its table in front of it")
        if not fitting:
            values = [one.value for one in self.columns if not one.merged]
            return _find_nested_field(values, name.parts[0], name.parts[1:], name)
        if len(name.parts) > 1 and not isinstance(fitting[0].value.type, RowType):
            return None
        return _fields(fitting[0].value, name.parts[1:], name)

    def _unknown(self, name: Name) -> Exception:
        scopes: list[Scope] = []
        scope: Scope | None = self
        while scope is not None:
            scopes.append(scope)
            scope = scope.outer
        every = [one for scope in scopes for one in scope.columns]
        if len(name.parts) == 1:
            hint = suggestion(name.parts[0], (one.name for one in every))
            return invalid(name.at, f"Column '{name.parts[0]}' not found in any table{hint}")
        prefix = name.parts[:-1]
        table = [one.name for one in every if _has_name(one.table, prefix)]
        if table:
            hint = suggestion(name.parts[-1], table)
            return invalid(name.at, f"Column '{name.parts[-1]}' not found in table '{'.'.join(prefix)}'{hint}")
        hint = suggestion(prefix[-1], (one.table[-1] for one in every if one.table))
        return invalid(name.at, f"Table '{'.'.join(prefix)}' not found{hint}")

    # --- stars ---
    def star(self, star: Star) -> list[tuple[str, Rex]]:
        """Return the columns of `*` or `t.*`, or the fields of a row for `r.*`."""
        if not star.prefix:
            return [(one.name, one.value) for one in self.columns if not one.merged]
        table = [(one.name, one.value) for one in self.columns if _has_name(one.table, star.prefix)]
        if table:
            return table
        known = any(one.name == star.prefix[0] or _has_name(one.table, star.prefix[:1]) for one in self.columns)
        if not known:
            hint = suggestion(star.prefix[-1], (one.table[-1] for one in self.columns if one.table))
            raise invalid(star.at, f"Table '{'.'.join(star.prefix)}' not found{hint}")
        row = self.resolve(Name(star.at, star.prefix))
        if not isinstance(row.type, RowType):
            raise invalid(star.at, f"'{'.'.join(star.prefix)}' is a {row.type.summary()} and has no fields")
        return [(one, field_of(row, index)) for index, one in enumerate(row.type.field_names())]


def _has_name(table: tuple[str, ...], prefix: Sequence[str]) -> bool:
    return bool(table) and tuple(table[-len(prefix) :]) == tuple(prefix)


def _find_nested_field(values: Sequence[Rex], field: str, rest: Sequence[str], name: Name) -> Rex | None:
    """Return the field with this name in row columns or rows within them, or None. The outermost one counts."""
    rows = [value for value in values if isinstance(value.type, RowType)]
    while rows:
        inside = [
            (one, field_of(row, index))
            for row in rows
            if isinstance(row.type, RowType)
            for index, one in enumerate(row.type.field_names())
        ]
        fitting = [value for one, value in inside if one == field and (not rest or isinstance(value.type, RowType))]
        if len(fitting) > 1:
            raise invalid(
                name.at, f"Column '{field}' is ambiguous; write the row of which it is a field in front of it"
            )
        if fitting:
            return _fields(fitting[0], rest, name)
        rows = [value for _, value in inside if isinstance(value.type, RowType)]
    return None


def _fields(value: Rex, names: Sequence[str], name: Name) -> Rex:
    for one in names:
        value = field_by_name(value, one, name)
    return value


def field_by_name(value: Rex, one: str, node: Name) -> Rex:
    """Return a field of a row by its name."""
    if not isinstance(value.type, RowType):
        raise invalid(node.at, f"'{'.'.join(node.parts)}': a {value.type.summary()} has no field '{one}'")
    names = value.type.field_names()
    if one not in names:
        raise invalid(node.at, f"'{'.'.join(node.parts)}': there is no field '{one}'{suggestion(one, names)}")
    return field_of(value, names.index(one))


def field_of(row: Rex, index: int) -> Rex:
    """Return a field of a row. It is NULL if the row is NULL."""
    assert isinstance(row.type, RowType)
    kind = row.type.field_types()[index]
    kind = kind.nullable() if row.type.is_nullable else kind
    return Call(kind, "FIELD", (row, Literal(IntType(False), index)))


def _outer(found: Rex, depth: int) -> Rex:
    """Return an expression of a surrounding query as seen from here."""

    def change(rex: Rex) -> Rex | None:
        if isinstance(rex, InputRef):
            return OuterRef(rex.type, rex.index, depth)
        return OuterRef(rex.type, rex.index, rex.depth + depth) if isinstance(rex, OuterRef) else None

    return rewritten(found, change)


def scope_of(relation: Relation, outer: Scope | None = None) -> Scope:
    """Return the scope of a relation's columns."""
    return Scope.over(relation.columns, (), outer)
