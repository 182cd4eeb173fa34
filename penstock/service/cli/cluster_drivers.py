"""Drivers inside the cluster of a Spark Connect server: `run` in cluster mode, and the verb attach."""

from __future__ import annotations

import base64
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.service.cli.exit_codes import CANCELLED, UsageFailed
from penstock.service.cli.server_connection import Settings, configuration

if TYPE_CHECKING:
    from penstock.service.launch.config_files import Sourced
    from penstock.service.launch.program_runner import Program
    from penstock.spark.hosts.connect_driver import DriverClient
    from penstock.spark.hosts.driver_task import DriverSpec

_NOT_SHIPPED = (
    "spark.master",
    "spark.remote",
    "spark.submit.deployMode",
    "spark.driver.host",
    "spark.driver.bindAddress",
)
"""Settings of this process's address and the driver's place, which the driver itself does not get."""


def runs_in_cluster(settings: Sourced) -> bool:
    """Return True if the driver should run in a task of a Spark Connect server. Refuse an unknown mode."""
    from penstock.errors import ConfigurationError
    from penstock.spark.sessions.connect_session import CLIENT_MODE, CLUSTER_MODE, DEPLOY_MODE

    mode = settings.value(DEPLOY_MODE)
    if _server(settings) is None or mode is None:
        return False
    if mode not in (CLIENT_MODE, CLUSTER_MODE):
        raise ConfigurationError(f"{DEPLOY_MODE} is '{mode}'; allowed are '{CLIENT_MODE}' and '{CLUSTER_MODE}'")
    return mode == CLUSTER_MODE


def _server(settings: Sourced) -> str | None:
    """Return the URL of the Spark Connect server that the settings name, or None if they name none."""
    from penstock.spark.sessions.connect_session import SCHEME, remote_url

    named = settings.value("spark.master") or remote_url({name: setting.value for name, setting in settings.items()})
    return named if named is not None and named.startswith(SCHEME) else None


@dataclass(frozen=True)
class ClusterOrder:
    """A program for a driver in the cluster, with its arguments and settings."""

    program: Program
    arguments: list[str]
    pyflink: bool
    settings: Sourced
    rest: list[str]
    """Settings that name a port for REST."""

    def spec(self) -> DriverSpec:
        """Return the description of the driver, which is sent to the cluster."""
        from penstock.service.options.client_options import INNER_URL
        from penstock.spark.hosts.connect_driver import check_program, new_key
        from penstock.spark.hosts.driver_task import DriverSpec

        path, entry = self.program.path, self.program.entry
        if path is None:
            raise UsageFailed(
                f"a driver in the cluster needs the file that holds {entry}: name a file, a zip or a wheel as well; "
                "`penstock package` makes one of a folder"
            )
        content = path.read_bytes()
        check_program(str(path), len(content))
        rest = [part for option in self.rest for part in ("-D", option)]
        return DriverSpec(
            key=new_key(),
            seconds=_seconds(self.settings),
            file=path.name,
            program=base64.b64encode(content).decode(),
            arguments=[*(["-c", entry] if entry else []), *(["--pyflink"] if self.pyflink else []), *rest],
            program_arguments=self.arguments,
            continues=continues(self.settings),
            options={n: s.value for n, s in self.settings.items() if n not in (*_NOT_SHIPPED, INNER_URL.name)},
        )


def run_in_cluster(order: ClusterOrder, detached: bool) -> None:
    """Run the program in a task of the cluster. Unless detached, wait for its end."""
    from penstock.service.options.client_options import INNER_URL
    from penstock.spark.hosts.connect_driver import DriverClient

    settings, spec = order.settings, order.spec()
    client = DriverClient(str(_server(settings)), spec.key, spec.seconds)
    client.start(spec, settings.value(INNER_URL.name))
    from penstock.service.cli import output

    output.errors().print(f"driver {spec.key} runs in the cluster", highlight=False)
    if detached:
        output.line(spec.key)
        client.leave()
        return
    _watch(client)


def continues(settings: Sourced) -> bool:
    """Return True if a program with these settings continues its job after a restart."""
    named = all(settings.value(name) for name in ("execution.checkpointing.dir", "pipeline.job-id"))
    return named and (settings.value("execution.recover") or "").lower() in ("latest", "older")


def attach(
    driver: Annotated[str, typer.Argument(help="The name of the driver that `run` printed.", metavar="DRIVER")],
    place: Annotated[
        str | None,
        typer.Option("-m", "--master", help="The Spark Connect server.", metavar="URL", show_default=False),
    ] = None,
    suspend: Annotated[
        bool, typer.Option("--suspend", help="Suspend its jobs and keep their checkpoints, as SIGTERM does.")
    ] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel its jobs, as Ctrl-C does.")] = False,
    option: Settings = None,
) -> None:
    """Watch a driver that runs in the cluster of a Spark Connect server, until its program ends."""
    from penstock.spark.hosts.connect_driver import DriverClient

    if suspend and cancel:
        raise UsageFailed("give --suspend or --cancel, not both")
    settings = configuration(option).and_then({"spark.master": place})
    url = _server(settings)
    if url is None:
        raise UsageFailed("name the Spark Connect server of the driver with -m sc://host:port")
    client = DriverClient(url, driver, _seconds(settings))
    if suspend or cancel:
        client.send("SIGTERM" if suspend else "SIGINT")
    _watch(client)


def _seconds(settings: Sourced) -> float:
    from penstock.common.configuration import parse_duration

    return parse_duration(settings.value("slot.request.timeout") or "5 min") / 1000


def _watch(client: DriverClient) -> None:
    """Show the driver's output, and end with its exit code."""
    from penstock.service.cli import output

    try:
        code = client.watch(sys.stdout.buffer, sys.stderr.buffer, output.warn)
    except KeyboardInterrupt:
        output.errors().print(
            f"the driver continues: `penstock attach {client.key}` shows it, and ends it with --suspend or --cancel",
            highlight=False,
        )
        code = CANCELLED
    client.leave()
    if code:
        raise SystemExit(code)
