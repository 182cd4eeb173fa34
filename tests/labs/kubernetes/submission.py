"""Jobs that spark-submit gives to Kubernetes in cluster mode, as an outsider sees them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.labs.kubernetes.lab import INTERVAL, PROGRAM, SLOW, Lab
from tests.labs.kubernetes.places import HOST, ROOT
from tests.labs.kubernetes.store import BUCKET

SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
DRIVER_TEMPLATE = ROOT / "deployment/kubernetes/submit/driver.yaml"
SETTINGS = {
    "spark.kubernetes.namespace": "penstock",
    "spark.kubernetes.authenticate.driver.serviceAccountName": "penstock",
    "spark.kubernetes.authenticate.executor.serviceAccountName": "penstock-executor",
    "spark.kubernetes.driver.podTemplateFile": str(DRIVER_TEMPLATE),
    "spark.kubernetes.driver.request.cores": "200m",
    "spark.kubernetes.executor.request.cores": "200m",
    "spark.driver.memory": "512m",
    "spark.driver.memoryOverhead": "1g",
    "spark.executor.instances": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.memoryOverhead": "1g",
}


class Submission:
    """One job. Each start is another driver's pod, which goes on where the one before was."""

    def __init__(self, lab: Lab, name: str, numbers: int, rate: int, settings: Mapping[str, str] | None = None) -> None:
        self._lab = lab
        self._folder = lab.folder / name
        self._folder.mkdir()
        self._name = name
        self._arguments = [f"s3://{BUCKET}/{name}", str(numbers), str(rate)]
        self._settings = dict(settings or {})
        self._running: list[subprocess.Popen[bytes]] = []

    def prepare(self) -> None:
        """Put the program into a ConfigMap, and the template of executors into a file."""
        create = ("create", "configmap", "penstock-program", f"--from-file={PROGRAM}")
        made = self._kubectl(*create, "--dry-run=client", "-o", "yaml")
        self._lab.cluster.kubectl("apply", "-f", "-", stdin=made)
        template = self._kubectl("get", "configmap", "penstock", "-o", r"jsonpath={.data.executor\.yaml}")
        (self._folder / "executor.yaml").write_text(template)

    def start(self) -> None:
        options = {
            "parallelism.default": "2",
            "pipeline.job-id": self._name.encode().hex()[:32].ljust(32, "0"),
            "execution.recover": "latest",
            "execution.takeover": "true",
            "execution.checkpointing.dir": f"s3://{BUCKET}/checkpoints",
            INTERVAL.partition("=")[0]: INTERVAL.partition("=")[2],
        }
        settings = {
            **SETTINGS,
            "spark.kubernetes.container.image": self._lab.image,
            "spark.kubernetes.executor.podTemplateFile": str(self._folder / "executor.yaml"),
            **{f"spark.penstock.{name}": value for name, value in options.items()},
            **self._settings,
        }
        pairs = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
        place = ("--master", f"k8s://https://{HOST}:6443", "--deploy-mode", "cluster", "--name", self._name)
        command = [SPARK_SUBMIT, *place, *pairs, f"local:///programs/{PROGRAM.name}", *self._arguments]
        environment = {**os.environ, "KUBECONFIG": f"{self._lab.cluster.folder}/admin.conf"}
        with open(self._folder / "log", "ab") as log:
            self._running.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

    # --- what it does ---
    def driver(self) -> str:
        """The pod of the driver, once it runs."""
        selector = f"spark-role=driver,spark-app-name={self._name}"
        self._lab.cluster.await_true("the driver's pod runs", lambda: bool(self._lab.ready(selector)), SLOW)
        (name,) = self._lab.ready(selector)
        return name

    def executors(self) -> list[str]:
        return self._lab.ready(f"spark-role=executor,spark-app-name={self._name}")

    def await_end(self) -> int:
        """Wait until every spark-submit has ended, and return the exit status of the last."""
        for process in self._running:
            self._lab.cluster.await_true("spark-submit has ended", lambda one=process: one.poll() is not None, SLOW)
        return self._running[-1].wait()

    def log(self) -> str:
        """What spark-submit printed."""
        return (self._folder / "log").read_text(errors="replace")

    def driver_log(self) -> str:
        """What the last driver printed; its pod stays when it has ended."""
        pods = self._lab.cluster.objects("pods", selector=f"spark-role=driver,spark-app-name={self._name}")
        last = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        return self._kubectl("logs", last["metadata"]["name"])

    def _kubectl(self, *arguments: str) -> str:
        return self._lab.cluster.kubectl("-n", "penstock", *arguments)

    # --- faults ---
    def lose_executor(self) -> None:
        self._lab.delete(self.executors()[0], "--grace-period=0", "--force")

    def lose_driver(self) -> None:
        """Delete the driver's pod by force, and submit the job once more."""
        self._lab.delete(self.driver(), "--grace-period=0", "--force")
        self.start()

    def suspend_driver(self) -> None:
        """Delete the driver's pod in an orderly manner, and submit the job once more."""
        self._lab.delete(self.driver())
        self.start()

    def end(self) -> None:
        """End what still runs."""
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
        self._kubectl("delete", "pods", "-l", f"spark-app-name={self._name}", "--grace-period=0", "--force")


@contextmanager
def submitted(
    lab: Lab, name: str, numbers: int, rate: int, settings: Mapping[str, str] | None = None
) -> Iterator[Submission]:
    """Submit a job, and end it if the test fails."""
    job = Submission(lab, name, numbers, rate, settings)
    job.prepare()
    try:
        job.start()
        yield job
    except BaseException:
        print(job.log()[-6000:])
        raise
    finally:
        job.end()
