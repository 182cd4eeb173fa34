"""The verbs `sql`, which runs SQL at a prompt, from a file or from the command line, and `sql-gateway`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.base.libraries import explain_missing
from penstock.service.cli.exit_codes import CommandFailed, UsageFailed
from penstock.service.cli.server_connection import Settings, configuration


def sql(
    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="Run the statements of a file, and end.", show_default=False)
    ] = None,
    execute: Annotated[
        list[str] | None,
        typer.Option("-e", "--execute", help="Run these statements, and end; may be repeated.", show_default=False),
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option("-i", "--init", help="Run the statements of a file first, such as CREATE TABLE."),
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Run queries in BATCH mode, over bounded data.")] = False,
    pyflink: Annotated[bool, typer.Option("--pyflink", help="Let `import pyflink` resolve to Penstock.")] = False,
    settings: Settings = None,
) -> None:
    """Run SQL. Without -f and -e there is a prompt; statements end with a semicolon."""
    if file is not None and execute:
        raise UsageFailed("use either -f or -e, not both")
    with explain_missing("SQL", "table"):
        from penstock.service.cli.sql.sql_client import SqlClient

    if pyflink:
        from penstock import compat

        compat.install()
    client = SqlClient({name: setting.value for name, setting in configuration(settings).items()}, batch)
    if init is not None:
        client.run_script(_text_of(init))
    if file is not None:
        client.run_script(_text_of(file))
    elif execute:
        for text in execute:
            client.run_script(text)
    elif sys.stdin.isatty():
        from penstock.service.cli.sql.prompting import Prompt

        Prompt(client).run()
    else:
        client.run_script(sys.stdin.read())


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from error


def sql_gateway(settings: Settings = None) -> None:
    """Serve Flink's SQL gateway REST interface: Flink's SQL client and JDBC driver can connect. Ctrl-C ends it."""
    with explain_missing("The SQL gateway", "server,table"):
        from penstock.service.gateway.gateway_server import run

    run({name: setting.value for name, setting in configuration(settings).items()})
