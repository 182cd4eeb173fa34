"""What the tests do with a cluster: deploy Penstock, submit jobs, cause faults, and look at pods."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.labs.kubernetes.cluster import Cluster
from tests.labs.kubernetes.overlays import TOKEN, write_overlay
from tests.labs.kubernetes.places import ROOT
from tests.labs.kubernetes.probe import pause_after
from tests.labs.kubernetes.store import BUCKET, Store, check_counts
from tests.waiting import until

PROGRAM = ROOT / "deployment/kubernetes/job/program.py"
SERVERS = "app.kubernetes.io/name=penstock"
EXECUTORS = "app.kubernetes.io/name=penstock-executor"
INTERVAL = "execution.checkpointing.interval=2 s"
SLOW = 600
"""Seconds that a machine with two busy cores may take for anything here."""


@dataclass(frozen=True)
class Lab:
    """One cluster, one store, an image, and a namespace in which Penstock runs."""

    cluster: Cluster
    store: Store
    image: str
    folder: Path
    namespace: str = "penstock"

    # --- deploying ---
    def apply(self, base: str, *patches: dict[str, Any]) -> None:
        """Apply manifests of the project for this image and this store."""
        folder = self.folder / re.sub(r"\W", "-", base)
        folder = folder.with_name(f"{folder.name}-{len(list(self.folder.glob(f'{folder.name}*')))}")
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
            for pod in self.objects("pods", selector)
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
            "-n", self.namespace, "exec", *interactive, pod, "--", *command, check=check, stdin=stdin
        )

    def objects(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """The objects of a kind in the namespace."""
        return self.cluster.objects(kind, self.namespace, selector)

    def applications(self) -> set[str]:
        """The Spark applications of which there are pods of executors, also of such that have ended."""
        return {pod["metadata"]["labels"]["spark-app-selector"] for pod in self.objects("pods", EXECUTORS)}

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
        return json.loads(self.fetch(path))

    def fetch(self, path: str) -> str:
        """What the Service answers to a GET."""
        (service,) = (one for one in self.objects("services") if one["metadata"]["name"] == "penstock")
        request = urllib.request.Request(
            f"http://{service['spec']['clusterIP']}:8081{path}", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            text: str = answer.read().decode()
            return text

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
        def seen() -> int:
            return self.rows(folder)

        until(
            lambda: seen() >= number, progress=seen, patience=SLOW, every=0.3, told=lambda: f"{seen()} of {number} rows"
        )

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
        self.cluster.kubectl("-n", self.namespace, "delete", "pod", pod, "--wait=false", *options)

    def end(self, pod: str) -> tuple[str, float]:
        """Delete a pod; return the exit status of its container, and the seconds until it was gone."""
        status = r'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}{"\n"}'
        command = self.cluster.kubectl_command("-n", self.namespace, "get", "pod", pod, "-w", "-o", status)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
            began = time.monotonic()
            self.cluster.kubectl("-n", self.namespace, "delete", "pod", pod)
            seconds = time.monotonic() - began
            watch.terminate()
            said, _ = watch.communicate()
        return " ".join(dict.fromkeys(said.split())), seconds

    def kill_driver(self) -> None:
        """End the driver process of the only job with SIGKILL."""
        leader = self.leader()
        assert leader is not None
        self.inside(leader, "pkill", "-KILL", "-f", "penstock.service.server.driver_process")

    def kill_container(self, pod: str) -> None:
        """End all processes of a pod's container with SIGKILL, as the OOM killer does."""
        (found,) = [one for one in self.objects("pods") if one["metadata"]["name"] == pod]
        container = found["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        self.cluster.ctr("task", "kill", "--all", "-s", "KILL", container, check=True)
