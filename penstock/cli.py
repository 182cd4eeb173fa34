"""The `penstock` command."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock import __version__
from penstock.common.configuration import Configuration
from penstock.errors import PenstockError

app = typer.Typer(help="Stateful streams in Python, on Spark.", add_completion=False)
_errors = Console(stderr=True)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


@app.command(context_settings=_PASS_ON)
def run(
    context: typer.Context,
    program: Annotated[Path, typer.Argument(help="A Python file that builds and executes a job.")],
    pyflink: Annotated[bool, typer.Option("--pyflink", help="Let `import pyflink` resolve to Penstock.")] = False,
    parallelism: Annotated[int | None, typer.Option("-p", "--parallelism", help="The job's parallelism.")] = None,
    master: Annotated[str | None, typer.Option("-m", "--master", help="Spark master, such as local[4].")] = None,
    savepoint: Annotated[
        str | None, typer.Option("-s", "--from-savepoint", help="Start from this savepoint or checkpoint.")
    ] = None,
    allow_non_restored: Annotated[
        bool,
        typer.Option("-n", "--allow-non-restored-state", help="Drop state that the program has no place for."),
    ] = False,
    claim: Annotated[
        str | None, typer.Option("--claim-mode", help="CLAIM: the snapshot is the job's to delete. NO_CLAIM: it stays.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option("-D", help="A setting, as name=value.")] = None,
) -> None:
    """Run a program; what follows its name is passed to it."""
    from penstock.launch.submission import with_defaults

    if not program.is_file():
        _fail(f"there is no file '{program}'")
    configuration = _configuration(
        option or [],
        {
            "parallelism.default": parallelism,
            "spark.master": master,
            "execution.state-recovery.path": savepoint,
            "execution.state-recovery.ignore-unclaimed-state": "true" if allow_non_restored else None,
            "execution.state-recovery.claim-mode": claim,
        },
    )
    if pyflink:
        from penstock import compat

        compat.install()
    sys.argv = [str(program), *context.args]
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    with with_defaults(configuration=configuration), _rest(configuration):
        _run(program)


def _rest(configuration: Configuration) -> AbstractContextManager[None]:
    """REST for the jobs of this process, if a port is named for it."""
    options = configuration.to_dict()
    if "rest.port" not in options and "rest.bind-port" not in options:
        return nullcontext()
    from penstock.rest.embedded import served

    return served(options)


def _run(program: Path) -> None:
    try:
        runpy.run_path(str(program), run_name="__main__")
    except PenstockError as error:
        _fail(str(error), type(error).__name__)
    except KeyboardInterrupt:
        _errors.print("[yellow]cancelled[/yellow]")
        raise SystemExit(130) from None


def _configuration(options: list[str], chosen: Mapping[str, object | None]) -> Configuration:
    """Settings given as name=value, and those that have a switch of their own, which win."""
    configuration = Configuration()
    for option in options:
        name, separator, value = option.partition("=")
        if not separator or not name:
            _fail(f"-D takes name=value, not '{option}'")
        configuration.set_string(name, value)
    for name, setting in chosen.items():
        if setting is not None:
            configuration.set_string(name, str(setting))
    return configuration


def _fail(message: str, kind: str = "error") -> None:
    _errors.print(f"[bold red]{kind}[/bold red]", end=": ")
    _errors.print(message, markup=False, highlight=False)
    raise SystemExit(1)


def main() -> None:
    """The entry point of the console script."""
    app()
