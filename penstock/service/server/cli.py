"""`penstock server`: start, stop and status of a server on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from penstock.service.server.home import RunningServer

app = typer.Typer(help="A server for many jobs: start, stop, status.", no_args_is_help=True)
START_SECONDS = 60.0
STOP_SECONDS = 120.0

Data = Annotated[
    Path | None,
    typer.Option("--data", help="The server's folder.", metavar="FOLDER", show_default="$PENSTOCK_HOME or ~/.penstock"),
]


@app.command()
def start(
    data: Data = None,
    foreground: Annotated[
        bool, typer.Option("--foreground/--daemon", help="Run in this terminal or in the background.")
    ] = False,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on; by default, only this machine can connect.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port of REST; 0 for any free port.")] = None,
    master: Annotated[
        str | None, typer.Option("-m", "--master", help="Spark master of jobs that do not name a master.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option("-D", help="A setting, as name=value.")] = None,
) -> None:
    """Start a server. Jobs of an earlier server continue."""
    from penstock.service.rest.installed import check_installed
    from penstock.service.server.home import already_running, running_server

    check_installed()
    folder = _folder(data)
    if running_server(folder) is not None:
        _fail(already_running(folder))
    configuration = _configuration(option or [], {"rest.bind-address": host, "rest.port": port, "spark.master": master})
    options = _write_options(folder, configuration, foreground)
    command = [sys.executable, "-m", "penstock.service.server.server_process", str(options)]
    if foreground:
        os.execv(sys.executable, command)
    _start_in_background(command, folder)


def _start_in_background(command: list[str], folder: Path) -> None:
    from penstock.service.server.home import LOG, OUT

    begins = (folder / LOG).stat().st_size if (folder / LOG).exists() else 0
    with (folder / LOG).open("ab") as log, (folder / OUT).open("ab") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True, cwd=folder
        )
    found = _await_server(process, folder)
    if found is None:
        with (folder / LOG).open("rb") as log:
            log.seek(begins)
            _fail(f"the server did not start:\n{log.read().decode(errors='replace').strip()}")
    typer.echo(f"The server listens at {found.address} (process {found.pid}, folder {folder}).")


def _await_server(process: subprocess.Popen[bytes], folder: Path) -> RunningServer | None:
    from penstock.service.server.home import running_server

    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = running_server(folder)
        if found is not None and found.pid == process.pid:
            return found
        time.sleep(0.05)
    return None


@app.command()
def stop(
    data: Data = None,
    keep_jobs: Annotated[
        bool,
        typer.Option(
            "--keep-jobs", help="Keep the jobs running; without this option they stop and continue at the next start."
        ),
    ] = False,
) -> None:
    """Stop the server. Its jobs are suspended, and continue from their last checkpoints when a server starts again."""
    found = _running(data)
    found.ask("stop", keep_jobs=keep_jobs)
    until = time.monotonic() + STOP_SECONDS
    while _still_runs(found, data):
        if time.monotonic() > until:
            _fail(f"the server, process {found.pid}, has not ended within {STOP_SECONDS:g} s")
        time.sleep(0.05)
    typer.echo("The server has stopped" + ("; its jobs run on." if keep_jobs else "; its jobs are suspended."))


@app.command()
def status(
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the server on this machine: its address, jobs and slots, and which server leads."""
    said = _running(data).ask("status")
    if as_json:
        typer.echo(json.dumps(said))
        return
    jobs = ", ".join(f"{number} {state.lower()}" for state, number in sorted(said["jobs"].items())) or "none"
    leader = "this server" if said["leads"] else said["leader"] or "nobody"
    typer.echo(f"address  {said['address']}\nprocess  {said['pid']}\nleader   {leader}")
    if said["leads"]:
        typer.echo(f"jobs     {jobs}\nslots    {said['free_slots']} of {said['slots']} free")


def _running(data: Path | None) -> RunningServer:
    from penstock.service.server.home import running_server

    folder = _folder(data)
    found = running_server(folder)
    if found is None:
        _fail(f"no server runs on the folder '{folder}': start one with `penstock server start`")
    return found


def _still_runs(found: RunningServer, data: Path | None) -> bool:
    from penstock.service.server.home import running_server

    now = running_server(_folder(data))
    return now is not None and now.pid == found.pid


def _folder(data: Path | None) -> Path:
    from penstock.service.options.server_options import default_data

    folder = data.absolute() if data is not None else default_data()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _write_options(folder: Path, configuration: dict[str, str], foreground: bool) -> Path:
    """Write the options of the server process to a file that nobody else can read, and return its path.

    On the command line, other users could see them.
    """
    path = folder / f"server-{os.getpid()}.json"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"folder": str(folder), "configuration": configuration, "foreground": foreground}, file)
    return path


def _configuration(options: list[str], chosen: dict[str, object | None]) -> dict[str, str]:
    """Return the configuration from the file, the environment and the command line."""
    from penstock.service.launch.config_files import load_configuration

    found = load_configuration(options)
    for warning in found.new_warnings():
        typer.echo(f"warning: {warning}", err=True)
    return found.and_then(chosen).configuration().to_dict()


def _fail(message: str) -> NoReturn:
    from penstock.errors import ConfigurationError

    raise ConfigurationError(message)
