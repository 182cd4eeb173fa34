"""The options that the command line reads to find a server and to log in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClientOption:
    """An option's name, its default, and other names that mean the same."""

    name: str
    default: str | None = None
    others: tuple[str, ...] = ()


ADDRESS = ClientOption("rest.address", "127.0.0.1", others=("jobmanager.rpc.address",))
PORT = ClientOption("rest.port", "8081", others=("jobmanager.web.port", "web.port"))
TOKEN = ClientOption("rest.client.token")
TIMEOUT = ClientOption("client.timeout", "1 min")
SSL = ClientOption("security.ssl.rest.enabled", "false", others=("security.ssl.enabled",))
TRUSTED = ClientOption("security.ssl.rest.truststore", others=("security.ssl.truststore",))
INNER_URL = ClientOption("penstock.connect.inner-url")

OPTIONS = [ADDRESS, PORT, TOKEN, TIMEOUT, SSL, TRUSTED, INNER_URL]
"""Every option that only the command line reads."""
