"""A server that runs as long as the demo, in a folder that is deleted afterwards."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.service.options.server_options import HOME_VARIABLE
from penstock.service.server.home import LOG, RunningServer, running_server

PORTS = "8081-8181"
"""Range of ports, of which the server takes the first free one."""
START_SECONDS = 60.0
STOP_SECONDS = 60.0


@contextmanager
def own_server(slots: int) -> Iterator[RunningServer]:
    """Run a server at this machine's own address, with `slots` cores for its jobs, until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    before = os.environ.get(HOME_VARIABLE)
    # The server writes the secret with which this process may submit programs into this folder.
    os.environ[HOME_VARIABLE] = str(folder)
    process: subprocess.Popen[bytes] | None = None
    try:
        process = _start(folder, slots)
        yield _await_server(process, folder)
    finally:
        if process is not None:
            _stop(process)
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop(HOME_VARIABLE)
        if before is not None:
            os.environ[HOME_VARIABLE] = before


def _start(folder: Path, slots: int) -> subprocess.Popen[bytes]:
    configuration = {
        "rest.bind-port": PORTS,
        "spark.master": f"local[{slots}]",
        "web.refresh-interval": "1 s",
    }
    options = folder / "options.json"
    options.write_text(json.dumps({"folder": str(folder), "configuration": configuration, "foreground": True}))
    with (folder / LOG).open("ab") as log:
        command = [sys.executable, "-m", "penstock.service.server.server_process", str(options)]
        # The server gets a session of its own, so that Ctrl-C reaches only this process.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _await_server(process: subprocess.Popen[bytes], folder: Path) -> RunningServer:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = running_server(folder)
        if found is not None:
            return found
        time.sleep(0.02)
    said = (folder / LOG).read_text(errors="replace").strip()
    raise ConfigurationError(f"the server of the demo did not start:\n{said}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and its jobs."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    process.kill()
    process.wait()
