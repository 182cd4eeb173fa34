"""A change of one state between two savepoints: a function is applied to every value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.api.state.descriptors import ListStateDescriptor, StateDescriptor
from penstock.engine.savepoints.contents import form_of, layout_of, split_address
from penstock.engine.savepoints.savepoint_rows import fit_value
from penstock.engine.state.key_groups import short_repr
from penstock.engine.state.snapshot_file import Kind, Name
from penstock.engine.state.state_schema import Schema, schema_of
from penstock.errors import PenstockError, ProgramError

Function = Callable[[Any, Any, Any], Any]
"""A function of key, namespace and value. It drops the entry by returning None."""


@dataclass(frozen=True)
class Transform:
    """A function over the values of one state."""

    name: Name
    before: Schema
    function: Function
    descriptor: StateDescriptor | None
    """Descriptor of the new values; None if their type stays the same."""
    now: int

    @property
    def after(self) -> Schema:
        """The schema of the new values."""
        if self.descriptor is None:
            return self.before
        layout = {"layout": self.before["layout"]} if "layout" in self.before else {}
        return {**layout, **schema_of(self.descriptor)}

    def entries(self, feed: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield the new entries of keyed state. A value keeps its time, and an empty list or map leaves no entry."""
        layout, old, new = layout_of(self.name, self.before), form_of(self.before), form_of(self.after)
        container = self.after.get("kind") in ("list", "map")
        declared = None if self.descriptor is None else self.descriptor.type_info
        for address, stored in feed:
            value = fit_value(self._call(*split_address(layout, address), old.bare(stored)), declared, self._where())
            if value is not None and (not container or value):
                times = old.last_access(stored)
                yield address, new.stamp(value, self.now if times is None else times)

    def whole(self, value: Any) -> Any:
        """Return the new value of a state with one value per slot: list elements, or entries of a broadcast map."""
        if self.name.kind is Kind.BROADCAST:
            changed = {key: self._call(key, None, held) for key, held in (value or {}).items()}
            kept = {key: held for key, held in changed.items() if held is not None}
            return fit_value(kept, None if self.descriptor is None else self.descriptor.type_info, self._where())
        items = [self._call(None, None, item) for item in value or ()]
        declared = self.descriptor.elem_type_info if isinstance(self.descriptor, ListStateDescriptor) else None
        return [fit_value(item, declared, self._where()) for item in items if item is not None]

    def _call(self, key: Any, namespace: Any, value: Any) -> Any:
        try:
            return self.function(key, namespace, value)
        except PenstockError:
            raise
        except Exception as error:
            raise ProgramError(
                f"{self._where()}: the function raised {type(error).__name__}: {error}, for key {short_repr(key)} "
                f"and value {short_repr(value)}"
            ) from error

    def _where(self) -> str:
        return f"state '{self.name.name}' of operator '{self.name.uid}'"
