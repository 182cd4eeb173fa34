"""Leader election among servers: without rivals, by a lease on the storage, or with ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from penstock.base.storage import Storage
from penstock.errors import ConfigurationError
from penstock.service.options.server_options import ServerSettings
from penstock.service.server.leadership.fencing_numbers import leader, newest_fence, next_fence

Elected = Callable[[int], None]
Deposed = Callable[[], None]


class Election(Protocol):
    """One server's part in an election."""

    def start(self, on_elected: Elected, on_deposed: Deposed) -> None:
        """Take part in the election.

        `on_elected` gets the number of this leader, which is higher than the numbers of all earlier leaders.
        """

    def leads(self) -> bool:
        """Return True if this server may act now. It knows by its own clock when its leadership ends."""

    def leader(self) -> Mapping[str, Any]:
        """Return the `id` and `address` of the leader, or an empty mapping if no leader is known."""

    def stop(self) -> None:
        """Leave the election. The next leader need not wait."""


class Unelected:
    """The election of a server that has not started yet: nobody leads."""

    def start(self, on_elected: Elected, on_deposed: Deposed) -> None:
        """Do nothing: nobody is elected."""

    def leads(self) -> bool:
        return False

    def leader(self) -> Mapping[str, Any]:
        return {}

    def stop(self) -> None:
        """Do nothing: there is no election to leave."""


class NoElection:
    """The election of a server without rivals: it leads from start to stop."""

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
    """Return the `id` and `address` of the last leader, as it stored them on the storage."""
    return leader(storage, newest_fence(storage))


def election_of(settings: ServerSettings, storage: Storage, who: Mapping[str, Any]) -> Election:
    """Return the election that the options select."""
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
        f"high-availability.type is 'storage', and high-availability.storageDir, '{storage.url()}', allows two "
        "servers to create the same file at the same moment, so both would become leader. Set "
        "high-availability.type to 'zookeeper', "
        "or high-availability.storageDir to a storage on which only one of them succeeds, such as S3, HDFS or a "
        "disk that all "
        "servers share (see docs/storage.md)"
    )
