"""The Helm chart, rendered by Helm: it makes the same as the manifests. `make test-kubernetes` starts these tests."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from penstock.service.launch.config_files import load_configuration
from tests.labs.kubernetes.helm import CHART, place, render, run_helm
from tests.labs.kubernetes.places import ROOT

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
MANIFESTS = ROOT / "deployment/kubernetes"
PROGRAM = MANIFESTS / "job/program.py"
TOKEN = {"token__value": "replace-this-token"}
KEYS = {
    "storage__variables__AWS_ACCESS_KEY_ID": "replace-this-key",
    "storage__variables__AWS_SECRET_ACCESS_KEY": "replace-this-secret",
}
JOB = ["-f", CHART / "values-job.yaml", "--set-file", f"job.source={PROGRAM}"]
MORE = [
    *place(image__repository="registry.example.com/penstock", image__tag="1", image__pullSecrets="{one,two}"),
    *place(server__nodeSelector__disk="ssd", job__nodeSelector__disk="ssd", executor__nodeSelector__disk="ssd"),
    *("--set-json", 'executor.tolerations=[{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]'),
    *("--set-json", 'job.arguments=["1", "a \\"quoted\\" word: true"]'),
    *("--set", "executor.instances=3,executor.cores=2,parallelism=6,server.service.type=LoadBalancer"),
    *("--set", r"configuration.state\.backend\.type=rocksdb,configuration.rest\.retry\.max-attempts=1000000"),
]


def kustomize(folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


def comparable(documents: list[dict[str, Any]], folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Manifests by kind and name, without what a chart does in another way."""
    found = {}
    for document in json.loads(json.dumps(documents)):
        kind, name = document["kind"], document["metadata"]["name"]
        if kind == "Namespace":  # Helm itself makes it: --create-namespace
            continue
        if kind == "Deployment":
            document["spec"]["template"]["metadata"].pop("annotations", None)
        if "penstock-conf.yaml" in document.get("data", {}):
            options = folder / "penstock-conf.yaml"
            options.write_text(document["data"]["penstock-conf.yaml"])
            settings = load_configuration([], folder, {})
            document["data"]["penstock-conf.yaml"] = {key: one.value for key, one in settings.items()}
            document["data"]["executor.yaml"] = yaml.safe_load(document["data"]["executor.yaml"])
        found[kind, name] = document
    return found


def test_it_makes_the_servers_of_the_manifests(tmp_path: Path) -> None:
    expected = comparable(kustomize(MANIFESTS), tmp_path)
    assert comparable(render(*place(**TOKEN, **KEYS)), tmp_path) == expected


def test_it_makes_the_job_of_the_manifests(tmp_path: Path) -> None:
    expected = comparable(kustomize(MANIFESTS / "job"), tmp_path)
    made = render(*JOB, *place(**TOKEN, **KEYS, job__id=f"{1:032}"))
    assert comparable(made, tmp_path) == expected


@pytest.mark.parametrize("options", [[], MORE], ids=["as it is", "with other values"])
@pytest.mark.parametrize("mode", [place(**TOKEN), JOB], ids=["server", "job"])
def test_what_it_makes_follows_the_schemas(mode: list[str], options: list[str]) -> None:
    linted = run_helm("lint", "--strict", CHART, *mode, *options)
    assert linted.returncode == 0, linted.stdout
    made = render(*mode, *options)
    assert len(made) >= 7
    for document in made:
        kubernetes_validate.validate(document, "1.33", strict=True)
    (configuration,) = [one for one in made if "executor.yaml" in one.get("data", {})]
    executor = yaml.safe_load(configuration["data"]["executor.yaml"])
    executor["metadata"]["name"], executor["spec"]["containers"][0]["image"] = "executor", "set-by-spark"
    kubernetes_validate.validate(executor, "1.33", strict=True)


def test_two_releases_share_nothing() -> None:
    first, second = (
        {(one["kind"], one["metadata"]["name"]) for one in render(*place(**TOKEN), release=release)}
        for release in ("one", "two")
    )
    assert len(first) == len(second) >= 10 and not first & second
    ids = {
        word
        for release in ("one", "two")
        for one in render(*JOB, release=release)
        if one["kind"] == "Job"
        for word in one["spec"]["template"]["spec"]["containers"][0]["args"]
        if "job-id" in word
    }
    assert len(ids) == 2


def test_secrets_of_your_own_are_used() -> None:
    made = render(*place(token__existingSecret="tokens", storage__existingSecret="keys"))
    assert [one for one in made if one["kind"] == "Secret"] == []
    (server,) = [one["spec"]["template"]["spec"]["containers"][0] for one in made if one["kind"] == "Deployment"]
    assert server["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert "tokens" in [v["valueFrom"]["secretKeyRef"]["name"] for v in server["env"] if "secretKeyRef" in str(v)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "neither token.value nor token.existingSecret is set"),
        (place(token__value="long enough", token__existingSecret="tokens"), "are both set"),
        (place(token__value="short"), "'/token/value'"),
        (["-f", str(CHART / "values-job.yaml")], "neither job.source nor job.path is set"),
        ([*place(**TOKEN), "--set", "parallelism=4"], "parallelism is 4, and executor.instances times executor.cores"),
        ([*place(**TOKEN), "--set", "executor.cors=2"], "'cors' not allowed"),
        ([*place(**TOKEN), "--set", r"configuration.parallelism\.default=4"], "which other values decide"),
        (place(**TOKEN, **KEYS, storage__existingSecret="keys"), "storage.variables and storage.existingSecret"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_a_wrong_value_is_an_error(options: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        render(*options)
