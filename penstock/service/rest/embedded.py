"""REST that a program's own process serves for its jobs: `penstock run -D rest.port=8081 program.py`."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from penstock.base.logs.log_formats import formatter
from penstock.base.logs.log_options import log_settings
from penstock.engine.observe.current_operator import origin_here
from penstock.service.launch.submission import with_defaults
from penstock.service.options.rest_options import RestSettings, rest_settings
from penstock.service.rest.installed import check_installed
from penstock.service.rest.job_backend import LogFile
from penstock.service.rest.local_jobs import LocalJobs


@contextmanager
def serve_jobs(configuration: Mapping[str, str]) -> Iterator[None]:
    """Serve REST within this block for every job that this process starts."""
    shown = formatter(log_settings(configuration).format, origin_here)
    with tempfile.TemporaryDirectory(prefix="penstock-rest-") as folder, _log_to(Path(folder), shown) as log_file:
        jobs = LocalJobs(configuration, [log_file])
        # This process runs one program and accepts no others. The option rest.address is meant for a server.
        with serve_in_thread(jobs, replace(rest_settings(configuration), submit=False, address=None)) as url:
            print(f"REST: {url}", file=sys.stderr, flush=True)
            with with_defaults(on_start=jobs.add):
                yield


@contextmanager
def serve_in_thread(jobs: LocalJobs, settings: RestSettings) -> Iterator[str]:
    """Serve these jobs until the end of the block, and yield the URL."""
    check_installed()
    from penstock.service.rest.app import create_app
    from penstock.service.rest.http_server import RestServer

    server = RestServer(create_app(jobs, settings), settings).start()
    try:
        yield server.url
    finally:
        server.stop()


@contextmanager
def _log_to(folder: Path, shown: logging.Formatter) -> Iterator[LogFile]:
    """Write the log of Penstock and of the jobs' functions to a file that REST can show."""
    path = folder / "penstock.log"
    handler: logging.Handler = logging.FileHandler(path)
    handler.setFormatter(shown)
    root, logger = logging.getLogger(), logging.getLogger("penstock")
    level, added = logger.level, [handler]
    if not root.hasHandlers() and logging.lastResort is not None:
        added.append(logging.lastResort)  # Python shows warnings by itself only as long as there is no handler at all
    for one in added:
        root.addHandler(one)
    logger.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield LogFile(path.name, path)
    finally:
        for one in added:
            root.removeHandler(one)
        logger.setLevel(level)
        handler.close()
