"""The verbs that run a program or show its plan: run, info."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from penstock.service.cli.exit_codes import UsageFailed
from penstock.service.cli.server_connection import CaCert, Json, Settings, Token, client_of, configuration, is_server

if TYPE_CHECKING:
    from penstock.service.launch.program_runner import Program

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}

ProgramArgument = Annotated[
    str | None,
    typer.Argument(help="A Python file, a zip or a wheel that builds and executes a job.", show_default=False),
]
Entry = Annotated[
    str | None,
    typer.Option(
        "-c",
        "--class",
        help="The entry point: module:function, or a module.",
        metavar="MODULE:FUNCTION",
        show_default=False,
    ),
]
PythonFile = Annotated[
    str | None,
    typer.Option("-py", "--python", help="The program, as for `flink run`.", metavar="FILE", show_default=False),
]
PythonModule = Annotated[
    str | None,
    typer.Option(
        "-pym", "--pyModule", help="A module to run, as for `flink run`.", metavar="MODULE", show_default=False
    ),
]
PyFlink = Annotated[bool, typer.Option("--pyflink", help="Let `import pyflink` resolve to Penstock.")]
Parallelism = Annotated[
    int | None, typer.Option("-p", "--parallelism", help="The job's parallelism.", show_default=False)
]
Savepoint = Annotated[
    str | None,
    typer.Option(
        "-s",
        "--from-savepoint",
        "--fromSavepoint",
        help="Start from this savepoint or checkpoint.",
        metavar="PATH",
        show_default=False,
    ),
]


def run(
    context: typer.Context,
    program: ProgramArgument = None,
    detached: Annotated[
        bool,
        typer.Option(
            "-d", "--detached", help="Submit the program to a server or a cluster, and do not wait for its end."
        ),
    ] = False,
    entry: Entry = None,
    python: PythonFile = None,
    module: PythonModule = None,
    pyflink: PyFlink = False,
    parallelism: Parallelism = None,
    place: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--master",
            "--jobmanager",
            help="Where to run: a server (host:port, URL) or a Spark master, such as local[4].",
            metavar="PLACE",
            show_default=False,
        ),
    ] = None,
    savepoint: Savepoint = None,
    allow_non_restored: Annotated[
        bool,
        typer.Option(
            "-n",
            "--allow-non-restored-state",
            "--allowNonRestoredState",
            help="Drop state of operators that the program does not have.",
        ),
    ] = False,
    claim: Annotated[
        str | None,
        typer.Option(
            "--claim-mode",
            "--claimMode",
            "-rm",
            "--restoreMode",
            help="CLAIM: the job owns the snapshot and deletes it. NO_CLAIM: it stays.",
            metavar="MODE",
            show_default=False,
        ),
    ] = None,
    option: Settings = None,
    token: Token = None,
    cacert: CaCert = None,
) -> None:
    """Run a program; the arguments after its name are passed to it.

    It runs in this process, or with -d or the address of a server on that server.
    """
    chosen, arguments = _program(Named(program, entry, python, module), context.args)
    server = place if place is not None and is_server(place) else None
    settings = configuration(option)
    switches = {
        "parallelism.default": parallelism,
        "spark.master": place if server is None else None,
        "execution.state-recovery.path": savepoint,
        "execution.state-recovery.ignore-unclaimed-state": "true" if allow_non_restored else None,
        "execution.state-recovery.claim-mode": claim,
    }
    everything = settings.and_then(switches)
    if server is None:
        from penstock.service.cli.cluster_drivers import ClusterOrder, run_in_cluster, runs_in_cluster

        if runs_in_cluster(everything):
            rest = _rest_options(option or [])
            run_in_cluster(ClusterOrder(chosen, arguments, pyflink, everything, rest), detached)
            return
    if detached or server is not None:
        from penstock.service.cli.submission_client import Order, submit

        order = Order(
            chosen, arguments, pyflink, option or [], {k: str(v) for k, v in switches.items() if v is not None}
        )
        submit(client_of(settings, server, token, cacert), order, detached)
        return
    from penstock.service.launch.submission import with_defaults
    from penstock.service.launch.termination import suspend_on_sigterm

    suspend_on_sigterm()
    chosen_settings = everything.configuration()
    with with_defaults(configuration=chosen_settings), _rest(option or [], chosen_settings.to_dict()):
        chosen.run(arguments, pyflink)


def _rest(options: list[str], settings: Mapping[str, str]) -> AbstractContextManager[None]:
    """Return a block that serves REST for this process's jobs if the command line names a port for REST.

    A port in a configuration file is meant for a server.
    """
    if not _rest_options(options):
        return nullcontext()
    from penstock.service.rest.embedded import serve_jobs

    return serve_jobs(dict(settings))


def _rest_options(options: list[str]) -> list[str]:
    """Return the settings of the command line that name a port for REST."""
    return [option for option in options if option.startswith(("rest.port=", "rest.bind-port="))]


def info(
    context: typer.Context,
    program: ProgramArgument = None,
    entry: Entry = None,
    python: PythonFile = None,
    module: PythonModule = None,
    pyflink: PyFlink = False,
    parallelism: Parallelism = None,
    option: Settings = None,
    json: Json = False,
) -> None:
    """Show the plan of a program's first job without running it. What the program prints goes to standard error."""
    from penstock.graph import plan_text as explain
    from penstock.service.cli.output import line
    from penstock.service.launch.plan_only import plan_of_program
    from penstock.service.launch.submission import with_defaults

    chosen, arguments = _program(Named(program, entry, python, module), context.args)
    settings = configuration(option).and_then({"parallelism.default": parallelism})
    with with_defaults(configuration=settings.configuration()), redirect_stdout(sys.stderr):
        plan = plan_of_program(chosen, arguments, pyflink)
    line((explain.as_json(plan) if json else explain.as_text(plan)).rstrip("\n"))


class Named(NamedTuple):
    """The words and switches of a command line that name a program."""

    first: str | None
    """First word that belongs to no switch."""
    entry: str | None
    python: str | None
    module: str | None


def _program(named: Named, arguments: list[str]) -> tuple[Program, list[str]]:
    """Return the program and its arguments. The first word is an argument if a switch names the program.

    With -c, the first word is a program only if it is the name of an existing program file.
    """
    from penstock.errors import ConfigurationError
    from penstock.service.launch.program_runner import SUFFIXES, Program

    first, entry, python, module = named
    is_file = first is not None and first.endswith(SUFFIXES) and os.path.isfile(first)
    if first is not None and (python or module or (entry and not is_file)):
        arguments, first = [first, *arguments], None
    path = python or first
    try:
        return Program(None if path is None else Path(path), entry or module), arguments
    except ConfigurationError as error:
        raise UsageFailed(str(error)) from None
