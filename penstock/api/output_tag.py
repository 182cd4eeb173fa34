"""Tags that name side outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.arguments import check_arguments

if TYPE_CHECKING:
    from penstock.common.typeinfo import TypeInformation


@check_arguments
class OutputTag:
    """Names a side output and, if known, the type of its elements. Tags with the same id are the same output.

    >>> OutputTag("late") == OutputTag("late")
    True
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: TypeInformation | None = None) -> None:
        if not tag_id:
            raise ValueError("the id of an OutputTag must not be empty")
        self.tag_id = tag_id
        self.type_info = type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
