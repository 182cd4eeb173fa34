"""Servers as processes of their own, which tests start, kill and ask over REST."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from penstock.service.server.home import running_server
from penstock.service.server.register import Register
from tests.waiting import SPARK_SECONDS, until


class ServerProcess:
    """One server; started again after its end, it has the same folder and port."""

    def __init__(self, folder: Path, **options: str) -> None:
        """Options have "__" for each dot and "_" for each hyphen."""
        self.folder = folder
        self.options = {
            "rest.port": "0",
            "web.submit.enable": "true",
            "spark.master": "local[2]",
            "penstock.server.restart.initial-backoff": "50 ms",
            **{name.replace("__", ".").replace("_", "-"): value for name, value in options.items()},
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> ServerProcess:
        self.folder.mkdir(parents=True, exist_ok=True)
        told = self.folder / "options.json"
        said = {"folder": str(self.folder), "configuration": self.options, "foreground": False}
        told.write_text(json.dumps(said))
        with (self.folder / "server.log").open("ab") as log:
            command = [sys.executable, "-m", "penstock.service.server.server_process", str(told)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        process = self.process
        found = until(
            lambda: process.poll() is not None or ((r := running_server(self.folder)) and r.pid == process.pid and r),
            patience=SPARK_SECONDS,
            told=self.log,
        )
        assert process.poll() is None, self.log()
        self.url = found.address
        return self

    def kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """With its jobs."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-5000:]

    def status(self) -> Any:
        found = running_server(self.folder)
        return found.ask("status") if found is not None else {"leads": False, "leader": None}


class Client:
    """Asks whichever of some servers leads."""

    def __init__(self, *servers: ServerProcess) -> None:
        self.servers = servers

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def post(self, path: str, **body: Any) -> Any:
        return self._ask("POST", path, json=body)

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        """Any server knows where to go; while none leads, it is tried again."""

        def asked() -> httpx.Response | None:
            for server in self.servers:
                # An order that may have arrived is not given twice.
                with suppress(httpx.HTTPError if method == "GET" else httpx.ConnectError):
                    answer = httpx.request(method, server.url + path, follow_redirects=True, timeout=600, **more)
                    if answer.status_code != 503:
                        return answer
            return None

        answer = until(asked, patience=SPARK_SECONDS, every=0.1, told=self._logs)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def _logs(self) -> str:
        return "\n".join(server.log() for server in self.servers)

    def submit(self, program: Path, *arguments: str, **more: Any) -> str:
        with program.open("rb") as file:
            uploaded = self._ask("POST", "/jars/upload", files={"jarfile": (program.name, file.read())})
        name = uploaded["filename"].rpartition("/")[2]
        job: str = self.post(f"/jars/{name}/run", programArgsList=list(arguments), **more)["jobid"]
        return job

    def await_checkpoints(self, job: str, more: int = 2) -> None:
        """Wait until the job has taken so many more checkpoints than it has now, whichever driver takes them."""
        newest = self._newest(job)
        until(
            lambda: self._newest(job) >= newest + more,
            progress=lambda: self._newest(job),
            patience=SPARK_SECONDS,
            every=0.1,
            told=lambda: f"no checkpoints after {newest}\n{self._logs()}",
        )

    def _newest(self, job: str) -> int:
        latest = self.get(f"/jobs/{job}/checkpoints").get("latest", {}).get("completed") or {}
        return int(latest.get("id", 0))

    def state(self, job: str) -> str:
        return str(self.get(f"/jobs/{job}")["state"])

    def cancel(self, job: str) -> None:
        self._ask("PATCH", f"/jobs/{job}?mode=cancel")
        until(lambda: self.state(job) == "CANCELED", patience=SPARK_SECONDS, every=0.1, told=self._logs)


def driver_pids(storage: str, job: str) -> list[int]:
    """The processes of all drivers that a job has had, first to last."""
    entry = Register(storage).job(job)
    return [place.where["pid"] for number in entry.drivers() if (place := entry.place(number)) is not None]
