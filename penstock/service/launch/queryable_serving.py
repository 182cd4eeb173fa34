"""Serves the queryable state of this process's jobs. Jobs with the same options share a server."""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections import Counter
from dataclasses import dataclass, field, replace

from penstock.engine.queryable.queryable_tls import Certificate
from penstock.engine.queryable.server import Queryable, QueryServer
from penstock.errors import ConfigurationError

log = logging.getLogger("penstock.queryable")


@dataclass(unsafe_hash=True)
class QueryableOptions:
    """Options of the server at which clients look up queryable state."""

    enabled: bool = False
    ports: tuple[int, ...] = (9069,)
    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    tls: Certificate = field(default_factory=Certificate)


class Serving:
    """A job's place at a server that several jobs share. The last job to leave closes the server."""

    def __init__(self, options: QueryableOptions) -> None:
        self._key = (options.ports, options.host, options.token, replace(options.tls))
        self._job_id = ""
        with _lock:
            if self._key not in _servers:
                _servers[self._key] = QueryServer(options.host, options.ports, options.token, options.tls.context())
            self._server = _servers[self._key]
            _members[self._key] += 1

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the server."""
        return self._server.address

    def add(self, job_id: str, job: Queryable) -> None:
        """Let clients query this job from now on."""
        self._job_id = job_id
        self._server.jobs[job_id] = job
        log.info("queryable state of job %s is served at %s:%d", job_id, *self.address)

    def leave(self) -> None:
        """Leave the server, because the job has ended or was not started."""
        self._server.jobs.pop(self._job_id, None)
        with _lock:
            _members[self._key] -= 1
            if _members[self._key] == 0:
                _servers.pop(self._key).close()


_Key = tuple[tuple[int, ...], str, str | None, Certificate]
_lock = threading.Lock()
_servers: dict[_Key, QueryServer] = {}
_members: Counter[_Key] = Counter()


def serving(options: QueryableOptions) -> Serving | None:
    """Return a place at the server of these options, or None if they do not enable one. Start the server if needed."""
    if not options.enabled:
        return None
    if options.token is None and not _is_loopback(options.host):
        raise ConfigurationError(
            f"queryable-state.bind-host is {options.host}, which other machines can reach: set "
            "queryable-state.token, which clients must then send, or bind to 127.0.0.1"
        )
    return Serving(options)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
