"""Builds the web pages before a wheel is made of them. Without the network the wheel goes without, and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebPages(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # Who works on the sources builds with make; an archive of the sources brings built pages along.
        root = Path(self.root)
        if version == "editable" or not (root / ".git").exists():
            return
        subprocess.run([sys.executable, str(root / "web" / "build.py"), "--if-possible"], check=False)
