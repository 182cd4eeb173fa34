"""Connection of commands to a server: shared switches, the configuration, and abbreviated job ids."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.service.cli.exit_codes import CommandFailed, NotFound, UsageFailed

if TYPE_CHECKING:
    from penstock.service.cli.rest_client import RestClient
    from penstock.service.launch.config_files import Setting, Sourced

At = Annotated[
    str | None,
    typer.Option("-m", "--jobmanager", help="The server: host:port or a URL.", metavar="SERVER", show_default=False),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        help="The token that the server requires.",
        envvar="PENSTOCK_TOKEN",
        show_default=False,
        metavar="TEXT",
    ),
]
CaCert = Annotated[
    str | None,
    typer.Option("--cacert", help="File with the certificates to trust (PEM).", metavar="FILE", show_default=False),
]
Settings = Annotated[
    list[str] | None, typer.Option("-D", help="A setting, as name=value.", metavar="NAME=VALUE", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Job = Annotated[str, typer.Argument(help="A job's id, or its first digits.", metavar="JOB", show_default=False)]

_HOST_AND_PORT = re.compile(r"([\w.-]+|\[[0-9a-fA-F:]+\]):\d+")


def is_server(place: str) -> bool:
    """Return True if `-m` names a server, and not a Spark master."""
    return place.startswith(("http://", "https://")) or _HOST_AND_PORT.fullmatch(place) is not None


def configuration(options: list[str] | None) -> Sourced:
    """Return the settings of file, environment and -D. Warn of names that are unknown or have no effect."""
    from penstock.errors import ConfigurationError
    from penstock.service.cli.output import warn
    from penstock.service.launch.config_files import load_configuration

    try:
        found = load_configuration(options or [])
    except ConfigurationError as error:
        raise UsageFailed(str(error)) from None
    for warning in found.new_warnings():
        warn(warning)
    return found


def connect(
    at: str | None, token: str | None = None, cacert: str | None = None, options: list[str] | None = None
) -> RestClient:
    """Return a client of the server that the switches, else the configuration, name."""
    return client_of(configuration(options), at, token, cacert)


def client_of(settings: Sourced, at: str | None, token: str | None, cacert: str | None) -> RestClient:
    """Return a client with the settings of the switches, else of the configuration.

    On the machine of the server, the server's own configuration provides the settings of its clients.
    """
    from penstock.common.configuration import parse_duration
    from penstock.service.cli.rest_client import RestClient

    url = _own_server(settings, at) or server_url(settings, at)
    own = settings if at is None else {}
    trusted = cacert or settings.value("security.ssl.rest.truststore") or _of(own, "security.ssl.rest.certificate")
    token = token or settings.value("rest.client.token") or _of(own, "security.rest.token.operate")
    timeout = parse_duration(settings.value("client.timeout") or "1 min") / 1000
    context = _trust(trusted) if url.startswith("https:") and trusted else None
    return RestClient(url, token or _of(own, "security.rest.token.read"), context, timeout)


def _of(settings: Mapping[str, Setting], name: str) -> str | None:
    """Return a setting of our own server, or None. Another server does not get our server's secrets."""
    return settings[name].value if name in settings else None


def _own_server(settings: Sourced, at: str | None) -> str | None:
    """Return the address of the server that runs on $PENSTOCK_HOME, or None if another place is named."""
    from penstock.service.launch.config_files import DEFAULT
    from penstock.service.options.server_options import default_data
    from penstock.service.server.home import running_server

    named = [setting for name in ("rest.address", "rest.port") if (setting := settings.find(name)) is not None]
    if at is not None or any(setting.origin != DEFAULT for setting in named):
        return None
    server = running_server(default_data())
    return None if server is None else server.address


def server_url(settings: Sourced, at: str | None) -> str:
    """Return the URL of the REST API."""
    if at is not None and at.startswith(("http://", "https://")):
        return at
    scheme = "https" if (settings.value("security.ssl.rest.enabled") or "").strip().lower() == "true" else "http"
    if at is None:
        host, port = settings.value("rest.address") or "", settings.value("rest.port") or ""
        if not port.isdigit():
            raise UsageFailed(f"rest.port is '{port}', which is not a port number; name the server with -m host:port")
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if _HOST_AND_PORT.fullmatch(at) is None:
        raise UsageFailed(f"-m takes host:port or a URL, not '{at}'")
    return f"{scheme}://{at}"


def _trust(file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        raise CommandFailed(f"the certificates in '{file}' cannot be read; PEM is expected: {error}") from None


def job_id(client: RestClient, given: str) -> str:
    """Return the full id of a job, given the first digits of its id."""
    digits = given.lower()
    if not re.fullmatch(r"[0-9a-f]{1,32}", digits):
        raise UsageFailed(
            f"'{given}' is not a job id: an id has 32 hexadecimal digits, and its first digits are enough"
        )
    if len(digits) == 32:
        return digits
    found = [job for job in overview(client) if job["jid"].startswith(digits)]
    if len(found) == 1:
        return str(found[0]["jid"])
    if not found:
        raise NotFound(f"no job has an id that begins with '{given}'; `penstock list -a` shows all jobs")
    listed = ", ".join(f"{job['jid']} ({job['name']}, {job['state']})" for job in found)
    raise NotFound(f"{len(found)} jobs begin with '{given}': {listed}")


def overview(client: RestClient) -> list[dict[str, Any]]:
    """Return all jobs that the server knows."""
    jobs: list[dict[str, Any]] = client.get("/jobs/overview")["jobs"]
    return jobs
