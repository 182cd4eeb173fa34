"""Penstock on a real Kubernetes, with faults: `make test-kubernetes`.

Results are compared with what the program must write, each row once. Each fault leaves a line in a table of recovery
times, which is printed at the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.labs.kubernetes.cluster import Cluster, is_isolated
from tests.labs.kubernetes.helm import CHART, place, run_helm
from tests.labs.kubernetes.images import make_pause_image, name_of
from tests.labs.kubernetes.lab import EXECUTORS, PROGRAM, SERVERS, SLOW, Lab
from tests.labs.kubernetes.overlays import TOKEN
from tests.labs.kubernetes.store import BUCKET, Store
from tests.labs.kubernetes.submission import submitted

IMAGE = os.environ.get("PENSTOCK_LAB_IMAGE", "")
SUSPENDED, ENDED = "143", "0"
"""Exit statuses of a driver and of a server that end in an orderly manner."""
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
OBSTACLES = {
    "spark.kubernetes.container.image": (
        "registry.invalid/none:1",
        "image 'registry.invalid/none:1'",
        "correct spark.kubernetes.container.image",
    ),
    "spark.kubernetes.executor.request.cores": ("64", "waits for a node", "spark.kubernetes.executor.request.cores"),
    "spark.kubernetes.executor.secretKeyRef.KEY": ("nowhere:key", "cannot be created", 'secret "nowhere" not found'),
}
"""Settings with a value that keeps executors from starting, and what the error has to say."""
OTHER_VALUE = {r"configuration__execution\.checkpointing\.timeout": "9 min"}
SUBMITTED = {
    "lose_executor": "an executor's pod of a job of `spark-submit` is deleted by force",
    "lose_driver": "the driver's pod of `spark-submit` is deleted by force, and the job is submitted again",
    "suspend_driver": "the driver's pod of `spark-submit` is deleted, and the job is submitted again",
}
FAULTS = ("an executor's pod is deleted by force", "the driver's process is killed", "the leader's pod is deleted",
          "the leader's container is killed")  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("kubernetes")
    with Cluster(folder, [make_pause_image(), IMAGE]) as cluster:
        yield Lab(cluster, Store(cluster), name_of(IMAGE), tmp_path_factory.mktemp("overlays"))


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
    """Requests reach both pods, of which one forwards; the pages and the log come with them."""
    for _ in range(10):
        assert servers.ask("/overview")["flink-version"]
        assert servers.fetch("/").lower().startswith("<!doctype html>")
    assert servers.fetch("/jobmanager/log")
    standby = next(name for name in servers.ready(SERVERS) if name != servers.leader())
    command = ("python", "-c", FORWARDED)
    assert servers.inside(standby, *command, TOKEN) == "200"


def test_results_are_exact_through_faults(servers: Lab, recoveries: dict[str, float]) -> None:
    lab, folder, numbers = servers, "faults", 6000
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
        assert lab.fetch(f"/jobs/{job}/log")
    lab.cluster.await_true("earlier drivers leave no pods", lambda: len(lab.applications()) == 1, SLOW)
    lab.check(folder, numbers)
    lab.cluster.await_true("the job has finished", lambda: lab.state(job) == "FINISHED", SLOW)


def test_executors_have_no_rights(servers: Lab) -> None:
    account = "system:serviceaccount:penstock:penstock-executor"
    may = servers.cluster.kubectl("auth", "can-i", "create", "pods", "-n", "penstock", f"--as={account}", check=False)
    assert may == "no"


def test_what_keeps_executors_from_starting_is_named(servers: Lab) -> None:
    """When the request timeout is over, each job fails with one error, and nothing is written."""
    folder, options = "never", ("slot.request.timeout=40 s", "restart-strategy.type=none")
    jobs = {
        setting: servers.submit(folder, 10, 10, f"{setting}={value}", *options)
        for setting, (value, *_) in OBSTACLES.items()
    }
    for setting, (_, *words) in OBSTACLES.items():
        job = jobs[setting]
        servers.cluster.await_true(
            f"the job has failed: {setting}", lambda job=job: servers.state(job) == "FAILED", SLOW
        )
        said = servers.failure(job)
        assert all(word in said for word in words), said
    assert servers.rows(folder) == 0


def test_a_job_brings_its_executors(servers: Lab, recoveries: dict[str, float]) -> None:
    folder, numbers = "dynamic", 2000
    job = servers.submit(folder, numbers, 20, *DYNAMIC)
    recoveries["an executor's pod is deleted by force, with dynamic allocation"] = servers.pause(
        folder, lambda: servers.delete(servers.ready(EXECUTORS)[0], "--grace-period=0", "--force")
    )
    servers.check(folder, numbers)
    servers.cluster.await_true("the job has finished", lambda: servers.state(job) == "FINISHED", SLOW)


def test_a_driver_of_spark_submit_runs_in_a_pod(servers: Lab, recoveries: dict[str, float]) -> None:
    """`spark-submit --deploy-mode cluster`: a lost driver goes on when the same command is given again."""
    name, numbers = "submitted", 6000
    with submitted(servers, name, numbers, 20) as job:
        for fault, text in SUBMITTED.items():
            recoveries[text] = servers.pause(name, getattr(job, fault))
        servers.check(name, numbers)
        assert job.await_end() == 0
        assert "Succeeded" in job.log()


def test_the_driver_of_spark_submit_names_what_is_wrong(servers: Lab) -> None:
    settings = {
        "spark.kubernetes.executor.container.image": "registry.invalid/none:1",
        "spark.penstock.slot.request.timeout": "40 s",
        "spark.penstock.restart-strategy.type": "none",
    }
    with submitted(servers, "submit-never", 10, 10, settings) as job:
        assert job.await_end() == 0, "Spark tells that the driver has failed in its log, not by its exit status"
        assert "image 'registry.invalid/none:1'" in job.driver_log()
        assert "Failed" in job.log()
    assert servers.rows("submit-never") == 0


def test_servers_end_by_themselves(servers: Lab, recoveries: dict[str, float]) -> None:
    """Each ends when it is told to, and is not killed when its time is over."""
    for role in ("a standby", "a leader without jobs"):
        leader = servers.leader()
        assert leader is not None
        pod = leader if "leader" in role else next(name for name in servers.ready(SERVERS) if name != leader)
        status, recoveries[f"the pod of {role} is deleted, until it is gone"] = servers.end(pod)
        assert status == ENDED
        servers.await_servers(2)


def test_the_chart_installs_servers(lab: Lab) -> None:
    """In a namespace of their own. Other values start them anew, and a job goes on."""
    chart, folder, numbers = replace(lab, namespace="chart"), "chart-servers", 3000
    lab.cluster.kubectl("create", "namespace", chart.namespace)
    lab.cluster.kubectl("label", "namespace", chart.namespace, "pod-security.kubernetes.io/enforce=restricted")
    install_chart(chart, "install", "penstock", token__value=TOKEN)
    chart.await_servers(2)
    first = chart.ready(SERVERS)
    job = chart.submit(folder, numbers, 20)
    chart.await_rows(folder, 1)
    install_chart(chart, "upgrade", "penstock", token__value=TOKEN, **OTHER_VALUE)
    lab.cluster.kubectl("-n", chart.namespace, "rollout", "status", "deployment/penstock")
    chart.await_servers(2)
    assert not set(first) & set(chart.ready(SERVERS))
    assert chart.rows(folder) < numbers, "the servers have to be replaced while the job runs"
    chart.check(folder, numbers)
    lab.cluster.await_true("the job has finished", lambda: chart.state(job) == "FINISHED", SLOW)
    assert run_helm("uninstall", "penstock", "-n", chart.namespace, KUBECONFIG=kubeconfig(lab)).returncode == 0
    lab.cluster.await_true("all pods are gone", lambda: not chart.objects("pods"), SLOW)


def test_the_chart_installs_a_job(servers: Lab) -> None:
    """In the namespace of the servers, beside them."""
    lab, folder, numbers = servers, "chart-job", 500
    arguments = json.dumps([f"s3://{BUCKET}/{folder}", str(numbers), "50"])
    program = ("--set-file", f"job.source={PROGRAM}", "--set-json", f"job.arguments={arguments}")
    install_chart(lab, "install", "counts", "-f", CHART / "values-job.yaml", *program)
    lab.check(folder, numbers)
    lab.cluster.await_true("the Job is complete", lambda: job_status(lab, "counts-job").get("succeeded") == 1, SLOW)
    assert job_status(lab, "counts-job").get("failed", 0) == 0


def test_a_single_job_goes_on_when_its_pod_is_deleted(lab: Lab, recoveries: dict[str, float]) -> None:
    folder, numbers = "single", 2000
    lab.apply("deployment/kubernetes/job", shorter_job(folder, numbers, 20))
    lab.await_rows(folder, 1)
    (first,) = lab.ready(JOB_POD)
    ends = []
    recoveries["the pod of a single job is deleted"] = lab.pause(folder, lambda: ends.append(lab.end(first)))
    ((status, seconds),) = ends
    recoveries["the pod of a single job is deleted, until it is gone"] = seconds
    assert status == SUSPENDED
    lab.check(folder, numbers)
    lab.cluster.await_true("the Job is complete", lambda: job_status(lab).get("succeeded") == 1, SLOW)
    assert job_status(lab).get("failed", 0) == 0
    assert not [one for one in job_status(lab)["conditions"] if one["type"] == "Failed"]


def kubeconfig(lab: Lab) -> str:
    return f"{lab.cluster.folder}/admin.conf"


def install_chart(lab: Lab, verb: str, release: str, *options: str | Path, **values: str) -> None:
    """Install a release of the chart, or upgrade it, with the image and the storage of the lab."""
    repository, _, tag = lab.image.rpartition(":")
    variables = {f"storage__variables__{name}": value for name, value in lab.store.variables.items()}
    chosen = {"image__repository": repository, "image__tag": tag, "storage__url": f"s3://{BUCKET}/{lab.namespace}"}
    settings = place(**chosen, **variables, **values)
    done = run_helm(verb, release, CHART, "-n", lab.namespace, *options, *settings, KUBECONFIG=kubeconfig(lab))
    assert done.returncode == 0, done.stderr


def job_status(lab: Lab, name: str = "penstock-job") -> dict[str, object]:
    (job,) = (job for job in lab.objects("jobs") if job["metadata"]["name"] == name)
    status: dict[str, object] = job["status"]
    return status


def shorter_job(folder: str, numbers: int, rate: int) -> dict[str, object]:
    """A patch with the arguments of the program, and checkpoints in quick succession."""
    path = "/spec/template/spec/containers/0/args"
    added = [f"s3://{BUCKET}/{folder}", str(numbers), str(rate)]
    changes = [{"op": "add", "path": f"{path}/-", "value": word} for word in added]
    interval = {"op": "add", "path": f"{path}/2", "value": "-Dexecution.checkpointing.interval=2 s"}
    return {"target": {"kind": "Job", "name": "penstock-job"}, "patch": str([interval, *changes]).replace("'", '"')}
