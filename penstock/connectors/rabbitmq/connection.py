"""Connections to RabbitMQ: their settings, how to open them, and the meaning of their errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from penstock.base.arguments import check_arguments
from penstock.base.libraries import optional_library
from penstock.connectors.retrying import Retries
from penstock.errors import AccessDenied, ConnectorError, NotFound, SchemaMismatch

DEFAULT_PORT = 5672


def pika() -> Any:
    """Import the client library."""
    return optional_library("pika", "RabbitMQ needs the package pika", "rabbitmq")


@check_arguments
@dataclass(frozen=True)
class RMQConnectionConfig:
    """The address of a broker, and the settings of a connection. The client and the broker choose values for None.

    Times are in milliseconds, except for the heartbeat, which is in seconds.
    """

    host: str | None = None
    port: int = DEFAULT_PORT
    virtual_host: str = "/"
    user_name: str = "guest"
    password: str = "guest"
    uri: str | None = None
    network_recovery_interval: int | None = None
    automatic_recovery: bool = True
    topology_recovery: bool = True
    connection_timeout: int | None = None
    requested_channel_max: int | None = None
    requested_frame_max: int | None = None
    requested_heartbeat: int | None = None
    prefetch_count: int | None = None

    def __repr__(self) -> str:
        return f"RMQConnectionConfig({self.address})"

    @property
    def address(self) -> str:
        """The broker's address without secrets."""
        if self.uri is None:
            return f"{self.host}:{self.port}{'' if self.virtual_host == '/' else '/' + self.virtual_host}"
        parts = urlsplit(self.uri)
        return f"{parts.hostname or 'localhost'}:{parts.port or DEFAULT_PORT}{parts.path}"

    def get_host(self) -> str | None:
        """Return the broker's host; None if it is not set."""
        return self.host

    def get_port(self) -> int:
        """Return the broker's port. It has no effect if a URI is set."""
        return self.port

    def get_virtual_host(self) -> str:
        """Return the name of the virtual host. It has no effect if a URI is set."""
        return self.virtual_host

    def get_user_name(self) -> str:
        """Return the name of the user. It has no effect if a URI is set."""
        return self.user_name

    def get_password(self) -> str:
        """Return the password of the user. It has no effect if a URI is set."""
        return self.password

    def get_uri(self) -> str | None:
        """Return the URI; None if it is not set."""
        return self.uri

    def get_network_recovery_interval(self) -> int | None:
        """Return the milliseconds before the first attempt to reopen a lost connection; None if they are not set."""
        return self.network_recovery_interval

    def is_automatic_recovery(self) -> bool:
        """Return True if a lost connection is opened again."""
        return self.automatic_recovery

    def is_topology_recovery(self) -> bool:
        """Return True if the queue is declared again on a new connection."""
        return self.topology_recovery

    def get_connection_timeout(self) -> int | None:
        """Return the timeout for opening a connection, in milliseconds; None if it is not set."""
        return self.connection_timeout

    def get_requested_channel_max(self) -> int | None:
        """Return the largest number of channels to ask for; None if it is not set."""
        return self.requested_channel_max

    def get_requested_frame_max(self) -> int | None:
        """Return the largest size of a frame to ask for, in bytes; None if it is not set."""
        return self.requested_frame_max

    def get_requested_heartbeat(self) -> int | None:
        """Return the interval of heartbeats to ask for, in seconds; None if it is not set."""
        return self.requested_heartbeat

    def get_prefetch_count(self) -> int | None:
        """Return the number of messages that the broker may send without acknowledgement; None if it is not set."""
        return self.prefetch_count

    @check_arguments
    class Builder:
        """Builds an RMQConnectionConfig. It needs a host or a URI; the other settings have the broker's defaults."""

        def __init__(self) -> None:
            self._chosen: dict[str, Any] = {}

        def set_host(self, host: str) -> RMQConnectionConfig.Builder:
            """Set the broker's host. It excludes `set_uri`."""
            return self._set("host", _text(host, "host"))

        def set_port(self, port: int) -> RMQConnectionConfig.Builder:
            """Set the broker's port: 5672 by default. It has no effect if a URI is set."""
            if not 0 < port < 1 << 16:
                raise ValueError(f"a port is between 1 and 65535, not {port!r}")
            return self._set("port", port)

        def set_virtual_host(self, vhost: str) -> RMQConnectionConfig.Builder:
            """Set the name of the virtual host: `/` by default. It has no effect if a URI is set."""
            return self._set("virtual_host", _text(vhost, "virtual host"))

        def set_user_name(self, user_name: str) -> RMQConnectionConfig.Builder:
            """Set the name of the user: `guest` by default. It has no effect if a URI is set."""
            return self._set("user_name", user_name)

        def set_password(self, password: str) -> RMQConnectionConfig.Builder:
            """Set the password of the user: `guest` by default. It has no effect if a URI is set."""
            return self._set("password", password)

        def set_uri(self, uri: str) -> RMQConnectionConfig.Builder:
            """Set an address such as amqp://user:password@host:port/virtual-host."""
            if urlsplit(uri).scheme not in ("amqp", "amqps"):
                raise ValueError("a RabbitMQ URI begins with amqp:// or amqps://")
            return self._set("uri", uri)

        def set_topology_recovery_enabled(self, topology_recovery_enabled: bool) -> RMQConnectionConfig.Builder:
            """Choose whether the queue is declared again on a new connection."""
            return self._set("topology_recovery", topology_recovery_enabled)

        def set_requested_heartbeat(self, requested_heartbeat: int) -> RMQConnectionConfig.Builder:
            """Set the interval of heartbeats, in seconds; 0 turns them off."""
            return self._set("requested_heartbeat", _not_negative(requested_heartbeat, "heartbeat"))

        def set_requested_frame_max(self, requested_frame_max: int) -> RMQConnectionConfig.Builder:
            """Set the largest size of a frame to ask the broker for, in bytes."""
            return self._set("requested_frame_max", _not_negative(requested_frame_max, "frame size"))

        def set_requested_channel_max(self, requested_channel_max: int) -> RMQConnectionConfig.Builder:
            """Set the largest number of channels to ask the broker for."""
            return self._set("requested_channel_max", _not_negative(requested_channel_max, "number of channels"))

        def set_network_recovery_interval(self, network_recovery_interval: int) -> RMQConnectionConfig.Builder:
            """Set the time, in milliseconds, before the first attempt to reopen a lost connection.

            Later attempts wait longer.
            """
            checked = _not_negative(network_recovery_interval, "network recovery interval")
            return self._set("network_recovery_interval", checked)

        def set_connection_timeout(self, connection_timeout: int) -> RMQConnectionConfig.Builder:
            """Set the timeout for opening a connection, in milliseconds."""
            return self._set("connection_timeout", _not_negative(connection_timeout, "connection timeout"))

        def set_automatic_recovery(self, automatic_recovery: bool) -> RMQConnectionConfig.Builder:
            """Choose whether a lost connection is opened again.

            If not, the job fails, and its restart strategy decides.
            """
            return self._set("automatic_recovery", automatic_recovery)

        def set_prefetch_count(self, prefetch_count: int) -> RMQConnectionConfig.Builder:
            """Set the number of messages that the broker may send ahead of their acknowledgement.

            With checkpoints, this many messages at most can be read between two of them. 0, the default, means no
            limit.
            """
            return self._set("prefetch_count", _not_negative(prefetch_count, "prefetch count"))

        def build(self) -> RMQConnectionConfig:
            """Return the settings; raise ValueError unless there is either a host or a URI."""
            if "uri" not in self._chosen and "host" not in self._chosen:
                raise ValueError("a connection to RabbitMQ needs set_host or set_uri")
            if "uri" in self._chosen and "host" in self._chosen:
                raise ValueError("set_host and set_uri exclude each other")
            return RMQConnectionConfig(**self._chosen)

        def _set(self, name: str, value: Any) -> RMQConnectionConfig.Builder:
            self._chosen[name] = value
            return self


def _text(value: str, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"the {what} is a string that is not empty, not {value!r}")
    return value


def _not_negative(value: int, what: str) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"the {what} is a number of at least 0, not {value!r}")
    return value


class Link:
    """One connection with one channel. It is opened on first use, and again after it was lost.

    `prepare` is called with every new channel, and with True if the queue is to be declared on it.
    """

    def __init__(self, config: RMQConnectionConfig, prepare: Callable[[Any, bool], None]) -> None:
        self.config = config
        self.channel: Any = None
        self.connection: Any = None
        self._prepare = prepare
        self._first = True
        delay = config.network_recovery_interval
        attempts = 6 if config.automatic_recovery else 1
        self._retries = Retries(attempts) if delay is None else Retries(attempts, delay / 1000)

    def call(self, action: Callable[[], Any], what: str) -> Any:
        """Run an action with an open channel. If the connection is lost, open another one and run the action again."""

        def attempt() -> Any:
            if self.channel is None:
                self._open()
            return action()

        return self._retries.call(lambda: self._call(attempt), f"{what} at {self.config.address}", is_lost)

    def _call(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:
            self.drop()
            meaning = explain_error(error, self.config)
            if meaning is not None:
                raise meaning from error
            raise

    def _open(self) -> None:
        client = pika()
        self.connection = client.BlockingConnection(_parameters(client, self.config))
        self.channel = self.connection.channel()
        self._prepare(self.channel, self._first or self.config.topology_recovery)
        self._first = False

    def drop(self) -> None:
        """Close the connection, which may already be lost."""
        connection, self.connection, self.channel = self.connection, None, None
        if connection is not None and connection.is_open:
            try:
                connection.close()
            except Exception as error:
                if not is_lost(error):
                    raise


def _parameters(client: Any, config: RMQConnectionConfig) -> Any:
    if config.uri is not None:
        parameters = client.URLParameters(config.uri)
    else:
        parameters = client.ConnectionParameters(
            config.host,
            config.port,
            config.virtual_host,
            client.PlainCredentials(config.user_name, config.password),
        )
    if config.requested_heartbeat is not None:
        parameters.heartbeat = config.requested_heartbeat
    if config.requested_channel_max is not None:
        parameters.channel_max = config.requested_channel_max
    if config.requested_frame_max is not None:
        parameters.frame_max = config.requested_frame_max
    if config.connection_timeout is not None:
        parameters.socket_timeout = config.connection_timeout / 1000
        parameters.stack_timeout = config.connection_timeout / 1000 + 5
    return parameters


def is_lost(error: Exception) -> bool:
    """Return True if the error means that the connection is gone, so that another one may work."""
    errors = pika().exceptions
    return isinstance(error, (errors.AMQPError, OSError))


_MEANINGS: dict[int, type[ConnectorError]] = {403: AccessDenied, 404: NotFound}


def explain_error(error: Exception, config: RMQConnectionConfig) -> ConnectorError | None:
    """Return the reason for the broker's refusal if another attempt would not help; None otherwise."""
    errors = pika().exceptions
    if isinstance(error, (errors.ProbableAuthenticationError, errors.AuthenticationError)):
        who = "the user of the URI" if config.uri else f"user {config.user_name!r}"
        return AccessDenied(f"RabbitMQ at {config.address} rejected the login of {who}: {error}")
    if isinstance(error, errors.ProbableAccessDeniedError) or getattr(error, "reply_code", 0) == 530:
        kind = NotFound if "not found" in str(error) else AccessDenied
        return kind(f"RabbitMQ at {config.address} refuses virtual host {config.virtual_host!r}: {error}")
    if "inequivalent arg" in str(error):
        return SchemaMismatch(
            f"RabbitMQ at {config.address} already has a queue with this name with other properties: {error}"
        )
    meaning = _MEANINGS.get(getattr(error, "reply_code", 0))
    return meaning(f"RabbitMQ at {config.address} rejected the request: {error}") if meaning is not None else None
