"""Connections to Cassandra: their settings, how to open them, and the meaning of the driver's errors."""

from __future__ import annotations

import time
from enum import Enum
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.base.libraries import optional_library
from penstock.connectors.retrying import Retries
from penstock.errors import AccessDenied, ConnectorError, NotFound, SchemaMismatch

DEFAULT_PORT = 9042
RETRIES = Retries(attempts=18, longest=2.0)
"""Attempts over half a minute, the time that a node may take to restart."""


def driver(module: str = "cassandra") -> Any:
    """Import the driver's package, or one of its modules."""
    return optional_library(module, "Cassandra needs the package cassandra-driver", "cassandra")


class ConsistencyLevel(Enum):
    """The number of replicas that must accept a write before it counts."""

    ANY = 0
    ONE = 1
    TWO = 2
    THREE = 3
    QUORUM = 4
    ALL = 5
    LOCAL_QUORUM = 6
    EACH_QUORUM = 7
    SERIAL = 8
    LOCAL_SERIAL = 9
    LOCAL_ONE = 10


@check_arguments
class ClusterBuilder:
    """The address of a cluster. Override `build_cluster` for settings that the arguments cannot express."""

    def __init__(
        self,
        *hosts: str,
        port: int = DEFAULT_PORT,
        user: str | None = None,
        password: str | None = None,
        key_space: str | None = None,
        **settings: Any,
    ) -> None:
        """Take the contact points as `hosts`, and arguments of the driver's Cluster as `settings`."""
        if not all(isinstance(host, str) and host for host in hosts):
            raise ValueError(f"hosts are names or addresses, not {hosts!r}")
        if not 0 < port < 1 << 16:
            raise ValueError(f"a port is between 1 and 65535, not {port!r}")
        if (user is None) != (password is None):
            raise ValueError("a user name and a password must be given together")
        self.hosts = hosts
        self.port = port
        self.user = user
        self.password = password
        self.key_space = key_space
        self.settings = settings

    def __repr__(self) -> str:
        return f"ClusterBuilder({self.address})"

    @property
    def address(self) -> str:
        """The cluster's address without secrets."""
        return f"{','.join(self.hosts)}:{self.port}" if self.hosts else type(self).__name__

    def build_cluster(self) -> Any:
        """Return a cassandra.cluster.Cluster that is not connected yet."""
        if not self.hosts:
            raise ValueError("a ClusterBuilder needs hosts, or must override build_cluster")
        cluster, policies = driver("cassandra.cluster"), driver("cassandra.policies")
        settings: dict[str, Any] = {"reconnection_policy": policies.ConstantReconnectionPolicy(1.0, None)}
        if "execution_profiles" not in self.settings and "load_balancing_policy" not in self.settings:
            policy = policies.TokenAwarePolicy(policies.DCAwareRoundRobinPolicy())
            profile = cluster.ExecutionProfile(load_balancing_policy=policy)
            settings["execution_profiles"] = {cluster.EXEC_PROFILE_DEFAULT: profile}
        if self.user is not None:
            settings["auth_provider"] = driver("cassandra.auth").PlainTextAuthProvider(self.user, self.password)
        return cluster.Cluster(list(self.hosts), port=self.port, **{**settings, **self.settings})


class Connection:
    """An open session. Every request can carry the time of its write, so a late retry does not hide a newer write."""

    def __init__(self, builder: ClusterBuilder) -> None:
        self.builder = builder
        self._stamp = 0
        self.session = RETRIES.call(self._connect, f"connecting to Cassandra at {builder.address}", is_transient)

    def _connect(self) -> Any:
        self._cluster = self.builder.build_cluster()
        self._cluster.timestamp_generator = lambda: self._stamp
        try:
            return self._cluster.connect(self.builder.key_space)
        except Exception as error:
            self._cluster.shutdown()
            raise explain_error(error, self.builder) from error

    def next_stamp(self) -> int:
        """Return the time in microseconds, but at least the last stamp plus one."""
        return max(self._stamp + 1, time.time_ns() // 1000)

    def send(self, statement: Any, stamp: int, trace: bool = False) -> Any:
        """Begin a request and return its future."""
        self._stamp = stamp
        return self.session.execute_async(statement, trace=trace)

    def run(self, statement: Any, parameters: Any = None) -> Any:
        """Execute a statement at once, with repeated attempts."""
        return RETRIES.call(lambda: self._run(statement, parameters), f"asking {self.builder.address}", is_transient)

    def _run(self, statement: Any, parameters: Any) -> Any:
        self._stamp = self.next_stamp()
        try:
            return self.session.execute(statement, parameters)
        except Exception as error:
            raise explain_error(error, self.builder) from error

    def prepare(self, query: str) -> Any:
        """Let the cluster check a query and remember it."""

        def attempt() -> Any:
            try:
                return self.session.prepare(query)
            except Exception as error:
                raise explain_error(error, self.builder, query) from error

        return RETRIES.call(attempt, f"preparing a query at {self.builder.address}", is_transient)

    def close(self) -> None:
        self._cluster.shutdown()


def is_transient(error: Exception) -> bool:
    """Return True if a node that was away or busy may succeed the next time."""
    errors, cluster, connection = driver(), driver("cassandra.cluster"), driver("cassandra.connection")
    busy = driver("cassandra.protocol")
    return isinstance(
        error,
        (
            *(errors.Unavailable, errors.Timeout, errors.WriteFailure, errors.OperationTimedOut),
            *(cluster.NoHostAvailable, connection.ConnectionException),
            *(busy.OverloadedErrorMessage, busy.IsBootstrappingErrorMessage, busy.ServerError, OSError),
        ),
    )


def explain_error(error: Exception, builder: ClusterBuilder, query: str = "") -> Exception:
    """Return an error with the reason for the cluster's refusal, if it is final; otherwise the error itself."""
    errors, protocol = driver(), driver("cassandra.protocol")
    text, where = f"{error}", f"Cassandra at {builder.address}"
    causes = [error, *getattr(error, "errors", {}).values()] if hasattr(error, "errors") else [error]
    if any(isinstance(cause, errors.AuthenticationFailed) for cause in causes):
        return AccessDenied(f"{where} rejected the login of user {builder.user!r}: {text}")
    if isinstance(error, errors.Unauthorized):
        return AccessDenied(f"{where} denied permission: {text}")
    asked = f" for {query!r}" if query else ""
    if isinstance(error, protocol.SyntaxException):
        return ConnectorError(f"{where} rejected the statement {query!r}: {text}")
    if isinstance(error, errors.InvalidRequest):
        kind = next((kind for sign, kind in _SIGNS.items() if sign in text.lower()), ConnectorError)
        return kind(f"{where} says no{asked}: {text}")
    return error


_SIGNS: dict[str, type[ConnectorError]] = {
    "does not exist": NotFound,
    "unconfigured table": NotFound,
    "undefined column": SchemaMismatch,
    "unknown identifier": SchemaMismatch,
    "undefined name": SchemaMismatch,
}
