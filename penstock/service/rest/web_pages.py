"""The web pages: built from `web/` into a folder of this package, and served with headers that isolate them.

Browsers ask for a new version of the page at `/` each time. The files that it loads have a hash in their names, and
browsers keep them for good. None of them holds data of a job, so they need no token: the page asks the user for it.
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.responses import HTMLResponse

from penstock.service.rest.replies import not_found

FOLDER = Path(__file__).parent / "web"
PUBLIC = re.compile(r"/(assets/[^/]+)?")
"""The paths of the pages."""
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_HASHED = re.compile(r".+-[0-9A-Z]{8}\.\w+")
_FOR_GOOD = "public, max-age=31536000, immutable"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
)
"""The content security policy: the page loads nothing from elsewhere."""
_NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Penstock</title>
<h1>Penstock</h1>
<p>The server runs, but its web pages have not been built. In a checkout of the sources, build them with
<code>make web</code>, which needs the network once; installed packages bring them along.</p>
<p>The same is told as JSON: <a href="docs">the REST interface</a>.</p>
</html>
"""


def add_pages(app: FastAPI, folder: Path = FOLDER) -> None:
    """Serve the pages of a folder at `/`."""

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    def home() -> Response:
        headers = {"content-security-policy": _POLICY, "referrer-policy": "no-referrer", "cache-control": "no-cache"}
        try:
            return HTMLResponse((folder / "index.html").read_bytes(), headers=headers)
        except OSError:
            return HTMLResponse(_NOT_BUILT, headers=headers)

    @app.api_route("/assets/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    def asset(request: Request, name: str) -> Response:
        path = next((path for path in _files(folder) if path.name == name), None)
        if path is None:
            raise not_found(f"Not found: /assets/{name}")
        headers = {"cache-control": _FOR_GOOD if _HASHED.fullmatch(name) else "no-cache", "vary": "accept-encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(path.read_bytes(), headers=headers, media_type=_TYPES[path.suffix])
        packed = _compress(path, path.stat().st_mtime_ns)
        return Response(packed, headers={**headers, "content-encoding": "gzip"}, media_type=_TYPES[path.suffix])


def _files(folder: Path) -> list[Path]:
    """Return the files of the pages. A requested name is looked up in this list, never used as a path."""
    try:
        return [path for path in (folder / "assets").iterdir() if path.suffix in _TYPES]
    except OSError:
        return []


@lru_cache(maxsize=64)
def _compress(path: Path, changed: int) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)
