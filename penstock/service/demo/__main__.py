"""Starts a server and the job of the demo, and shows the results as they come, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live

from penstock.errors import PenstockError
from penstock.service.cli.exit_codes import CommandFailed
from penstock.service.cli.rest_client import RestClient, segment
from penstock.service.demo.own_server import own_server
from penstock.service.demo.screen import Screen
from penstock.service.rest.installed import check_installed

SLOTS = 2
EVERY_SECONDS = 0.25


def submit(client: RestClient, rate: float) -> str:
    """Run the program on the server, and return the id of its job."""
    program = Path(__file__).with_name("sensors.py")
    name = segment(client.upload("/jars/upload", program)["filename"].rpartition("/")[2])
    body = {"programArgsList": ["--rate", str(rate)], "parallelism": SLOTS}
    return str(client.post(f"/jars/{name}/run", body)["jobid"])


class Follower:
    """A reader of the job's growing output."""

    def __init__(self, client: RestClient, job: str, screen: Screen) -> None:
        self._client = client
        self._job = job
        self._screen = screen
        self._offset = 0
        self._rest = ""

    def look(self) -> None:
        """Read new output. A truncated log is read again from its beginning."""
        answer = self._client.read(f"/jobs/{self._job}/stdout", offset=self._offset)
        size = int(answer.headers["x-log-size"])
        *lines, self._rest = (self._rest + answer.body.decode(errors="replace")).split("\n")
        self._offset = size if size >= self._offset else 0
        for line in lines:
            self._screen.line(line)
        state = str(self._client.get(f"/jobs/{self._job}/status")["status"])
        self._screen.state = "" if state == "RUNNING" else state


def show(seconds: float | None, rate: float) -> None:
    """Run the job and show its results as they come."""
    console = Console()
    with own_server(SLOTS) as server:
        console.print(f"Penstock demo: {server.address}", style="bold", highlight=False)
        console.print("starting the job on Spark …", style="dim")
        client = RestClient(server.address)
        job = submit(client, rate)
        page = f"{server.address}/#/jobs/{job}"
        screen = Screen(page)
        follower = Follower(client, job, screen)
        console.print(f"the job's page: {page}", highlight=False, soft_wrap=True)
        began = time.monotonic()
        try:
            with Live(screen, console=console, refresh_per_second=4):
                while seconds is None or time.monotonic() - began < seconds:
                    follower.look()
                    time.sleep(EVERY_SECONDS)
        finally:
            console.print(f"stopping after {screen.lines()} …", style="dim")
    console.print("stopped cleanly", style="green")


def main() -> None:
    """Run the demo. This is the entry point of `python -m penstock.service.demo`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="stop after this many seconds")
    parser.add_argument("--rate", type=float, default=24.0, help="readings a second")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        check_installed()
        show(options.seconds, options.rate)
    except KeyboardInterrupt:
        Console().print("stopped cleanly", style="green")
    except (CommandFailed, PenstockError) as error:
        sys.exit(f"the demo: {error}")


if __name__ == "__main__":
    main()
