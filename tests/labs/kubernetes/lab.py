"""What the tests do with a cluster: deploy Penstock, submit jobs, cause faults, and look at pods."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.labs.kubernetes.cluster import Cluster
from tests.labs.kubernetes.overlays import TOKEN, write_overlay
from tests.labs.kubernetes.places import ROOT
from tests.labs.kubernetes.probe import pause_after
from tests.labs.kubernetes.store import BUCKET, Store, check_counts

PROGRAM = ROOT / "deployment/kubernetes/job/program.py"
SERVERS = "app.kubernetes.io/name=penstock"
EXECUTORS = "app.kubernetes.io/name=penstock-executor"
INTERVAL = "execution.checkpointing.interval=2 s"
SLOW = 600
"""Seconds that a machine with two busy cores may take for anything here."""


class Lab:
    """One cluster, one store, and an image."""

    def __init__(self, cluster: Cluster, store: Store, image: str, folder: Path) -> None:
        self.cluster = cluster
        self.store = store
        self.image = image
        self._folder = folder

    # --- deploying ---
    def apply(self, base: str, *patches: dict[str, Any]) -> None:
        """Apply manifests of the project for this image and this store."""
        folder = self._folder / re.sub(r"\W", "-", base)
        folder = folder.with_name(f"{folder.name}-{len(list(self._folder.glob(f'{folder.name}*')))}")
        overlay = write_overlay(folder, base, self.image, self.store.variables, list(patches))
        self.cluster.kubectl("apply", "-k", str(overlay))

    def await_servers(self, number: int) -> None:
        """Wait until so many servers are ready, and one of them leads."""
        self.cluster.await_true("the servers are ready", lambda: len(self.ready(SERVERS)) == number, SLOW)
        self.cluster.await_true("a server leads", lambda: self.leader() is not None, SLOW)

    def ready(self, selector: str) -> list[str]:
        """The names of pods that are ready and not about to end."""
        return [
            pod["metadata"]["name"]
            for pod in self.cluster.objects("pods", selector=selector)
            if "deletionTimestamp" not in pod["metadata"]
            and any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))
        ]

    def leader(self) -> str | None:
        """The pod of the server that leads."""
        for name in self.ready(SERVERS):
            said = self.inside(name, "penstock", "server", "status", "--json", check=False)
            if said and json.loads(said).get("leads"):
                return name
        return None

    def inside(self, pod: str, *command: str, check: bool = True, stdin: str | None = None) -> str:
        """Run a command in a pod."""
        interactive = ["-i"] if stdin is not None else []
        return self.cluster.kubectl(
            "-n", "penstock", "exec", *interactive, pod, "--", *command, check=check, stdin=stdin
        )

    # --- jobs ---
    def submit(self, folder: str, numbers: int, rate: int, *settings: str) -> str:
        """Submit the program through the leader; return the id of the job."""
        leader = self.leader()
        assert leader is not None
        self.inside(leader, "sh", "-c", "cat > /tmp/program.py", stdin=PROGRAM.read_text())
        options = [word for setting in (INTERVAL, *settings) for word in ("-D", setting)]
        arguments = (f"s3://{BUCKET}/{folder}", str(numbers), str(rate))
        said = self.inside(leader, "penstock", "run", "-d", *options, "/tmp/program.py", *arguments)
        (job,) = re.findall(r"[0-9a-f]{32}", said)
        return str(job)

    def ask(self, path: str) -> Any:
        """Ask REST through the Service."""
        (service,) = (one for one in self.cluster.objects("services") if one["metadata"]["name"] == "penstock")
        request = urllib.request.Request(
            f"http://{service['spec']['clusterIP']}:8081{path}", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def state(self, job: str) -> str:
        """The state of a job, or a word for why it cannot be had at this moment."""
        try:
            return str(self.ask(f"/jobs/{job}")["state"])
        except OSError as error:
            return f"no answer: {error}"

    def failure(self, job: str) -> str:
        """The failure with which a job has ended."""
        entries = self.ask(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
        return str(entries[0]["stacktrace"])

    def rows(self, folder: str) -> int:
        return len(self.store.rows(folder))

    def await_rows(self, folder: str, number: int) -> None:
        self.cluster.await_true(f"{number} rows in {folder}", lambda: self.rows(folder) >= number, SLOW)

    def pause(self, folder: str, fault: Callable[[], object]) -> float:
        """Cause a fault while results come, and return the seconds until they come again."""
        self.await_rows(folder, 1)
        return pause_after(fault, lambda: self.rows(folder), SLOW)

    def check(self, folder: str, numbers: int) -> None:
        """Wait until all results are there, and check that each is there once."""
        self.await_rows(folder, numbers)
        check_counts(self.store.rows(folder), numbers)

    # --- faults ---
    def delete(self, pod: str, *options: str) -> None:
        self.cluster.kubectl("-n", "penstock", "delete", "pod", pod, "--wait=false", *options)

    def kill_driver(self) -> None:
        """End the driver process of the only job with SIGKILL."""
        leader = self.leader()
        assert leader is not None
        self.inside(leader, "pkill", "-KILL", "-f", "penstock.service.server.driver_process")

    def kill_container(self, pod: str) -> None:
        """End all processes of a pod's container with SIGKILL, as the OOM killer does."""
        (found,) = [one for one in self.cluster.objects("pods") if one["metadata"]["name"] == pod]
        container = found["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        self.cluster.ctr("task", "kill", "--all", "-s", "KILL", container, check=True)
