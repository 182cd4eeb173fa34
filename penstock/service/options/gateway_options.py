"""The options of the SQL gateway. Its address has the options of REST, under a prefix of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.base.options.option import Option
from penstock.base.options.parsers import parse_duration, positive
from penstock.service.options.rest_options import OPTIONS as REST_OPTIONS

ENDPOINT = "sql-gateway.endpoint.rest."
REST = "rest."
PORT = "8083"


IDLE_TIMEOUT = Option("sql-gateway.session.idle-timeout", parse_duration, "10 min")
MOST_SESSIONS = Option("sql-gateway.session.max-num", positive, "1000000")


def _endpoint_option(option: Option[Any]) -> Option[Any]:
    default = PORT if option.name == "rest.port" else option.default
    return Option(ENDPOINT + option.name.removeprefix(REST), option.parse, default)


OPTIONS: list[Option[Any]] = [
    *(_endpoint_option(option) for option in REST_OPTIONS if option.name.startswith(REST)),
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
    return IDLE_TIMEOUT.value(configuration) / 1000


def most_sessions(configuration: Mapping[str, str]) -> int:
    """Return the greatest number of sessions at once."""
    return MOST_SESSIONS.value(configuration)
