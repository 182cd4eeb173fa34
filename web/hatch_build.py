"""Builds the web pages before a wheel is made of them. Without the network the wheel goes without, and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebPages(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # Who works on the sources builds with make. Pages without a stamp were built elsewhere and brought along.
        root = Path(self.root)
        pages = root / "penstock" / "service" / "rest" / "web"
        brought_along = (pages / "index.html").is_file() and not (pages / ".stamp").is_file()
        if version == "editable" or brought_along:
            return
        subprocess.run([sys.executable, str(root / "web" / "build.py"), "--if-possible"], check=False)
