"""A user function's part in checkpoints: its operator state, and notices of complete and aborted checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.api.functions.checkpointed_functions import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
)
from penstock.api.functions.contexts import KeyedStateStore
from penstock.api.state.descriptors import (
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    check_descriptor,
    refuse_text,
)
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.snapshots.restore import RestoredOperator, split_evenly
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.state.backend import BroadcastStateBackend, KeyedStateBackend
from penstock.engine.state.evolution import migration
from penstock.engine.state.snapshot_file import Kind
from penstock.engine.state.state_objects import HeapBroadcastState
from penstock.engine.state.state_schema import schema_of
from penstock.errors import ProgramError

_LIST_CHECKPOINTED = "_list_checkpointed"

_LISTS = {Kind.LIST: "list", Kind.UNION: "union_list"}
"""Kinds of operator state, as the methods for them are named."""


class Participation:
    """The part of one function object in checkpoints.

    It does nothing if the function implements none of the interfaces.
    """

    def __init__(
        self,
        function: Any,
        context: OperatorContext,
        keyed: KeyedStateBackend | None,
        broadcast: BroadcastStateBackend | None = None,
    ) -> None:
        self._function = function
        self._context = context
        self._keyed = keyed
        self.states = OperatorStates(context.restored, broadcast)

    def initialize(self) -> None:
        """Give the function its state. Call this before the function is opened."""
        function = self._function
        if isinstance(function, CheckpointedFunction):
            function.initialize_state(_InitializationContext(self._context, self.states, self._keyed))
        elif isinstance(function, ListCheckpointed):
            items = self.states.get_list_state(ListStateDescriptor(_LIST_CHECKPOINTED))
            if self._context.restored is not None:
                function.restore_state(list(items.get()))

    def snapshot(self, into: SubtaskSnapshot) -> None:
        """Let the function update its state, and add that state to the snapshot."""
        function = self._function
        if isinstance(function, CheckpointedFunction):
            function.snapshot_state(_SnapshotContext(into.checkpoint, into.timestamp))
        elif isinstance(function, ListCheckpointed):
            items = function.snapshot_state(into.checkpoint, into.timestamp)
            self.states.get_list_state(ListStateDescriptor(_LIST_CHECKPOINTED)).update(list(items or ()))
        self.states.snapshot(into)

    def complete(self, checkpoint: int) -> None:
        """Tell the function that a checkpoint is complete."""
        if isinstance(self._function, CheckpointListener):
            self._function.notify_checkpoint_complete(checkpoint)

    def abort(self, checkpoint: int) -> None:
        """Tell the function that a checkpoint was given up."""
        if isinstance(self._function, CheckpointListener):
            self._function.notify_checkpoint_aborted(checkpoint)


class OperatorListState(ListState[Any]):
    """A list that belongs to one subtask."""

    def __init__(self, items: list[Any], kind: Kind, schema: dict[str, Any]) -> None:
        self.items = items
        self.kind = kind
        self.schema = schema
        self.claimed = False

    def get(self) -> list[Any]:
        return list(self.items)

    def add(self, value: Any) -> None:
        if value is None:
            raise ValueError("operator list state cannot hold None")
        self.items.append(value)

    def add_all(self, values: Iterable[Any]) -> None:
        refuse_text(values, "add_all")
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any]) -> None:
        refuse_text(values, "update")
        self.items = []
        self.add_all(list(values))

    def clear(self) -> None:
        self.items = []


class OperatorStates(OperatorStateStore):
    """The operator state of one subtask.

    The store keeps restored lists that the function does not ask for, and writes them again.
    """

    def __init__(self, restored: RestoredOperator | None, broadcast: BroadcastStateBackend | None = None) -> None:
        """Take over restored state.

        `broadcast` belongs to an operator with a broadcast side, which writes it itself.
        """
        self._lists: dict[str, OperatorListState] = {}
        self._writes_broadcast = broadcast is None
        self._broadcast = broadcast or BroadcastStateBackend(restored.broadcast() if restored is not None else ())
        self._unions: dict[str, list[Any]] = {}
        if restored is not None:
            for kind in (Kind.LIST, Kind.UNION):
                self._take_over(restored, kind)

    def _take_over(self, restored: RestoredOperator, kind: Kind) -> None:
        for name, schema, parts in restored.items(kind):
            share = split_evenly(parts, restored.parallelism)[restored.subtask]
            self._lists[name] = OperatorListState(list(share), kind, schema)
            if kind is Kind.UNION:
                self._unions[name] = [item for part in parts for item in part]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> OperatorListState:
        return self._list(state_descriptor, Kind.LIST)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> OperatorListState:
        return self._list(state_descriptor, Kind.UNION)

    def _list(self, descriptor: ListStateDescriptor, kind: Kind) -> OperatorListState:
        check_descriptor(descriptor, ListStateDescriptor, f"OperatorStateStore.get_{_LISTS[kind]}_state")
        name = descriptor.get_name()
        if descriptor.ttl_config is not None and descriptor.ttl_config.is_enabled():
            raise ProgramError(f"operator state '{name}' cannot have a time to live: only keyed state can")
        state = self._lists.get(name)
        if state is None:
            state = self._lists[name] = OperatorListState([], kind, schema_of(descriptor))
        if state.kind is not kind:
            raise ProgramError(
                f"operator state '{name}' is {state.kind.value} list state and cannot be accessed as {kind.value}"
            )
        if not state.claimed:
            self._claim(state, descriptor)
        return state

    def _claim(self, state: OperatorListState, descriptor: ListStateDescriptor) -> None:
        state.claimed = True
        state.items = self._unions.pop(descriptor.get_name(), state.items)
        convert = migration(state.schema, descriptor) if state.schema else None
        if convert is not None:
            state.items = convert(state.items)
        state.schema = schema_of(descriptor)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> HeapBroadcastState:
        check_descriptor(state_descriptor, MapStateDescriptor, "OperatorStateStore.get_broadcast_state")
        return self._broadcast.writable(state_descriptor)

    def snapshot(self, into: SubtaskSnapshot) -> None:
        for name, state in self._lists.items():
            into.items(state.kind, name, state.items, state.schema)
        if self._writes_broadcast:
            into.broadcast(self._broadcast)
            self._broadcast.end_epoch()


class _SnapshotContext(FunctionSnapshotContext):
    def __init__(self, checkpoint: int, timestamp: int) -> None:
        self._checkpoint = checkpoint
        self._timestamp = timestamp

    def get_checkpoint_id(self) -> int:
        return self._checkpoint

    def get_checkpoint_timestamp(self) -> int:
        return self._timestamp


class _InitializationContext(FunctionInitializationContext):
    def __init__(self, context: OperatorContext, states: OperatorStates, keyed: KeyedStateBackend | None) -> None:
        self._context = context
        self._states = states
        self._keyed = keyed

    def is_restored(self) -> bool:
        return self._context.restored is not None

    def get_restored_checkpoint_id(self) -> int | None:
        return None if self._context.restored is None else self._context.restored.checkpoint

    def get_operator_state_store(self) -> OperatorStateStore:
        return self._states

    def get_keyed_state_store(self) -> KeyedStateStore:
        return SlotRuntimeContext(self._context, self._keyed)
