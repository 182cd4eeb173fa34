"""State that expires: wrappers of states that store a time beside each value, element or map entry.

Time is processing time, as given by the epoch's command. A stamped value is (value, time of its last use).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from penstock.api.state.descriptors import (
    AggregatingState,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    StateDescriptor,
    StateTtlConfig,
    ValueState,
    refuse_text,
)
from penstock.common.time import to_millis

RECORDS_PER_EPOCH = 1000
"""Number of uses that each epoch is assumed to have if every record triggers cleaning."""
Stamped = tuple[Any, int]


class Expiry:
    """Rules by which stamped values expire and reading renews them."""

    def __init__(self, config: StateTtlConfig, now: Callable[[], int]) -> None:
        self.now = now
        self._ttl = to_millis(config.get_ttl())
        self._read_renews = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self._lenient = config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        cleanup = config.get_cleanup_strategies()
        incremental = cleanup.get_incremental_cleanup_strategy()
        in_background = incremental is not None or cleanup.get_rocksdb_compact_filter_cleanup_strategy() is not None
        self._entries_per_use = incremental.get_cleanup_size() if incremental is not None else int(in_background)
        every_record = incremental is not None and incremental.run_cleanup_for_every_record()
        self._least_uses = RECORDS_PER_EPOCH if every_record else 1
        self._uses = 0
        self.prunes_snapshots = cleanup.in_full_snapshot()

    def take_sweep(self) -> int:
        """Return the number of entries to check for expiry.

        It grows with the uses of the state since the last check.
        """
        uses, self._uses = self._uses, 0
        return max(uses, self._least_uses) * self._entries_per_use

    def stamp(self, value: Any) -> Stamped:
        self._uses += 1
        return value, self.now()

    def is_expired(self, stamped: Stamped) -> bool:
        return self.now() - stamped[1] >= self._ttl

    def visible(self, stamped: Stamped) -> bool:
        """Return True if a value can be read.

        The configuration may allow reading expired values until they are removed.
        """
        self._uses += 1
        return self._lenient or not self.is_expired(stamped)

    def renew(self, stamped: Stamped) -> Stamped:
        """Return the value as it is stored after a read, with a new time if reading renews it."""
        return self.stamp(stamped[0]) if self._read_renews and not self.is_expired(stamped) else stamped


def ttl_of(descriptor: StateDescriptor) -> StateTtlConfig | None:
    """Return the descriptor's time to live if it has one that is enabled, else None."""
    config = descriptor.ttl_config
    return config if config is not None and config.is_enabled() else None


def pruner(descriptor: StateDescriptor, expiry: Expiry) -> Callable[[Any], Any]:
    """Return a function that removes the expired parts of a stored value. It returns None if no part remains."""

    def of_value(held: Stamped) -> Stamped | None:
        return None if expiry.is_expired(held) else held

    def of_list(held: list[Stamped]) -> list[Stamped] | None:
        left = [stamped for stamped in held if not expiry.is_expired(stamped)]
        return held if len(left) == len(held) else left or None

    def of_map(held: dict[Any, Stamped]) -> dict[Any, Stamped] | None:
        left = {key: stamped for key, stamped in held.items() if not expiry.is_expired(stamped)}
        return held if len(left) == len(held) else left or None

    if isinstance(descriptor, ListStateDescriptor):
        return of_list
    return of_map if isinstance(descriptor, MapStateDescriptor) else of_value


class TtlValueState(ValueState[Any]):
    """A value that expires."""

    def __init__(self, inner: ValueState[Any], expiry: Expiry, default: Any = None) -> None:
        self._inner = inner
        self._expiry = expiry
        self._default = default

    def value(self) -> Any:
        stamped = read_one(self._inner.value(), self._inner.update, self._inner.clear, self._expiry)
        return deepcopy(self._default) if stamped is None else stamped[0]

    def update(self, value: Any) -> None:
        if value is None:
            self._inner.clear()
        else:
            self._inner.update(self._expiry.stamp(value))

    def clear(self) -> None:
        self._inner.clear()


def read_one(
    stamped: Stamped | None, write: Callable[[Any], None], clear: Callable[[], None], expiry: Expiry
) -> Stamped | None:
    """Read a single stamped value: remove it if it has expired, renew it if reading does so."""
    if stamped is None:
        return None
    visible = expiry.visible(stamped)
    if expiry.is_expired(stamped):
        clear()
    elif (renewed := expiry.renew(stamped)) is not stamped:
        write(renewed)
    return stamped if visible else None


class TtlListState(ListState[Any]):
    """A list whose elements expire one by one."""

    def __init__(self, inner: ListState[Any], expiry: Expiry) -> None:
        self._inner = inner
        self._expiry = expiry

    def get(self) -> list[Any]:
        held: list[Stamped] = list(self._inner.get() or ())
        shown = [stamped[0] for stamped in held if self._expiry.visible(stamped)]
        kept = [self._expiry.renew(stamped) for stamped in held if not self._expiry.is_expired(stamped)]
        if kept != held:
            self._inner.update(kept)
        return shown

    def add(self, value: Any) -> None:
        self._inner.add(self._expiry.stamp(value))

    def add_all(self, values: Iterable[Any]) -> None:
        refuse_text(values, "add_all")
        self._inner.add_all([self._expiry.stamp(value) for value in values])

    def update(self, values: Iterable[Any]) -> None:
        refuse_text(values, "update")
        self._inner.update([self._expiry.stamp(value) for value in values])

    def clear(self) -> None:
        self._inner.clear()


class TtlMapState(MapState[Any, Any]):
    """A map whose entries expire one by one."""

    def __init__(self, inner: MapState[Any, Any], expiry: Expiry) -> None:
        self._inner = inner
        self._expiry = expiry

    def get(self, key: Any) -> Any:
        stamped = self._read(key)
        return None if stamped is None else stamped[0]

    def _read(self, key: Any) -> Stamped | None:
        inner = self._inner
        return read_one(inner.get(key), lambda v: inner.put(key, v), lambda: inner.remove(key), self._expiry)

    def put(self, key: Any, value: Any) -> None:
        self._inner.put(key, self._expiry.stamp(value))

    def put_all(self, dict_value: Any) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._inner.remove(key)

    def contains(self, key: Any) -> bool:
        return self._read(key) is not None

    def items(self) -> list[tuple[Any, Any]]:
        read = [(key, self._read(key)) for key in list(self._inner.keys())]
        return [(key, stamped[0]) for key, stamped in read if stamped is not None]

    def keys(self) -> list[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        return not self.items()

    def clear(self) -> None:
        self._inner.clear()


class TtlReducingState(ReducingState[Any]):
    """A reduced value that expires as a whole."""

    def __init__(self, inner: ValueState[Any], expiry: Expiry, reduce: Callable[[Any, Any], Any]) -> None:
        self._state = TtlValueState(inner, expiry)
        self._reduce = reduce

    def get(self) -> Any:
        return self._state.value()

    def add(self, value: Any) -> None:
        held = self._state.value()
        self._state.update(value if held is None else self._reduce(held, value))

    def clear(self) -> None:
        self._state.clear()


class TtlAggregatingState(AggregatingState[Any, Any]):
    """An accumulator that expires as a whole."""

    def __init__(self, inner: ValueState[Any], expiry: Expiry, aggregate: Any) -> None:
        self._state = TtlValueState(inner, expiry)
        self._aggregate = aggregate

    def get(self) -> Any:
        held = self._state.value()
        return None if held is None else self._aggregate.get_result(held)

    def add(self, value: Any) -> None:
        held = self._state.value()
        accumulator = self._aggregate.create_accumulator() if held is None else held
        self._state.update(self._aggregate.add(value, accumulator))

    def clear(self) -> None:
        self._state.clear()
