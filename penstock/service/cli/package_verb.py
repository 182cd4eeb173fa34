"""The verb `package`: packs a program and its dependencies into one file."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import typer

from penstock.service.cli.server_connection import Json

PYTHON_VERSION = f"Python {platform.python_version()} for {platform.system()} {platform.machine()}"


def package(
    program: Annotated[
        Path | None, typer.Argument(help="A Python file, or a folder with a __main__.py.", show_default=False)
    ] = None,
    requirements: Annotated[
        Path | None,
        typer.Option(
            "-r", "--requirements", help="The requirements file of the program, in pip's format.", show_default=False
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file to write; by default <program>.zip.", show_default=False),
    ] = None,
    entry: Annotated[
        str | None,
        typer.Option(
            "-c", "--class", help="The entry point, module:function, if it is not the file itself.", show_default=False
        ),
    ] = None,
    include: Annotated[
        list[Path] | None,
        typer.Option(
            "-i", "--include", help="A file or folder next to the program that is packed, too.", show_default=False
        ),
    ] = None,
    environment: Annotated[
        bool,
        typer.Option(
            "--environment",
            help="Pack this Python, Penstock and the installed packages instead, for machines without them.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Pack a program, the modules beside it that it imports, and the packages that it requires into one file."""
    from penstock.service.cli import output
    from penstock.service.launch.program_package import make_package

    if environment == (program is not None):
        raise typer.BadParameter("name a program, or use --environment without a program")
    if program is None:
        _pack_environment(target or Path("environment.tar.gz"), requirements, json)
        return
    file = target or Path(f"{program.absolute().with_suffix('').name}.zip")
    with output.progress("packing"):
        made = make_package(program, file, requirements, entry, include or [])
    if json:
        output.as_json(
            {
                "package": str(made.path),
                "bytes": made.size,
                "program": made.modules,
                "libraries": made.libraries,
                "left-out": made.left_out,
                "compiled-for": made.compiled_for,
            }
        )
        return
    output.line(f"{made.path}, {_size(made.size)}, runs {made.entry or made.script}")
    output.line(f"program: {', '.join(made.modules)}")
    packed = ", ".join(f"{name} {version}" for name, version in made.libraries.items())
    output.line(f"libraries: {packed or 'none'}")
    if made.left_out:
        output.line(f"left out, because clusters provide them: {', '.join(made.left_out)}")
    output.line(f"holds compiled code: runs on {made.compiled_for} only" if made.compiled_for else "runs anywhere")


def _pack_environment(file: Path, requirements: Path | None, json: bool) -> None:
    from penstock.service.cli import output
    from penstock.service.launch.environment_archive import pack_environment

    with output.progress("packing"):
        made = pack_environment(file, requirements)
    if json:
        output.as_json({"environment": str(made.path), "bytes": made.size, "packages": made.packages})
        return
    output.line(f"{made.path}, {_size(made.size)}, with {PYTHON_VERSION}")
    output.line(f"packages: {', '.join(f'{name} {version}' for name, version in sorted(made.packages.items()))}")
    output.line(f"use it with: --archives {made.path}#environment, spark.pyspark.python=./environment/bin/python")


def _size(count: int) -> str:
    return f"{count / 1024:.0f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"
