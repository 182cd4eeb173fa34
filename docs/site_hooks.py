"""Hooks of MkDocs: the script that draws the diagrams is part of the site, and each picture opens in its full size.

The theme loads Mermaid from a public address when a reader opens a page with a diagram. This module copies the version
that `web/package-lock.json` names into the site instead. If npm cannot be run, the address of the theme remains. The
colours of the theme's dark scheme reach all parts of a diagram in Mermaid 11.12; later versions rename some parts.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

WEB = Path(__file__).resolve().parents[1] / "web"
PACKAGE = WEB / "node_modules" / "@mermaid-js" / "tiny"
SCRIPT = "assets/javascripts/mermaid.tiny.js"
LICENCE = "assets/javascripts/mermaid.LICENSE.txt"

DIAGRAM = re.compile(r'<pre class="mermaid">')
PICTURE = re.compile(r'(?<!">)<img [^>]*src="([^"]+)"[^>]*>')

log = logging.getLogger("mkdocs.penstock")


def on_config(config: Any) -> Any:
    """Install Mermaid, unless it is there."""
    build = _web_build()
    try:
        build.tools()
    except (OSError, subprocess.CalledProcessError) as error:
        log.info(f"readers load Mermaid from a public address, since it cannot be installed: {error}")
    return config


def _web_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("penstock_web_build", WEB / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Link each picture to its file, and load the script on pages with diagrams."""
    html = PICTURE.sub(r'<a href="\1">\g<0></a>', html)
    if DIAGRAM.search(html) and PACKAGE.is_dir():
        root = "../" * page.url.count("/")
        html += f'\n<script src="{root}{SCRIPT}"></script>'
    return html


def on_post_build(config: Any) -> None:
    """Copy the script and its licence into the site."""
    if not PACKAGE.is_dir():
        return
    site = Path(config["site_dir"])
    shutil.copyfile(PACKAGE / "dist" / "mermaid.tiny.js", site / SCRIPT)
    shutil.copyfile(PACKAGE / "LICENSE", site / LICENCE)
