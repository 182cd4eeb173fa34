"""The options that the command line reads to find a server and to log in."""

from __future__ import annotations

from typing import Any

from penstock.base.options.option import Option
from penstock.base.options.parsers import some_text, some_time, truth, whole

ADDRESS = Option("rest.address", some_text, "127.0.0.1", ("jobmanager.rpc.address",))
PORT = Option("rest.port", whole, "8081", ("jobmanager.web.port", "web.port"))
TOKEN = Option("rest.client.token", some_text)
TIMEOUT = Option("client.timeout", some_time, "1 min")
SSL = Option("security.ssl.rest.enabled", truth, "false", ("security.ssl.enabled",))
TRUSTED = Option("security.ssl.rest.truststore", some_text, others=("security.ssl.truststore",))
INNER_URL = Option("penstock.connect.inner-url", some_text)

OPTIONS: list[Option[Any]] = [ADDRESS, PORT, TOKEN, TIMEOUT, SSL, TRUSTED, INNER_URL]
"""Every option that only the command line reads."""
