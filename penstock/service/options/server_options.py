"""The options of a server, under Flink's names where Flink has them, and the settings that result from them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.base.options.option import Option
from penstock.base.options.parsers import not_negative, parse_memory_size, positive, some_text, some_time, words
from penstock.errors import ConfigurationError

HOME_VARIABLE = "PENSTOCK_HOME"


def _seconds(text: str) -> int:
    """Return milliseconds for a number of seconds, which is Flink's form, or for a duration with a unit."""
    return int(text) * 1000 if text.strip().isdigit() else some_time(text)


def _folders(text: str) -> tuple[str, ...]:
    return tuple(some_text(part.strip()) for part in text.split(","))


def _how_many(text: str) -> int:
    number = int(text)
    if number == 0 or number < -1:
        raise ValueError("it must be at least 1, or -1 for all")
    return number


_KINDS = words("none", "storage", "zookeeper")

HA_TYPE = Option("high-availability.type", _KINDS, "none", ("high-availability", "high-availability.mode"))
HA_STORAGE = Option("high-availability.storageDir", some_text)
CLUSTER_ID = Option("high-availability.cluster-id", some_text, "default")
STANDBY = Option("high-availability.standby", words("redirect", "forward"), "redirect")
LEASE_DURATION = Option("high-availability.storage.lease-duration", some_time, "15 s")
LEASE_RENEWAL = Option("high-availability.storage.retry-period", some_time, "3 s")
ZK_QUORUM = Option("high-availability.zookeeper.quorum", some_text)
ZK_ROOT = Option("high-availability.zookeeper.path.root", some_text, "/penstock")
ZK_SESSION = Option("high-availability.zookeeper.client.session-timeout", some_time, "60 s")
JOBS_EXPIRE = Option("jobstore.expiration-time", _seconds, "3600")
JOBS_KEPT = Option("jobstore.max-capacity", not_negative, "2147483647")
ARCHIVE = Option("jobmanager.archive.fs.dir", some_text)
HISTORY = Option("historyserver.archive.fs.dir", _folders)
HISTORY_REFRESH = Option("historyserver.archive.fs.refresh-interval", some_time, "10 s")
HISTORY_KEPT = Option("historyserver.archive.retained-jobs", _how_many, "-1")
STARTS = Option("penstock.server.simultaneous-starts", positive)
BACKOFF = Option("penstock.server.restart.initial-backoff", some_time, "1 s")
MAX_BACKOFF = Option("penstock.server.restart.max-backoff", some_time, "1 min")
BACKOFF_RESET = Option("penstock.server.restart.reset-backoff-threshold", some_time, "10 min")
DRIVER_TIMEOUT = Option("penstock.server.driver-timeout", some_time, "3 min")
SUBMIT_WAIT = Option("penstock.server.submission-timeout", some_time, "30 s")
RESCALE_WAIT = Option("penstock.server.rescaling-timeout", some_time, "10 min")
LOG_SIZE = Option("penstock.server.log.max-size", parse_memory_size, "10 mb")
LOG_FILES = Option("penstock.server.log.max-files", positive, "5")
REQUIREMENTS = Option("python.requirements", some_text)
PYTHON = Option("python.executable", some_text, None, ("python.client.executable",))

OPTIONS: list[Option[Any]] = [
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
        kind = HA_TYPE.value(configuration)
        given = HA_STORAGE.of(configuration)
        if kind != "none" and given is None:
            raise ConfigurationError(
                f"high-availability.type is {kind}, and high-availability.storageDir is not set: name a storage "
                "that all servers share"
            )
        below = given or (data / "storage").as_uri()
        renewal, duration = LEASE_RENEWAL.value(configuration), LEASE_DURATION.value(configuration)
        if 2 * renewal > duration:
            raise ConfigurationError(
                f"a lease of {duration} ms cannot be renewed every {renewal} ms: "
                f"{LEASE_RENEWAL.name} must be at most half of {LEASE_DURATION.name}"
            )
        return cls(
            data=data,
            configuration=configuration,
            storage=f"{below.rstrip('/')}/{CLUSTER_ID.value(configuration)}",
            ha_type=kind,
            lease_duration=duration,
            lease_renewal=renewal,
            jobs_expire=JOBS_EXPIRE.value(configuration),
            jobs_kept=JOBS_KEPT.value(configuration),
            archive=(archive := ARCHIVE.of(configuration)),
            history=HISTORY.of(configuration) or ((archive,) if archive is not None else ()),
            history_refresh=HISTORY_REFRESH.value(configuration),
            history_kept=HISTORY_KEPT.value(configuration),
            starts=STARTS.of(configuration) or max(2, os.cpu_count() or 1),
            backoff=BACKOFF.value(configuration),
            max_backoff=MAX_BACKOFF.value(configuration),
            backoff_reset=BACKOFF_RESET.value(configuration),
            driver_timeout=DRIVER_TIMEOUT.value(configuration),
            submit_wait=SUBMIT_WAIT.value(configuration),
            rescale_wait=RESCALE_WAIT.value(configuration),
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
