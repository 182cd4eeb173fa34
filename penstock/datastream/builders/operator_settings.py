"""Settings: the name, identity and parallelism of an operator, which streams and sinks share."""

from __future__ import annotations

from typing import Self

from penstock.api.slot_sharing_group import SlotSharingGroup
from penstock.base.arguments import check_arguments
from penstock.common.execution_config import check_max_parallelism, check_parallelism
from penstock.errors import UnsupportedOperation
from penstock.graph.transformations import Chaining, Transformation


@check_arguments
class Settings:
    """The settings of a stream's operator, shared by streams and sinks."""

    _node: Transformation

    def name(self, name: str) -> Self:
        """Set the operator's name in plans, logs and errors."""
        self._node.name = name
        return self

    def get_name(self) -> str:
        """Return the operator's name."""
        return self._node.name

    def uid(self, uid: str) -> Self:
        """Set the operator's identity across versions of the program, by which its state is found."""
        if not uid:
            raise ValueError("a uid must not be empty")
        self._node.uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the identity that an earlier version generated, to take over its state."""
        self._node.uid_hash = uid_hash
        return self

    def set_description(self, description: str) -> Self:
        """Set a text for plans that is longer than the name."""
        self._node.description = description
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks of this operator."""
        check_parallelism(parallelism, self._node.max_parallelism or -1)
        if self._node.non_parallel and parallelism != 1:
            raise UnsupportedOperation(
                f"{self._node.name} has no parallel form: its parallelism is 1, not {parallelism}"
            )
        self._node.parallelism = parallelism
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups: the most subtasks to which the operator can be scaled with its state."""
        check_max_parallelism(max_parallelism)
        self._node.max_parallelism = max_parallelism
        return self

    def disable_chaining(self) -> Self:
        """Do not chain this operator with its neighbours."""
        self._node.chaining = Chaining.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Set the name of a group of operators. Operators of different groups are not chained."""
        group = slot_sharing_group
        self._node.slot_sharing_group = group.get_name() if isinstance(group, SlotSharingGroup) else group
        return self
