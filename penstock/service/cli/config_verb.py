"""The verb `config`: shows the settings in force outside a program, and the origin of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.service.cli.exit_codes import NotFound
from penstock.service.cli.server_connection import Json, Settings, configuration

if TYPE_CHECKING:
    from penstock.service.launch.config_files import Setting, Sourced


def config(
    name: Annotated[str | None, typer.Argument(help="Only this option.", show_default=False)] = None,
    everything: Annotated[
        bool, typer.Option("-a", "--all", help="Also show options that have their default values.")
    ] = False,
    json: Json = False,
    option: Settings = None,
) -> None:
    """Show the settings in force, and where each came from. Secrets are not shown."""
    from penstock.service.cli import output

    found = configuration(option)
    shown = _one(found, name) if name is not None else _many(found, everything)
    if json:
        output.as_json([{"name": s.name, "value": _visible(s), "origin": s.origin} for s in shown])
    elif name is not None:
        output.line(f"{shown[0].name}: {_visible(shown[0])}  ({shown[0].origin})")
    elif shown:
        output.table(["option", "value", "from"], [(s.name, _visible(s), _origin(s)) for s in shown])
    else:
        output.line("no option is set outside the program; --all shows the defaults")


def _visible(setting: Setting) -> str:
    from penstock.common.secrets import mask_settings

    return mask_settings({setting.name: setting.value})[setting.name]


def _origin(setting: Setting) -> str:
    from penstock.service.options.known_options import is_known
    from penstock.service.options.options_without_effect import reason_without_effect

    if is_known(setting.name):
        return setting.origin
    verdict = "not known to Penstock" if reason_without_effect(setting.name) is None else "no effect"
    return f"{setting.origin}; {verdict}"


def _many(found: Sourced, everything: bool) -> list[Setting]:
    return found.with_defaults() if everything else sorted(found.values(), key=lambda setting: setting.name)


def _one(found: Sourced, name: str) -> list[Setting]:
    from penstock.service.options.known_options import is_known, suggestion
    from penstock.service.options.options_without_effect import reason_without_effect

    held = found.find(name)
    if held is not None:
        return [held]
    if is_known(name):
        raise NotFound(f"{name} is not set, and has no default")
    if (reason := reason_without_effect(name)) is not None:
        raise NotFound(f"{name} has no effect: {reason}")
    meant = suggestion(name)
    raise NotFound(f"there is no option '{name}'" + (f"; did you mean '{meant}'?" if meant else ""))
