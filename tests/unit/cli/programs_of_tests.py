"""Texts of programs, and wheels made by hand, for tests of running and packing."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

PROGRAM = """
import sys
from penstock.datastream import StreamExecutionEnvironment
{imports}

def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_elements(1, 2).map({function}).print()
    env.execute("a job")
    print("arguments:", *sys.argv[1:])

if __name__ == "__main__":
    main()
"""


def program(imports: str = "", function: str = "lambda x: x * 10") -> str:
    return PROGRAM.format(imports=imports, function=function)


def wheel(folder: Path, name: str, modules: dict[str, str], scripts: str = "") -> Path:
    """A wheel that pip installs, with these files and console scripts."""
    files = dict(modules)
    info = f"{name}-1.0.dist-info"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if scripts:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}"
    files[f"{info}/RECORD"] = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    files[f"{info}/RECORD"] += f"{info}/RECORD,,\n"
    target = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return target


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
