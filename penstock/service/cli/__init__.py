"""The `penstock` command. Its verbs import modules only when they are called, so that help appears quickly."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock import __version__
from penstock.service.cli import cluster_drivers, sql
from penstock.service.cli import config_verb as settings
from penstock.service.cli import inspection_verbs as looking
from penstock.service.cli import job_verbs as jobs
from penstock.service.cli import package_verb as packing
from penstock.service.cli import run_verbs as running
from penstock.service.cli import snapshot_verbs as snapshots
from penstock.service.cli.group import SERVER, Commands

app = typer.Typer(
    cls=Commands, help="Stateful streams in Python, on Spark.", context_settings={"help_option_names": ["-h", "--help"]}
)

_PROGRAMS, _JOBS, _SERVICE = "Programs", "Jobs of a server", "Service"


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-v", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


app.command(context_settings=running.PASS_ON, rich_help_panel=_PROGRAMS)(running.run)
app.command(context_settings=running.PASS_ON, rich_help_panel=_PROGRAMS)(running.info)
app.command(rich_help_panel=_PROGRAMS)(cluster_drivers.attach)
app.command(rich_help_panel=_PROGRAMS)(packing.package)
app.command(rich_help_panel=_PROGRAMS)(sql.sql)
app.command("list", rich_help_panel=_JOBS)(jobs.list_jobs)
app.command(rich_help_panel=_JOBS)(jobs.cancel)
app.command(rich_help_panel=_JOBS)(jobs.stop)
app.command(rich_help_panel=_JOBS)(jobs.modify)
app.command(rich_help_panel=_JOBS)(snapshots.savepoint)
app.command(rich_help_panel=_JOBS)(snapshots.checkpoint)
app.command(rich_help_panel=_JOBS)(looking.logs)
app.command(rich_help_panel=_JOBS)(looking.state)
app.command(rich_help_panel=_SERVICE)(settings.config)
app.command("sql-gateway", rich_help_panel=_SERVICE)(sql.sql_gateway)


@app.command(SERVER, rich_help_panel=_SERVICE)
def _server() -> None:
    """Start and stop a server, which runs jobs and keeps them running, or show its status."""


def main() -> None:
    """Run the `penstock` command. This is the entry point of the console script."""
    app()
