"""The gateway as a process: its options, and how it listens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from penstock.common.configuration import parse_duration
from penstock.gateway.app import create_gateway
from penstock.gateway.sessions import Sessions
from penstock.rest.serving import RestServer
from penstock.rest.settings import rest_settings

PORT = "8083"
_ENDPOINT = "sql-gateway.endpoint.rest."


def gateway_of(configuration: Mapping[str, str]) -> tuple[RestServer, Sessions]:
    """A gateway that listens where the options say; sessions start with all of them."""
    own = {
        "rest." + name.removeprefix(_ENDPOINT): value
        for name, value in configuration.items()
        if name.startswith(_ENDPOINT)
    }
    settings = rest_settings({**configuration, "rest.port": PORT, **own})
    idle = parse_duration(configuration.get("sql-gateway.session.idle-timeout", "10 min")) / 1000
    most = int(configuration.get("sql-gateway.session.max-num", "1000000"))
    sessions = Sessions(configuration, most, idle)
    return RestServer(create_gateway(sessions, settings), settings), sessions


@contextmanager
def served(configuration: Mapping[str, str]) -> Iterator[str]:
    """Serve a gateway until the end of the block; gives its URL."""
    server, sessions = gateway_of(configuration)
    server.start()
    try:
        yield server.url
    finally:
        sessions.shut()
        server.stop()


def run(configuration: Mapping[str, str]) -> None:
    """Serve a gateway until the process is told to end."""
    server, sessions = gateway_of(configuration)
    print(f"SQL gateway: {server.url}", flush=True)
    try:
        server.run()
    finally:
        sessions.shut()
