"""Which of several servers leads. Without rivals it is this one; else a lease on the storage or ZooKeeper decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from penstock.base.storage import Storage
from penstock.errors import ConfigurationError
from penstock.service.server.leadership.fencing_numbers import leader, newest_fence, next_fence
from penstock.service.server.server_options import ServerSettings

Elected = Callable[[int], None]
Deposed = Callable[[], None]


class Election(Protocol):
    """One server's part in an election."""

    def start(self, on_elected: Elected, on_deposed: Deposed) -> None:
        """Take part. `on_elected` gets the number of this leader, which is higher than that of every one before it."""

    def leads(self) -> bool:
        """Whether this server may act at this moment; it knows by its own clock when it may not any more."""

    def leader(self) -> Mapping[str, Any]:
        """What the leader says of itself: `id` and `address`; nothing if none is known."""

    def stop(self) -> None:
        """Take no part any more; the next leader need not wait."""


class Unelected:
    """Stands for the election before it has begun."""

    def start(self, on_elected: Elected, on_deposed: Deposed) -> None:
        """Nobody is elected."""

    def leads(self) -> bool:
        return False

    def leader(self) -> Mapping[str, Any]:
        return {}

    def stop(self) -> None:
        """There is nothing to leave."""


class NoElection:
    """There are no rivals."""

    def __init__(self, storage: Storage, who: Mapping[str, Any]) -> None:
        self._storage = storage
        self._who = who
        self._leads = False

    def start(self, on_elected: Elected, on_deposed: Deposed) -> None:
        fence = next_fence(self._storage, self._who)
        self._leads = True
        on_elected(fence)

    def leads(self) -> bool:
        return self._leads

    def leader(self) -> Mapping[str, Any]:
        return self._who if self._leads else {}

    def stop(self) -> None:
        self._leads = False


def last_leader(storage: Storage) -> Mapping[str, Any]:
    """The last leader, by what it has left on the storage."""
    return leader(storage, newest_fence(storage))


def election_of(settings: ServerSettings, storage: Storage, who: Mapping[str, Any]) -> Election:
    """The election that the options ask for."""
    if settings.ha_type == "storage":
        from penstock.service.server.leadership.storage_lease import LeaseElection

        _check_exclusive(storage)
        return LeaseElection(storage, who, settings.lease_duration / 1000, settings.lease_renewal / 1000)
    if settings.ha_type == "zookeeper":
        from penstock.service.server.leadership.zookeeper import ZooKeeperElection

        return ZooKeeperElection(settings, storage, who)
    return NoElection(storage, who)


def _check_exclusive(storage: Storage) -> None:
    """Raise if two servers could take the lease at the same moment. Local disks always refuse one of them."""
    if storage.local or storage.in_memory or storage.is_exclusive():
        return
    raise ConfigurationError(
        f"high-availability.type is 'storage', and high-availability.storageDir, '{storage.url()}', lets two servers "
        "create the same file at the same moment, so that both would lead. Set high-availability.type to 'zookeeper', "
        "or high-availability.storageDir to a storage that refuses one of them, such as S3, HDFS or a disk that all "
        "servers share (see docs/storage.md)"
    )
