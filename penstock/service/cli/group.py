"""The group of all commands. It shows failures in one line, and loads the server's commands when they are called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from penstock.service.cli.exit_codes import CANCELLED, CommandFailed

SERVER = "server"


class Commands(TyperGroup):
    """Penstock's verbs."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb. Turn its expected errors into a line on standard error and an exit code."""
        from penstock.errors import PenstockError

        try:
            return super().invoke(ctx)
        except CommandFailed as failed:
            _say(failed.kind, str(failed))
            raise SystemExit(failed.code) from None
        except PenstockError as error:
            _say(type(error).__name__, str(error))
            raise SystemExit(CommandFailed.code) from None
        except KeyboardInterrupt:
            from penstock.service.cli.output import errors

            errors().print("[yellow]cancelled[/yellow]")
            raise SystemExit(CANCELLED) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the placeholder for the server by its real commands."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, _server_commands() if name == SERVER else command, rest


def _say(kind: str, message: str) -> None:
    from penstock.service.cli.output import errors

    errors().print(f"[bold red]{kind}[/bold red]", end=": ")
    errors().print(message, markup=False, highlight=False, soft_wrap=True)


def _server_commands() -> Any:
    try:
        module = import_module("penstock.service.server.cli")
    except ImportError as error:
        missing = f' ({error.name} is missing: pip install "penstock[server]")' if error.name else ""
        raise CommandFailed(f"the server is not part of this installation{missing}") from None
    command = typer.main.get_command(module.app)
    command.name = SERVER
    return command
