"""Settings for how long state lives and when expired entries are removed."""

from __future__ import annotations

import datetime
from enum import Enum
from typing import TypeAlias

from penstock.api.settings.values import Settings, at_least, instance_of
from penstock.base.arguments import check_arguments
from penstock.common.time import Duration, Time, to_millis

Ttl: TypeAlias = Time | Duration | datetime.timedelta | int


@check_arguments
class CleanupStrategies(Settings):
    """Settings for the removal of expired entries, beyond their removal when they are read."""

    class Strategies(Enum):
        """The ways to remove expired entries."""

        FULL_STATE_SCAN_SNAPSHOT = 0
        INCREMENTAL_CLEANUP = 1
        ROCKSDB_COMPACTION_FILTER = 2

    class CleanupStrategy(Settings):
        """Base of the settings of one strategy."""

    class EmptyCleanupStrategy(CleanupStrategy):
        """A strategy without settings."""

    @check_arguments
    class IncrementalCleanupStrategy(CleanupStrategy):
        """Checks a few entries whenever the state is used."""

        def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
            self._cleanup_size = at_least("cleanup_size", cleanup_size, 1)
            self._run_cleanup_for_every_record = run_cleanup_for_every_record

        def get_cleanup_size(self) -> int:
            """Return the number of entries that are checked each time."""
            return self._cleanup_size

        def run_cleanup_for_every_record(self) -> bool:
            """Return True if each record counts as a use, even if it does not touch the state."""
            return self._run_cleanup_for_every_record

    @check_arguments
    class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
        """Drops expired entries when RocksDB compacts its files."""

        def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None) -> None:
            self._query_time_after_num_entries = at_least(
                "query_time_after_num_entries", query_time_after_num_entries, 0
            )
            self._periodic_compaction_time = periodic_compaction_time or Duration.of_days(30)

        def get_query_time_after_num_entries(self) -> int:
            """Return the number of entries after which the clock is read again."""
            return self._query_time_after_num_entries

        def get_periodic_compaction_time(self) -> Duration:
            """Return the age at which a file is compacted even without any other reason."""
            return self._periodic_compaction_time

    EMPTY_STRATEGY = EmptyCleanupStrategy()

    def __init__(self, strategies: dict[Strategies, CleanupStrategy], is_cleanup_in_background: bool) -> None:
        self._strategies = dict(strategies)
        self._is_cleanup_in_background = is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        """Return True if the backend removes expired entries in its own way where no strategy was chosen."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Return True if full snapshots leave expired entries out."""
        return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
        """Return the chosen strategy, or the default if cleaning in the background is on, or None."""
        chosen = self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP)
        if isinstance(chosen, self.IncrementalCleanupStrategy):
            return chosen
        return self.IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
        """Return the chosen strategy, or the default if cleaning in the background is on, or None."""
        chosen = self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(chosen, self.RocksdbCompactFilterCleanupStrategy):
            return chosen
        return self.RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None


class UpdateType(Enum):
    """Kind of access that starts the life of an entry anew."""

    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class StateVisibility(Enum):
    """Visibility of expired entries that were not removed yet."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class TtlTimeCharacteristic(Enum):
    """The clock by which entries expire."""

    ProcessingTime = 0


@check_arguments
class StateTtlConfig(Settings):
    """The time to live of a state. In lists and maps each element has a life of its own.

    >>> StateTtlConfig.new_builder(Time.minutes(1)).update_ttl_on_read_and_write().build().get_update_type().name
    'OnReadAndWrite'
    """

    UpdateType: TypeAlias = UpdateType
    StateVisibility: TypeAlias = StateVisibility
    TtlTimeCharacteristic: TypeAlias = TtlTimeCharacteristic
    CleanupStrategies: TypeAlias = CleanupStrategies

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Ttl,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        if to_millis(ttl) <= 0:
            raise ValueError(f"the time to live of a state must be positive, not {ttl!r}")
        self._update_type = instance_of("update_type", update_type, UpdateType)
        self._state_visibility = instance_of("state_visibility", state_visibility, StateVisibility)
        self._ttl_time_characteristic = instance_of(
            "ttl_time_characteristic", ttl_time_characteristic, TtlTimeCharacteristic
        )
        self._ttl = ttl
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Ttl) -> StateTtlConfig.Builder:
        """Start from Flink's defaults: renewed by writes, expired values never seen, cleaned in the background."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """Return the kind of access that starts the life of an entry anew."""
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        """Return the visibility of expired entries."""
        return self._state_visibility

    def get_ttl(self) -> Ttl:
        """Return the time to live, as it was given."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Return the clock by which entries expire."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Return True if entries expire at all."""
        return self._update_type is not UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """Return the settings for the removal of expired entries."""
        return self._cleanup_strategies

    @check_arguments
    class Builder:
        """Collects the choices for one StateTtlConfig."""

        def __init__(self, ttl: Ttl) -> None:
            self._ttl = ttl
            self._update_type = UpdateType.OnCreateAndWrite
            self._state_visibility = StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[CleanupStrategies.Strategies, CleanupStrategies.CleanupStrategy] = {}

        def set_ttl(self, ttl: Ttl) -> StateTtlConfig.Builder:
            """Set the time to live."""
            self._ttl = ttl
            return self

        def set_update_type(self, update_type: UpdateType) -> StateTtlConfig.Builder:
            """Set the kind of access that starts the life of an entry anew."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Let writes renew an entry."""
            return self.set_update_type(UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Let reads and writes renew an entry."""
            return self.set_update_type(UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateVisibility) -> StateTtlConfig.Builder:
            """Set the visibility of expired entries."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Show expired entries until they are removed."""
            return self.set_state_visibility(StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Hide expired entries."""
            return self.set_state_visibility(StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(self, ttl_time_characteristic: TtlTimeCharacteristic) -> StateTtlConfig.Builder:
            """Set the clock by which entries expire."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Let entries expire by processing time."""
            return self.set_ttl_time_characteristic(TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Leave expired entries out of full snapshots."""
            strategies = CleanupStrategies.Strategies
            self._strategies[strategies.FULL_STATE_SCAN_SNAPSHOT] = CleanupStrategies.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Check `cleanup_size` entries whenever the state is used, or for every record."""
            self._strategies[CleanupStrategies.Strategies.INCREMENTAL_CLEANUP] = (
                CleanupStrategies.IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int = 1000, periodic_compaction_time: Duration | None = None
        ) -> StateTtlConfig.Builder:
            """Drop expired entries when RocksDB compacts its files, which it does at the latest at the given age."""
            self._strategies[CleanupStrategies.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                CleanupStrategies.RocksdbCompactFilterCleanupStrategy(
                    query_time_after_num_entries, periodic_compaction_time
                )
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Remove expired entries only when they are read, or by a strategy chosen here."""
            self._is_cleanup_in_background = False
            return self

        def build(self) -> StateTtlConfig:
            """Return the configuration."""
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._ttl_time_characteristic,
                self._ttl,
                CleanupStrategies(self._strategies, self._is_cleanup_in_background),
            )
