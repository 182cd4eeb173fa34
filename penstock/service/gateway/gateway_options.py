"""The options of the SQL gateway. Its address has the options of REST, under a prefix of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.common.configuration import parse_duration
from penstock.errors import ConfigurationError
from penstock.service.launch.options import positive
from penstock.service.rest.rest_options import OPTIONS as REST_OPTIONS

ENDPOINT = "sql-gateway.endpoint.rest."
REST = "rest."
PORT = "8083"


@dataclass(frozen=True)
class GatewayOption:
    """An option's name, its default, and other names that mean the same."""

    name: str
    default: str | None = None
    others: tuple[str, ...] = ()


IDLE_TIMEOUT = GatewayOption("sql-gateway.session.idle-timeout", "10 min")
MOST_SESSIONS = GatewayOption("sql-gateway.session.max-num", "1000000")


def _endpoint_option(name: str, default: str | None) -> GatewayOption:
    return GatewayOption(ENDPOINT + name.removeprefix(REST), PORT if name == "rest.port" else default)


OPTIONS = [
    *(_endpoint_option(option.name, option.default) for option in REST_OPTIONS if option.name.startswith(REST)),
    IDLE_TIMEOUT,
    MOST_SESSIONS,
]
"""Every option of the gateway."""


def endpoint(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration with the gateway's address under the names of REST's options."""
    own = {
        REST + name.removeprefix(ENDPOINT): value for name, value in configuration.items() if name.startswith(ENDPOINT)
    }
    return {**configuration, "rest.port": PORT, **own}


def idle_seconds(configuration: Mapping[str, str]) -> float:
    """Return the time, in seconds, for which a session may be idle."""
    text = configuration.get(IDLE_TIMEOUT.name, IDLE_TIMEOUT.default or "")
    try:
        return parse_duration(text) / 1000
    except ValueError as error:
        raise ConfigurationError(f"option {IDLE_TIMEOUT.name} cannot be '{text}': {error}") from None


def most_sessions(configuration: Mapping[str, str]) -> int:
    """Return the greatest number of sessions at once."""
    text = configuration.get(MOST_SESSIONS.name, MOST_SESSIONS.default or "")
    try:
        return positive(text)
    except ValueError as error:
        raise ConfigurationError(f"option {MOST_SESSIONS.name} cannot be '{text}': {error}") from None
