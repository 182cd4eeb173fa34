"""Tags that name side outputs."""

from __future__ import annotations

from typing import Generic

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import T
from penstock.common.type_information import DeclaredType, TypeInformation, declared_type


@check_arguments
class OutputTag(Generic[T]):
    """Names a side output and, if known, the type of its elements. Tags with the same id are the same output.

    >>> OutputTag("late") == OutputTag("late")
    True
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: DeclaredType[T] | None = None) -> None:
        if not tag_id:
            raise ValueError("the id of an OutputTag must not be empty")
        self.tag_id = tag_id
        self.type_info: TypeInformation[T] | None = declared_type(type_info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
