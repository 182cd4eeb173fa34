"""Manifests and command lines, checked without a cluster: schemas, references, settings and switches.

`make test-kubernetes` runs them.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pyspark
import pytest
import typer
import yaml
from packaging.requirements import Requirement

from penstock import __version__
from penstock.service.cli import app
from penstock.service.cli.server_connection import is_server
from penstock.service.launch.config_files import load_configuration
from penstock.service.options.known_options import is_known
from penstock.service.server.cli import app as server_app

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deployment"
DRIVER = FOLDER / "kubernetes/submit/driver.yaml"
NO_MANIFESTS = ("kustomization.yaml", DRIVER.name)
MANIFESTS = sorted(path for path in (FOLDER / "kubernetes").rglob("*.yaml") if path.name not in NO_MANIFESTS)
KUSTOMIZATIONS = sorted((FOLDER / "kubernetes").rglob("kustomization.yaml"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SPARK = Path(pyspark.__file__).parent


def documents() -> list[dict[str, Any]]:
    return [document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text())]


def the(kind: str, name: str = "penstock") -> dict[str, Any]:
    (found,) = [one for one in documents() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def executor() -> dict[str, Any]:
    """The template of the executors' pods."""
    found: dict[str, Any] = yaml.safe_load(the("ConfigMap")["data"]["executor.yaml"])
    return found


def driver() -> dict[str, Any]:
    """The template of the driver's pod of spark-submit."""
    found: dict[str, Any] = yaml.safe_load(DRIVER.read_text())
    return found


PODS = {
    "server": lambda: the("Deployment")["spec"]["template"]["spec"],
    "job": lambda: the("Job", "penstock-job")["spec"]["template"]["spec"],
    "executor": lambda: executor()["spec"],
    "driver": lambda: driver()["spec"],
}


# --- Kubernetes ---
@pytest.mark.parametrize("document", documents(), ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_a_manifest_follows_the_schema_of_its_kind(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.33", strict=True)


def test_the_schemas_tell_what_is_wrong() -> None:
    wrong = the("Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["prots"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.33", strict=True)


@pytest.mark.parametrize("template", [executor(), driver()], ids=["executor", "driver"])
def test_a_template_is_a_pod(template: dict[str, Any]) -> None:
    template["metadata"]["name"] = "set-by-spark"
    template["spec"]["containers"][0]["image"] = "set-by-spark"
    kubernetes_validate.validate(template, "1.33", strict=True)


def test_the_kustomizations_list_every_manifest() -> None:
    listed = set()
    for path in KUSTOMIZATIONS:
        for name in yaml.safe_load(path.read_text())["resources"]:
            assert (path.parent / name).exists()
            listed.add((path.parent / name).resolve())
    assert {path for path in listed if path.is_file()} == set(MANIFESTS)


def test_the_image_has_the_version_of_the_project() -> None:
    for path in KUSTOMIZATIONS:
        for image in yaml.safe_load(path.read_text()).get("images", ()):
            assert (image["name"], image["newTag"]) == ("penstock", __version__)
    images = {container["image"] for name in ("server", "job") for container in PODS[name]()["containers"]}
    assert images == {"penstock"} and compose()["services"]["server"]["image"] == f"penstock:{__version__}"


def test_what_the_manifests_refer_to_is_there() -> None:
    pod = the("Deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert the(kind)["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert the("Service")["spec"]["selector"].items() <= labels.items()
    assert the("Service")["spec"]["ports"][0]["targetPort"] in [port["name"] for port in container["ports"]]
    assert the("RoleBinding")["subjects"][0]["name"] == the("ServiceAccount")["metadata"]["name"]
    assert {document["metadata"].get("namespace", "penstock") for document in documents()} == {"penstock"}
    keys = [v["valueFrom"]["secretKeyRef"] for v in container["env"] if "secretKeyRef" in v.get("valueFrom", {})]
    assert keys and all(key["key"] in the("Secret", key["name"])["stringData"] for key in keys)


@pytest.mark.parametrize("name", PODS)
def test_what_a_pod_refers_to_is_there(name: str) -> None:
    pod = PODS[name]()
    (container,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    generated = {
        one["name"] for path in KUSTOMIZATIONS for one in yaml.safe_load(path.read_text()).get("configMapGenerator", ())
    }
    for volume in volumes.values():
        if "configMap" in volume:
            assert volume["configMap"]["name"] in {*generated, the("ConfigMap")["metadata"]["name"]}
    assert [source["secretRef"]["name"] for source in container["envFrom"]] == ["penstock-storage"]
    assert the("Secret", "penstock-storage")
    if name not in ("executor", "driver"):
        assert pod["serviceAccountName"] == the("ServiceAccount")["metadata"]["name"]


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_restricted(name: str) -> None:
    """The demands of the Pod Security Standard "restricted", and a root file system that is only read."""
    assert the("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    pod = PODS[name]()
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] == 185
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_executors_may_do_nothing(tmp_path: Path) -> None:
    account = pod_settings(tmp_path)["spark.kubernetes.authenticate.executor.serviceAccountName"]
    bound = {subject["name"] for one in documents() if one["kind"] == "RoleBinding" for subject in one["subjects"]}
    assert the("ServiceAccount", account)["automountServiceAccountToken"] is False and account not in bound
    assert executor()["spec"]["automountServiceAccountToken"] is False


def pod_settings(tmp_path: Path) -> dict[str, str]:
    """What a server in the pod reads."""
    (tmp_path / "penstock-conf.yaml").write_text(the("ConfigMap")["data"]["penstock-conf.yaml"])
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    variables = {variable["name"]: variable.get("value", "from elsewhere") for variable in container["env"]}
    found = load_configuration([], tmp_path, variables)
    return {name: setting.value for name, setting in found.items()}


def test_executors_suffice_for_the_parallelism(tmp_path: Path) -> None:
    settings = pod_settings(tmp_path)
    cores = int(settings["spark.executor.instances"]) * int(settings["spark.executor.cores"])
    assert cores >= int(settings["parallelism.default"])
    folder, name = settings["spark.kubernetes.executor.podTemplateFile"].rsplit("/", 1)
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    assert folder in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert name in the("ConfigMap")["data"]


def test_the_pods_have_the_sizes_of_the_page_and_fit_on_one_small_node(tmp_path: Path) -> None:
    settings = pod_settings(tmp_path)
    sizes = {name: PODS[name]()["containers"][0]["resources"] for name in ("server", "job")}
    parts = (settings["spark.executor.memory"], settings["spark.executor.memoryOverhead"])
    memory = f"{sum(mebibytes(part) for part in parts)}Mi"
    cpu = settings["spark.kubernetes.executor.request.cores"]
    sizes["executor"] = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}
    page = (ROOT / "docs/deployment/kubernetes.md").read_text()
    rows = re.findall(r"^\| (server|executor|single job) \| ([\d.]+) CPU, ([\d.]+) GiB \| ([\d.]+) GiB \|", page, re.M)
    assert len(rows) == 3
    for name, *figures in rows:
        size = sizes[name.rpartition(" ")[2]]
        shown = [round(float(figure) * factor) for figure, factor in zip(figures, (1000, 1024, 1024), strict=True)]
        requested = size["requests"]
        limit = mebibytes(size["limits"]["memory"])
        assert shown == [millicpus(size), mebibytes(requested["memory"]), limit], name
    servers = the("Deployment")["spec"]["replicas"]
    cpus = servers * millicpus(sizes["server"]) + int(settings["spark.executor.instances"]) * millicpus(
        sizes["executor"]
    )
    assert cpus <= 1000, "two servers and the executors of one job fit on a node with one CPU"


def millicpus(size: dict[str, Any]) -> int:
    return int(size["requests"]["cpu"].removesuffix("m"))


def mebibytes(text: str) -> int:
    number, unit = re.fullmatch(r"([\d.]+)([MmGg])i?", text).groups()
    return round(float(number) * {"m": 1, "g": 1024}[unit.lower()])


def test_every_server_is_probed() -> None:
    (container,) = PODS["server"]()["containers"]
    ports = [port["name"] for port in container["ports"]]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["tcpSocket"]["port"] in ports


# --- Docker ---
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "docker-compose.yml").read_text())
    return found


def test_the_compose_file_follows_its_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, FOLDER / "docker-compose.yml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_the_compose_file_refers_to_is_there() -> None:
    services = compose()["services"]
    for service in services.values():
        assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).resolve().is_file()
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= set(compose()["volumes"])
        assert set(service.get("depends_on", ())) <= set(services)


def test_the_image_is_made_of_what_the_project_has() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    defaults = dict(re.findall(r"^ARG (\w+)=(.+)$", text, re.M))
    needed = next(need for need in project["dependencies"] if need.startswith("pyspark"))
    assert Requirement(needed).specifier.contains(defaults["SPARK_VERSION"])
    assert defaults["PYTHON_VERSION"] in [c.rpartition(" ")[2] for c in project["classifiers"]]
    sources = [word for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M) for word in line.split()[:-1]]
    assert sources and all((ROOT / source).exists() for source in sources)
    users = {re.search(r"useradd --uid (\d+)", text)[1], re.search(r"^USER (\d+)", text, re.M)[1]}
    assert users == {str(pod()["securityContext"]["runAsUser"]) for pod in PODS.values()}
    described = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", (ROOT / "docs/deployment/docker.md").read_text(), re.M))
    assert described == defaults


# --- settings ---
def test_every_setting_is_one_that_something_reads(tmp_path: Path) -> None:
    server = compose()["services"]["server"]["environment"]
    used = {*pod_settings(tmp_path), *load_configuration([], FOLDER, server)}
    assert [name for name in used if not is_known(name)] == []


# --- command lines ---
def command_lines(program: str) -> list[tuple[str, str]]:
    """Every call of a program in a block of the documentation, with its page."""
    found = []
    for page in PAGES:
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.M | re.S):
            for line in block.replace("\\\n", " ").splitlines() if language in ("", "bash", "sh") else ():
                if (call := re.search(rf"(?:^|-- |^\w+=\S+ )({program} [a-z-].*)$", line.strip())) is not None:
                    found.append((str(page.relative_to(ROOT)), call[1]))
    return found


def readable(line: str) -> list[str]:
    return shlex.split(re.sub(r"\s# .*", "", line))[1:]


PENSTOCK = [pair for pair in command_lines("penstock") if "[" not in re.sub(r"local\[[\d*,]+\]", "", pair[1])]


@pytest.mark.parametrize(("page", "line"), PENSTOCK, ids=[line[:60] for _, line in PENSTOCK])
def test_a_penstock_command_of_the_documentation_is_one(page: str, line: str) -> None:
    verb, *arguments = readable(line)
    group = typer.main.get_command(app)
    if verb == "server":
        group, (verb, *arguments) = typer.main.get_command(server_app), arguments
    command = group.get_command(None, verb)
    assert command is not None, f"{page}: there is no verb '{verb}'"
    context = command.make_context(verb, list(arguments))  # raises for a switch that does not exist
    for option in context.params.get("option") or []:
        name = option.partition("=")[0]
        assert is_known(name), f"{page}: nothing reads {name}"


def test_there_are_commands_to_check() -> None:
    assert len(PENSTOCK) > 10 and len(SUBMITS) > 0


SUBMITS = command_lines("spark-submit")


@pytest.mark.parametrize(("page", "line"), SUBMITS, ids=[line[:60] for _, line in SUBMITS])
def test_sparks_launcher_accepts_a_command_of_the_documentation(page: str, line: str) -> None:
    assert launched(readable(line)).returncode == 0
    wrong = launched(["--mastre", *readable(line)])
    assert "Unrecognized option: --mastre" in wrong.stderr


def launched(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """What Spark's scripts would run; the launcher reads the arguments and prints the command of the JVM."""
    java = Path(os.environ["JAVA_HOME"], "bin/java") if os.environ.get("JAVA_HOME") else "java"
    launcher = [java, "-cp", f"{SPARK}/jars/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    environment = {**os.environ, "SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": "2.13"}
    return subprocess.run([*launcher, *arguments], capture_output=True, text=True, check=False, env=environment)


RECORDER = f"""#!{sys.executable}
import json, sys
json.dump(sys.argv[1:], open({{path!r}}, "w"))
sys.exit(1)
"""
PLACES = {
    "standalone": ["-m", "spark://master.example.org:7077"],
    "yarn": ["-m", "yarn"],
    "kubernetes": ["-m", "k8s://https://kubernetes.default.svc"],
}


@pytest.mark.parametrize("place", PLACES)
def test_spark_is_started_with_the_settings_of_the_page(place: str, tmp_path: Path) -> None:
    """A stand-in for `spark-submit` notes how it was called, and ends."""
    assert not is_server(PLACES[place][1])
    line = next(line for page, line in PENSTOCK if page.endswith("/yarn.md") and " run " in line)
    settings = [word for word in readable(line) if word.startswith("spark.")]
    (tmp_path / "bin").mkdir()
    script, noted = tmp_path / "bin/spark-submit", tmp_path / "called.json"
    script.write_text(RECORDER.format(path=str(noted)))
    script.chmod(0o755)
    (tmp_path / "job.py").write_text(
        "from penstock.datastream import StreamExecutionEnvironment as E\n"
        "env = E.get_execution_environment()\nenv.from_elements(1).print()\nenv.execute()\n"
    )
    options = [word for setting in settings for word in ("-D", setting)]
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "run", *PLACES[place], *options, "job.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    called = json.loads(noted.read_text())
    given = [called[index + 1] for index, word in enumerate(called) if word == "--conf"]
    assert {f"spark.master={PLACES[place][1]}", *settings} <= set(given) and len(settings) >= 4
