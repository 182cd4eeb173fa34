"""The Helm chart, checked without Helm: its schema, its values and what its templates take from them.

`make test-kubernetes` renders it, compares it with the manifests, and installs it.
"""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from penstock import __version__
from penstock.service.options.known_options import is_known

CHART = Path(__file__).parents[2] / "deployment/helm/penstock"
TEMPLATES = "\n".join(path.read_text() for path in sorted((CHART / "templates").iterdir()))
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())


def errors(**changes: Any) -> list[str]:
    """What the schema says of the chart's own values with changes; `__` stands between the parts of a name."""
    values = copy.deepcopy(VALUES)
    for name, value in changes.items():
        *folders, last = name.split("__")
        place = values
        for folder in folders:
            place = place[folder]
        place[last] = value
    return [error.message for error in Draft7Validator(SCHEMA).iter_errors(values)]


def names(values: Any, prefix: str = "") -> set[str]:
    """The full names of all values, without what is below lists and below maps with keys of the user."""
    if not isinstance(values, dict) or not values or prefix in ("configuration", "storage.variables"):
        return {prefix}
    return {name for key, value in values.items() for name in names(value, f"{prefix}.{key}".lstrip("."))}


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


def test_the_schema_is_one_and_the_values_follow_it() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert errors() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "both"},
        {"replicas": 2},
        {"image__repository": ""},
        {"image__tag": "a tag"},
        {"image__pullPolicy": "Sometimes"},
        {"image__pullSecrets": [""]},
        {"storage__url": "penstock"},
        {"storage__url": "file:///data"},
        {"storage__variables": {"AWS_ACCESS_KEY_ID": 1}},
        {"storage__variables": {"A KEY": "1"}},
        {"token__value": "short"},
        {"server__replicas": 0},
        {"server__replicas": "2"},
        {"server__resources__requests__cpus": "1"},
        {"server__resources__limits__memory": "4 GiB"},
        {"server__service__type": "ExternalName"},
        {"server__tolerations": [{"operator": "In"}]},
        {"job__path": "program.py"},
        {"job__arguments": [1]},
        {"job__id": "my-job"},
        {"job__backoffLimit": -1},
        {"executor__instances": 0},
        {"executor__cors": 1},
        {"executor__memory": "512"},
        {"executor__memoryOverhead": "1Gi"},
        {"parallelism": 1.5},
        {"configuration": {"execution": {"checkpointing": {"interval": "5 s"}}}},
    ],
    ids=str,
)
def test_a_wrong_value_is_an_error(wrong: dict[str, Any]) -> None:
    assert len(errors(**wrong)) == 1


def test_every_value_has_a_schema_and_is_used() -> None:
    described = set()

    def walk(schema: dict[str, Any], prefix: str) -> None:
        if reference := schema.get("$ref"):
            schema = SCHEMA["definitions"][reference.rpartition("/")[2]]
        if prefix.endswith((".resources", ".tolerations")) or "properties" not in schema:
            described.add(prefix)
            return
        for key, below in schema["properties"].items():
            walk(below, f"{prefix}.{key}".lstrip("."))

    walk(SCHEMA, "")
    given = {re.sub(r"\.resources\..*", ".resources", name) for name in names(VALUES)}
    assert described == given
    used = set(re.findall(r"\.Values\.([\w.]+)", TEMPLATES))
    # A part of a template that is given a whole map takes from it what it needs.
    taken = set(re.findall(r"(?<=[ (])(?:\$\w+)?\.([a-z]\w+)", TEMPLATES))
    passed = {name for name in given if name.partition(".")[0] in used and name.rpartition(".")[2] in taken}
    assert given - used - passed == set()
    assert [name for name in used if not any(f"{one}.".startswith(f"{name}.") for one in given)] == []


def test_every_option_is_one_that_something_reads() -> None:
    (decided,) = re.findall(r'define "penstock.decided".*?end }}', TEMPLATES, re.S)
    options = {*re.findall(r'^  "([\w.-]+)" ', decided, re.M), *VALUES["configuration"]}
    assert len(options) > 15 and [name for name in sorted(options) if not is_known(name)] == []
