"""What cannot be run here is checked as far as it can be: schemas, references, settings and command lines."""

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

from penstock.cli import app
from penstock.cli.connecting import is_server
from penstock.launch.config_files import load_configuration
from penstock.launch.known_options import is_known
from penstock.server.cli import app as server_app

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deployment"
MANIFESTS = sorted(path for path in (FOLDER / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SPARK = Path(pyspark.__file__).parent


def documents() -> list[dict[str, Any]]:
    return [document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text())]


def the(kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents() if document["kind"] == kind]
    return found


# --- Kubernetes ---
@pytest.mark.parametrize("document", documents(), ids=lambda document: document["kind"])
def test_a_manifest_follows_the_schema_of_its_kind(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.33", strict=True)


def test_the_schemas_tell_what_is_wrong() -> None:
    wrong = the("Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["prots"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.33", strict=True)


def test_the_kustomization_lists_every_manifest() -> None:
    listed = yaml.safe_load((FOLDER / "kubernetes/kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == [path.name for path in MANIFESTS]


def test_what_the_manifests_refer_to_is_there() -> None:
    pod = the("Deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert the(kind)["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert the("Service")["spec"]["selector"].items() <= labels.items()
    assert the("Service")["spec"]["ports"][0]["targetPort"] in [port["name"] for port in container["ports"]]
    assert pod["spec"]["serviceAccountName"] == the("ServiceAccount")["metadata"]["name"]
    assert the("RoleBinding")["subjects"][0]["name"] == the("ServiceAccount")["metadata"]["name"]
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    assert volumes["configuration"]["configMap"]["name"] == the("ConfigMap")["metadata"]["name"]
    keys = [v["valueFrom"]["secretKeyRef"]["key"] for v in container["env"] if "secretKeyRef" in v.get("valueFrom", {})]
    assert keys and set(keys) <= set(the("Secret")["stringData"])
    assert {document["metadata"].get("namespace", "penstock") for document in documents()} == {"penstock"}


def pod_settings(tmp_path: Path) -> dict[str, str]:
    """What a server in the pod reads."""
    (tmp_path / "penstock-conf.yaml").write_text(the("ConfigMap")["data"]["penstock-conf.yaml"])
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    variables = {variable["name"]: variable.get("value", "from elsewhere") for variable in container["env"]}
    found = load_configuration([], tmp_path, variables)
    return {name: setting.value for name, setting in found.items()}


def test_executors_are_started_as_the_server_is(tmp_path: Path) -> None:
    settings = pod_settings(tmp_path)
    pod = the("Deployment")["spec"]["template"]["spec"]
    assert settings["spark.kubernetes.container.image"] == pod["containers"][0]["image"]
    assert settings["spark.kubernetes.authenticate.serviceAccountName"] == pod["serviceAccountName"]
    assert settings["spark.kubernetes.namespace"] == the("Namespace")["metadata"]["name"]
    assert settings["spark.driver.host"] == "$(POD_IP)"
    assert settings["spark.kubernetes.driver.pod.name"] == "from elsewhere"
    for name, secret in settings.items():
        if ".secretKeyRef." in name:
            holder, _, key = secret.partition(":")
            assert (holder, key in the("Secret")["stringData"]) == (the("Secret")["metadata"]["name"], True)
    cores = int(settings["spark.executor.instances"]) * int(settings["spark.executor.cores"])
    assert cores >= int(settings["parallelism.default"])


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
    oldest = next(need for need in project["dependencies"] if need.startswith("pyspark"))
    assert oldest == "pyspark>=4.1,<5" and re.fullmatch(r"4\.[1-9]\d*\.\d+", defaults["SPARK_VERSION"])
    assert defaults["PYTHON_VERSION"] in [c.rpartition(" ")[2] for c in project["classifiers"]]
    sources = [word for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M) for word in line.split()[:-1]]
    assert sources and all((ROOT / source).exists() for source in sources)
    users = {re.search(r"useradd --uid (\d+)", text)[1], re.search(r"^USER (\d+)", text, re.M)[1]}
    assert users == {str(the("Deployment")["spec"]["template"]["spec"]["securityContext"]["runAsUser"])}
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
    (line,) = [line for page, line in PENSTOCK if page.endswith("/yarn.md") and " run " in line]
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
