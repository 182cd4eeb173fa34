"""Penstock on a real Kubernetes, with faults: `make test-kubernetes`.

Results are compared with what the program must write, each row once. Each fault leaves a line in a table of recovery
times, which is printed at the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.labs.kubernetes.cluster import Cluster, is_isolated
from tests.labs.kubernetes.helm import CHART, place, run_helm
from tests.labs.kubernetes.images import archive_of, make_pause_image
from tests.labs.kubernetes.lab import EXECUTORS, PROGRAM, SERVERS, SLOW, Lab
from tests.labs.kubernetes.overlays import TOKEN
from tests.labs.kubernetes.store import BUCKET, Store

IMAGE = os.environ.get("PENSTOCK_LAB_IMAGE", "")
JOB_POD = "app.kubernetes.io/name=penstock-job"
pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not IMAGE or not is_isolated(), reason="needs an image and a network: make test-kubernetes"),
]
FORWARDED = """
import os, sys, urllib.request
class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_): return None
url = f"http://{os.environ['POD_IP']}:8081/jobs/overview"
request = urllib.request.Request(url, headers={"Authorization": f"Bearer {sys.argv[1]}"})
print(urllib.request.build_opener(NoRedirect).open(request).status)
"""
DYNAMIC = (
    "spark.dynamicAllocation.enabled=true",
    "spark.dynamicAllocation.shuffleTracking.enabled=true",
    "spark.dynamicAllocation.maxExecutors=3",
    "spark.executor.instances=0",
)
FAULTS = ("an executor's pod is deleted by force", "the driver's process is killed", "the leader's pod is deleted",
          "the leader's container is killed")  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("kubernetes")
    with Cluster(folder, [make_pause_image(), IMAGE]) as cluster:
        yield Lab(cluster, Store(cluster), archive_of(IMAGE)[1], tmp_path_factory.mktemp("overlays"))


@pytest.fixture(scope="module")
def servers(lab: Lab) -> Lab:
    lab.apply("deployment/kubernetes")
    lab.await_servers(2)
    return lab


@pytest.fixture(scope="module")
def recoveries() -> Iterator[dict[str, float]]:
    times: dict[str, float] = {}
    yield times
    print("\n| fault | results again after |\n|---|---|")
    for fault, seconds in times.items():
        print(f"| {fault} | {seconds:.0f} s |")


def test_every_server_of_the_service_answers(servers: Lab) -> None:
    """Requests reach both pods, of which one forwards."""
    assert all(servers.ask("/overview")["flink-version"] for _ in range(10))
    standby = next(name for name in servers.ready(SERVERS) if name != servers.leader())
    command = ("python", "-c", FORWARDED)
    assert servers.inside(standby, *command, TOKEN) == "200"


def test_results_are_exact_through_faults(servers: Lab, recoveries: dict[str, float]) -> None:
    lab, folder, numbers = servers, "faults", 8000
    job = lab.submit(folder, numbers, 20)

    def delete_leader() -> None:
        lab.delete(lab.leader() or "")

    faults = (
        lambda: lab.delete(lab.ready(EXECUTORS)[0], "--grace-period=0", "--force"),
        lab.kill_driver,
        delete_leader,
        lambda: lab.kill_container(lab.leader() or ""),
    )
    for name, fault in zip(FAULTS, faults, strict=True):
        recoveries[name] = lab.pause(folder, fault)
    lab.check(folder, numbers)
    lab.cluster.await_true("the job has finished", lambda: lab.state(job) == "FINISHED", SLOW)


def test_executors_have_no_rights(servers: Lab) -> None:
    account = "system:serviceaccount:penstock:penstock-executor"
    may = servers.cluster.kubectl("auth", "can-i", "create", "pods", "-n", "penstock", f"--as={account}", check=False)
    assert may == "no"


def test_an_image_that_cannot_be_pulled_is_named(servers: Lab) -> None:
    settings = ("spark.kubernetes.container.image=registry.invalid/none:1", "slot.request.timeout=40 s")
    job = servers.submit("never", 10, 10, *settings, "restart-strategy.type=none")
    servers.cluster.await_true("the job has failed", lambda: servers.state(job) == "FAILED", SLOW)
    said = servers.failure(job)
    assert "image 'registry.invalid/none:1'" in said and "spark.kubernetes.container.image" in said


def test_executors_without_a_node_are_explained(servers: Lab) -> None:
    settings = ("spark.kubernetes.executor.request.cores=64", "slot.request.timeout=40 s")
    job = servers.submit("never", 10, 10, *settings, "restart-strategy.type=none")
    servers.cluster.await_true("the job has failed", lambda: servers.state(job) == "FAILED", SLOW)
    said = servers.failure(job)
    assert "waits for a node" in said and "spark.kubernetes.executor.request.cores" in said


def test_a_job_brings_its_executors(servers: Lab, recoveries: dict[str, float]) -> None:
    folder, numbers = "dynamic", 3000
    job = servers.submit(folder, numbers, 20, *DYNAMIC)
    recoveries["an executor's pod is deleted by force, with dynamic allocation"] = servers.pause(
        folder, lambda: servers.delete(servers.ready(EXECUTORS)[0], "--grace-period=0", "--force")
    )
    servers.check(folder, numbers)
    servers.cluster.await_true("the job has finished", lambda: servers.state(job) == "FINISHED", SLOW)


def test_the_chart_installs_a_job(servers: Lab) -> None:
    """In the namespace of the servers, beside them."""
    lab, folder, numbers = servers, "chart", 1000
    repository, _, tag = lab.image.rpartition(":")
    variables = {f"storage__variables__{name}": value for name, value in lab.store.variables.items()}
    arguments = json.dumps([f"s3://{BUCKET}/{folder}", str(numbers), "50"])
    done = run_helm(
        *("install", "counts", CHART, "-n", "penstock", "-f", CHART / "values-job.yaml"),
        *("--set-file", f"job.source={PROGRAM}", "--set-json", f"job.arguments={arguments}"),
        *place(image__repository=repository, image__tag=tag, storage__url=f"s3://{BUCKET}", **variables),
        KUBECONFIG=f"{lab.cluster.folder}/admin.conf",
    )
    assert done.returncode == 0, done.stderr
    lab.check(folder, numbers)
    lab.cluster.await_true("the Job is complete", lambda: job_status(lab, "counts-job").get("succeeded") == 1, SLOW)
    assert job_status(lab, "counts-job").get("failed", 0) == 0


def test_a_single_job_goes_on_when_its_pod_is_deleted(lab: Lab, recoveries: dict[str, float]) -> None:
    folder, numbers = "single", 3000
    lab.apply("deployment/kubernetes/job", shorter_job(folder, numbers, 20))
    lab.await_rows(folder, 1)
    (first,) = lab.ready(JOB_POD)
    recoveries["the pod of a single job is deleted"] = lab.pause(folder, lambda: lab.delete(first))
    lab.check(folder, numbers)
    lab.cluster.await_true("the Job is complete", lambda: job_status(lab).get("succeeded") == 1, SLOW)
    assert job_status(lab).get("failed", 0) == 0
    assert not [one for one in job_status(lab)["conditions"] if one["type"] == "Failed"]


def job_status(lab: Lab, name: str = "penstock-job") -> dict[str, object]:
    (job,) = (job for job in lab.cluster.objects("jobs") if job["metadata"]["name"] == name)
    status: dict[str, object] = job["status"]
    return status


def shorter_job(folder: str, numbers: int, rate: int) -> dict[str, object]:
    """A patch with the arguments of the program, and checkpoints in quick succession."""
    path = "/spec/template/spec/containers/0/args"
    added = [f"s3://{BUCKET}/{folder}", str(numbers), str(rate)]
    changes = [{"op": "add", "path": f"{path}/-", "value": word} for word in added]
    interval = {"op": "add", "path": f"{path}/2", "value": "-Dexecution.checkpointing.interval=2 s"}
    return {"target": {"kind": "Job", "name": "penstock-job"}, "patch": str([interval, *changes]).replace("'", '"')}
