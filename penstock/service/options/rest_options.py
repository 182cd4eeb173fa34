"""The options of the REST interface, under Flink's names where Flink has them.

Each option is one row of `OPTIONS`. `docs/configuration.md` shows the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.base.options.option import Option, Parser, keep
from penstock.base.options.parsers import parse_duration, parse_memory_size, positive, some_text, some_time, truth
from penstock.engine.observe.profiling import ProfileOrder
from penstock.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
_LOOPBACK_NAMES = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Tls:
    """The certificate and the key, as PEM files."""

    enabled: bool = False
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Tokens:
    """The tokens for reading and operating. If neither is set, everybody may do everything."""

    read: str | None = field(default=None, repr=False)
    operate: str | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.read is not None or self.operate is not None


@dataclass(frozen=True)
class FlameSettings:
    """The settings of flame graphs. Times are in milliseconds."""

    enabled: bool = True
    samples: int = 100
    delay: int = 50
    """Time between two samples."""
    depth: int = 100
    refresh: int = 60_000
    """Age of a graph after which a request begins a new one."""
    cleanup: int = 600_000
    """Age at which a graph is deleted."""

    @property
    def order(self) -> ProfileOrder:
        """The order with which a job is profiled."""
        return ProfileOrder(self.samples, self.delay, self.depth)


@dataclass(frozen=True)
class RestSettings:
    """The settings of the REST server. Times are in milliseconds, sizes in bytes."""

    address: str | None = None
    """The name under which clients reach the server, if it differs from the bind address."""
    bind_address: str = LOOPBACK
    ports: tuple[int, ...] = (8081,)
    """Ports to try, in this order; 0 means any free port."""
    tls: Tls = field(default_factory=Tls)
    tokens: Tokens = field(default_factory=Tokens)
    token_pause: int = 30_000
    """Longest wait of an address that sent many wrong tokens; 0 means no wait."""
    owner_secret: str | None = field(default=None, repr=False)
    """The secret with which the user who started the server is recognised: see `server_secret`."""
    max_content: int = 100 << 20
    patience: int = 60_000
    """Longest time between two parts of a request."""
    max_connections: int = 1000
    remember: int = 300_000
    """Time for which the outcome of an asynchronous operation is remembered."""
    submit: bool = False
    cancel: bool = True
    refresh_millis: int = 3000
    dashboard: Path | None = None
    allow_origin: str | None = None
    flame: FlameSettings = field(default_factory=FlameSettings)

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.bind_address in _LOOPBACK_NAMES

    @property
    def origin(self) -> str | None:
        """The sites whose pages may read answers: by default all sites, as in Flink, or none if tokens are required."""
        if self.allow_origin is not None:
            return self.allow_origin or None
        return None if self.tokens else "*"


# --- values of options ---
def _port(text: str) -> int:
    port = int(text) if re.fullmatch(r"\s*\d{1,5}\s*", text) else -1
    if not 0 <= port < 1 << 16:
        raise ValueError("it must be a port: a whole number from 0 to 65535")
    return port


def _one_port(text: str) -> tuple[int, ...]:
    return (_port(text),)


def _ports(text: str) -> tuple[int, ...]:
    """Return the ports in a list of ports and ranges, such as `8081,8085-8090`."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ports = range(_port(first), _port(last) + 1) if dash else [_port(first)]
        found.extend(ports)
    if not found:
        raise ValueError("the range of ports is empty")
    return tuple(found)


def _path(text: str) -> Path:
    return Path(some_text(text)).expanduser()


def _token(text: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]{8,}", text):
        raise ValueError("a token has at least 8 characters of ASCII without blanks")
    return text


# --- the table ---
def _option(
    name: str, field: str, parse: Parser[Any], default: str | None = None, others: tuple[str, ...] = ()
) -> Option[Any]:
    """Return an option that sets a field of `RestSettings`, or `part.field` of one of its parts."""
    return Option(name, parse, default, others, keep(field))


OPTIONS: list[Option[Any]] = [
    _option("rest.address", "address", some_text, None, ("jobmanager.rpc.address",)),
    _option("rest.bind-address", "bind_address", some_text, LOOPBACK),
    _option("rest.port", "ports", _one_port, "8081", ("jobmanager.web.port", "web.port")),
    _option("rest.bind-port", "ports", _ports),
    _option("rest.server.max-content-length", "max_content", parse_memory_size, "100 mb"),
    _option("rest.server.patience", "patience", some_time, "1 min"),
    _option("rest.server.max-connections", "max_connections", positive, "1000"),
    _option("rest.async.store-duration", "remember", some_time, "5 min"),
    _option("security.ssl.rest.enabled", "tls.enabled", truth, "false", ("security.ssl.enabled",)),
    _option("security.ssl.rest.certificate", "tls.certificate", _path),
    _option("security.ssl.rest.key", "tls.key", _path),
    _option("security.ssl.rest.key-password", "tls.key_password", some_text),
    _option("security.rest.token.read", "tokens.read", _token),
    _option("security.rest.token.operate", "tokens.operate", _token),
    _option("security.rest.token.max-pause", "token_pause", parse_duration, "30 s"),
    _option("web.submit.enable", "submit", truth, "false"),
    _option("web.cancel.enable", "cancel", truth, "true"),
    _option("web.refresh-interval", "refresh_millis", some_time, "3 s"),
    _option("web.dashboard.dir", "dashboard", _path),
    _option("web.access-control-allow-origin", "allow_origin", str.strip),
    _option("rest.flamegraph.enabled", "flame.enabled", truth, "true"),
    _option("rest.flamegraph.num-samples", "flame.samples", positive, "100"),
    _option("rest.flamegraph.delay-between-samples", "flame.delay", some_time, "50 ms"),
    _option("rest.flamegraph.stack-depth", "flame.depth", positive, "100"),
    _option("rest.flamegraph.refresh-interval", "flame.refresh", some_time, "1 min"),
    _option("rest.flamegraph.cleanup-interval", "flame.cleanup", some_time, "10 min"),
]
"""All options of REST, in the order in which they are applied: `rest.bind-port` takes precedence over `rest.port`."""


def rest_settings(configuration: Mapping[str, str]) -> RestSettings:
    """Read the settings of REST, and ignore other options. Raise ConfigurationError if a value is invalid."""
    settings = RestSettings()
    for option in OPTIONS:
        name = option.spelling(configuration)
        if name is not None:
            try:
                settings = option.apply(settings, option.parse(configuration[name]))
            except (ValueError, ConfigurationError) as error:
                # The value is not shown: it may be a secret.
                raise ConfigurationError(f"option {option.name} cannot be read: {error}") from None
    return _check(settings)


def _check(settings: RestSettings) -> RestSettings:
    tls = settings.tls
    if tls.enabled and (tls.certificate is None or tls.key is None):
        raise ConfigurationError(
            "security.ssl.rest.enabled needs PEM files: set security.ssl.rest.certificate and security.ssl.rest.key"
        )
    if settings.dashboard is not None and not (settings.dashboard / "index.html").is_file():
        raise ConfigurationError(
            f"web.dashboard.dir must name a folder with a file index.html; '{settings.dashboard}' has no such file"
        )
    return settings
