"""The relations of TO_CHANGELOG and FROM_CHANGELOG, with the checks of their arguments."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import TableException, ValidationException
from penstock.table.logical.nodes import Column, FromChangelog, Relation, ToChangelog
from penstock.table.types.data_types import CharType, DataTypes, VarCharType

OP = "op"
"""The name of the column of codes, if no other is given."""
KINDS = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")
"""The names of the kinds of change. Their positions are the values of RowKind."""
Pairs = tuple[tuple[str, str], ...]
_PLAIN: Pairs = tuple((kind, kind) for kind in KINDS)
_MANY = " Use comma-separated keys to map multiple codes to the same operation (e.g., MAP['c, r', 'INSERT'])."


def refuse_batch() -> None:
    """Refuse the functions in BATCH mode, which has no changes."""
    raise TableException("TO_CHANGELOG and FROM_CHANGELOG are for STREAMING mode: in BATCH mode, tables do not change")


def to_changelog(table: Relation, op: str = OP, mapping: Pairs | None = None) -> Relation:
    """Return the changes of a table as rows. The column `op` has the code of the kind of change.

    In each pair of `mapping`, the first part lists kinds, separated by commas. The second is the code for them.
    """
    pairs = _PLAIN if mapping is None else _split_keys(mapping)
    _check_kinds((kind for kind, _ in pairs), "")
    if op in table.names():
        raise ValidationException(f"Field names must be unique. Found duplicates: [{op}]")
    columns = (Column(op, DataTypes.STRING()), *table.columns)
    return ToChangelog(columns, table, tuple((KINDS.index(kind), code) for kind, code in pairs))


def from_changelog(table: Relation, op: str = OP, mapping: Pairs | None = None) -> Relation:
    """Return the changelog that the rows of a table describe. The column `op` says which kind of change a row is.

    In each pair of `mapping`, the first part lists codes, separated by commas. The second is the kind that they mean.
    """
    if op not in table.names():
        raise ValidationException(
            f"The op column '{op}' does not exist in the input schema; there are: {', '.join(table.names())}"
        )
    place = table.names().index(op)
    kind = table.columns[place].type
    if not isinstance(kind, CharType | VarCharType):
        raise ValidationException(f"The op column '{op}' must be of STRING type, but was '{kind.as_sql()}'.")
    given = _PLAIN if mapping is None else tuple((codes, kind.strip()) for codes, kind in mapping)
    kinds = [name for _, name in given]
    _check_kinds(kinds, _MANY)
    if "UPDATE_AFTER" in kinds and "UPDATE_BEFORE" not in kinds:
        raise ValidationException(
            "The 'op_mapping' must include UPDATE_BEFORE for retract mode. Upsert mode (without UPDATE_BEFORE) is not "
            "supported in this version."
        )
    pairs = _split_keys(given)
    _check_unique((code for code, _ in pairs), "code", "")
    columns = tuple(column for position, column in enumerate(table.columns) if position != place)
    return FromChangelog(columns, table, place, tuple((code, KINDS.index(name)) for code, name in pairs))


def _split_keys(pairs: Pairs) -> Pairs:
    """Return a pair for each of the words in the keys, which are separated by commas."""
    return tuple((word.strip(), value) for key, value in pairs for word in key.split(","))


def _check_kinds(kinds: Iterable[str], more: str) -> None:
    found = list(kinds)
    for kind in found:
        if kind not in KINDS:
            raise ValidationException(
                f"Invalid target mapping for argument 'op_mapping'. Unknown change operation: '{kind}'. Valid values "
                f"are: [{', '.join(KINDS)}]."
            )
    _check_unique(found, "change operation", more)


def _check_unique(words: Iterable[str], what: str, more: str) -> None:
    found = list(words)
    twice = next((word for place, word in enumerate(found) if word in found[:place]), None)
    if twice is not None:
        raise ValidationException(
            f"Invalid target mapping for argument 'op_mapping'. Duplicate {what}: '{twice}'.{more}"
        )
