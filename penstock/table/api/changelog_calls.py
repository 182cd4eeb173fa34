"""The arguments of Table.to_changelog and Table.from_changelog."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import ValidationException
from penstock.table.expression.expression import Expression
from penstock.table.functions.evaluation import constant_texts
from penstock.table.functions.typing.binding import bind
from penstock.table.logical.changelog_relations import OP, Pairs


def changelog_arguments(method: str, given: Sequence[Expression]) -> tuple[str, Pairs | None]:
    """Return the name of the column of codes and the mapping, or None for the usual mapping."""
    op, mapping = OP, None
    for one in given:
        kind, *parts = one.node
        name = parts[1] if kind == "argument" else None
        if name == "op" and parts[0].node[0] == "descriptor":
            names = parts[0].node[1]
            if len(names) != 1:
                raise ValidationException("The descriptor for argument 'op' must contain exactly one column name.")
            op = names[0]
        elif name == "op_mapping":
            mapping = constant_texts(bind(parts[0], ()))
            if mapping is None:
                raise ValidationException("The 'op_mapping' argument must be a constant MAP literal.")
        else:
            raise ValidationException(
                f"{method} takes descriptor('column').as_argument('op') and map_(...).as_argument('op_mapping'), "
                f"not {one}"
            )
    return op, mapping
