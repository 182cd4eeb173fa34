"""The SQL gateway as a process or as a part of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from penstock.service.gateway.gateway_app import create_gateway
from penstock.service.gateway.sql_sessions import Sessions
from penstock.service.options.gateway_options import endpoint, idle_seconds, most_sessions
from penstock.service.options.rest_options import rest_settings
from penstock.service.rest.http_server import RestServer


def gateway_of(configuration: Mapping[str, str]) -> tuple[RestServer, Sessions]:
    """Return a gateway at the address that the options name, and its sessions, which start with all options."""
    settings = rest_settings(endpoint(configuration))
    sessions = Sessions(configuration, most_sessions(configuration), idle_seconds(configuration))
    return RestServer(create_gateway(sessions, settings), settings), sessions


@contextmanager
def serve_gateway(configuration: Mapping[str, str]) -> Iterator[str]:
    """Serve a gateway until the end of the block, and yield its URL."""
    server, sessions = gateway_of(configuration)
    server.start()
    try:
        yield server.url
    finally:
        sessions.shut()
        server.stop()


def run(configuration: Mapping[str, str]) -> None:
    """Serve a gateway until a signal ends the process."""
    server, sessions = gateway_of(configuration)
    print(f"SQL gateway: {server.url}", flush=True)
    try:
        server.run()
    finally:
        sessions.shut()
