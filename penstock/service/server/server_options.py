"""The options of a server, under Flink's names where Flink has them, and the settings that result from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common.configuration import parse_duration
from penstock.errors import ConfigurationError
from penstock.service.launch.options import choice, not_negative, parse_memory_size, positive, some_text

HOME_VARIABLE = "PENSTOCK_HOME"


@dataclass(frozen=True)
class ServerOption:
    """An option: its name, the parser of its text, its default, and other names for it."""

    name: str
    read: Callable[[str], Any]
    default: str | None = None
    others: tuple[str, ...] = ()

    def of(self, configuration: Mapping[str, str]) -> Any:
        """Return the value in a configuration, or the default, or None. Raise ConfigurationError for a bad text."""
        given = next((configuration[name] for name in (self.name, *self.others) if name in configuration), None)
        text = self.default if given is None else given
        if text is None:
            return None
        try:
            return self.read(text)
        except ValueError as error:
            raise ConfigurationError(f"option {self.name} cannot be {text!r}: {error}") from None


def _some_time(text: str) -> int:
    millis = parse_duration(text)
    if millis <= 0:
        raise ValueError("it must be at least 1 ms")
    return millis


def _seconds(text: str) -> int:
    """Return milliseconds for a number of seconds, which is Flink's form, or for a duration with a unit."""
    return int(text) * 1000 if text.strip().isdigit() else _some_time(text)


def _folders(text: str) -> tuple[str, ...]:
    return tuple(some_text(part.strip()) for part in text.split(","))


def _how_many(text: str) -> int:
    number = int(text)
    if number == 0 or number < -1:
        raise ValueError("it must be at least 1, or -1 for all")
    return number


_KINDS = choice({"none": "none", "storage": "storage", "zookeeper": "zookeeper"})

HA_TYPE = ServerOption("high-availability.type", _KINDS, "none", ("high-availability", "high-availability.mode"))
HA_STORAGE = ServerOption("high-availability.storageDir", some_text)
CLUSTER_ID = ServerOption("high-availability.cluster-id", some_text, "default")
STANDBY = ServerOption("high-availability.standby", choice({"redirect": "redirect", "forward": "forward"}), "redirect")
LEASE_DURATION = ServerOption("high-availability.storage.lease-duration", _some_time, "15 s")
LEASE_RENEWAL = ServerOption("high-availability.storage.retry-period", _some_time, "3 s")
ZK_QUORUM = ServerOption("high-availability.zookeeper.quorum", some_text)
ZK_ROOT = ServerOption("high-availability.zookeeper.path.root", some_text, "/penstock")
ZK_SESSION = ServerOption("high-availability.zookeeper.client.session-timeout", _some_time, "60 s")
JOBS_EXPIRE = ServerOption("jobstore.expiration-time", _seconds, "3600")
JOBS_KEPT = ServerOption("jobstore.max-capacity", not_negative, "2147483647")
ARCHIVE = ServerOption("jobmanager.archive.fs.dir", some_text)
HISTORY = ServerOption("historyserver.archive.fs.dir", _folders)
HISTORY_REFRESH = ServerOption("historyserver.archive.fs.refresh-interval", _some_time, "10 s")
HISTORY_KEPT = ServerOption("historyserver.archive.retained-jobs", _how_many, "-1")
STARTS = ServerOption("penstock.server.simultaneous-starts", positive)
BACKOFF = ServerOption("penstock.server.restart.initial-backoff", _some_time, "1 s")
MAX_BACKOFF = ServerOption("penstock.server.restart.max-backoff", _some_time, "1 min")
BACKOFF_RESET = ServerOption("penstock.server.restart.reset-backoff-threshold", _some_time, "10 min")
DRIVER_TIMEOUT = ServerOption("penstock.server.driver-timeout", _some_time, "3 min")
SUBMIT_WAIT = ServerOption("penstock.server.submission-timeout", _some_time, "30 s")
RESCALE_WAIT = ServerOption("penstock.server.rescaling-timeout", _some_time, "10 min")
LOG_SIZE = ServerOption("penstock.server.log.max-size", parse_memory_size, "10 mb")
LOG_FILES = ServerOption("penstock.server.log.max-files", positive, "5")
REQUIREMENTS = ServerOption("python.requirements", some_text)
PYTHON = ServerOption("python.executable", some_text, None, ("python.client.executable",))

OPTIONS = [
    HA_TYPE,
    HA_STORAGE,
    CLUSTER_ID,
    STANDBY,
    LEASE_DURATION,
    LEASE_RENEWAL,
    ZK_QUORUM,
    ZK_ROOT,
    ZK_SESSION,
    JOBS_EXPIRE,
    JOBS_KEPT,
    ARCHIVE,
    HISTORY,
    HISTORY_REFRESH,
    HISTORY_KEPT,
    STARTS,
    BACKOFF,
    MAX_BACKOFF,
    BACKOFF_RESET,
    DRIVER_TIMEOUT,
    SUBMIT_WAIT,
    RESCALE_WAIT,
    LOG_SIZE,
    LOG_FILES,
    REQUIREMENTS,
    PYTHON,
]
"""All options of the server itself. The options of REST are in `penstock.service.rest`."""


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server. Times are in milliseconds."""

    data: Path
    """The folder on this machine with logs, working folders and control sockets."""
    configuration: Mapping[str, str]
    """The complete configuration of the server. Jobs inherit it, except for the server's own options."""
    storage: str
    """The URL of the register, which all servers of a cluster share."""
    ha_type: str = "none"
    lease_duration: int = 15_000
    lease_renewal: int = 3_000
    jobs_expire: int = 3_600_000
    jobs_kept: int = 2**31 - 1
    archive: str | None = None
    """The URL of the folder for archives of ended jobs, or None for no archives."""
    history: tuple[str, ...] = ()
    """The URLs of the folders from which archives are read."""
    history_refresh: int = 10_000
    history_kept: int = -1
    starts: int = 2
    backoff: int = 1_000
    max_backoff: int = 60_000
    backoff_reset: int = 600_000
    driver_timeout: int = 180_000
    submit_wait: int = 30_000
    rescale_wait: int = 600_000

    @classmethod
    def of(cls, data: Path, configuration: Mapping[str, str]) -> ServerSettings:
        """Read the options. Raise ConfigurationError for a fault."""
        kind = HA_TYPE.of(configuration)
        given = HA_STORAGE.of(configuration)
        if kind != "none" and given is None:
            raise ConfigurationError(
                f"high-availability.type is {kind}, and high-availability.storageDir is not set: name a storage "
                "that all servers share"
            )
        below = given or (data / "storage").as_uri()
        renewal, duration = LEASE_RENEWAL.of(configuration), LEASE_DURATION.of(configuration)
        if 2 * renewal > duration:
            raise ConfigurationError(
                f"a lease of {duration} ms cannot be renewed every {renewal} ms: "
                f"{LEASE_RENEWAL.name} must be at most half of {LEASE_DURATION.name}"
            )
        return cls(
            data=data,
            configuration=configuration,
            storage=f"{below.rstrip('/')}/{CLUSTER_ID.of(configuration)}",
            ha_type=kind,
            lease_duration=duration,
            lease_renewal=renewal,
            jobs_expire=JOBS_EXPIRE.of(configuration),
            jobs_kept=JOBS_KEPT.of(configuration),
            archive=(archive := ARCHIVE.of(configuration)),
            history=HISTORY.of(configuration) or ((archive,) if archive is not None else ()),
            history_refresh=HISTORY_REFRESH.of(configuration),
            history_kept=HISTORY_KEPT.of(configuration),
            starts=STARTS.of(configuration) or max(2, os.cpu_count() or 1),
            backoff=BACKOFF.of(configuration),
            max_backoff=MAX_BACKOFF.of(configuration),
            backoff_reset=BACKOFF_RESET.of(configuration),
            driver_timeout=DRIVER_TIMEOUT.of(configuration),
            submit_wait=SUBMIT_WAIT.of(configuration),
            rescale_wait=RESCALE_WAIT.of(configuration),
        )


_SERVERS_OWN = (
    "rest.",
    "web.",
    "security.rest.",
    "security.ssl.rest.",
    "high-availability",
    "jobstore.",
    "jobmanager.archive.",
    "historyserver.",
)


def job_options(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the options that jobs inherit from the server, without those of the server's own access and protection."""
    return {name: value for name, value in configuration.items() if not name.startswith(_SERVERS_OWN)}


def default_data() -> Path:
    """Return the default folder of a server."""
    return Path(os.environ.get(HOME_VARIABLE) or Path.home() / ".penstock").absolute()
