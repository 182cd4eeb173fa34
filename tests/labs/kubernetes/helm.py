"""Helm, built from its Go module, with the chart of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.labs.kubernetes.places import BINARIES, CACHE, ROOT

VERSION = "v3.22.0"
CHART = ROOT / "deployment/helm/penstock"
KUBERNETES = "1.33.0"
"""The version for which charts are rendered where no cluster is asked."""


def helm_program() -> str:
    """Return the Helm of this machine, or one that is built on first use and kept."""
    own = BINARIES / "helm"
    if found := shutil.which("helm"):
        return found
    if not own.exists():
        variables = {**os.environ, "GOBIN": str(BINARIES), "CGO_ENABLED": "0"}
        CACHE.mkdir(parents=True, exist_ok=True)
        build = ["go", "install", f"helm.sh/helm/v3/cmd/helm@{VERSION}"]
        subprocess.run(build, cwd=CACHE, env=variables, check=True)
    return str(own)


def run_helm(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [helm_program(), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})


def render(*options: str | Path, release: str = "penstock") -> list[dict[str, Any]]:
    """The manifests that the chart makes of values."""
    done = run_helm("template", release, CHART, "-n", "penstock", "--kube-version", KUBERNETES, *options)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def place(**values: str) -> list[str]:
    """Options that set values; `__` stands for the dot between the parts of a name."""
    return [word for name, text in values.items() for word in ("--set-string", f"{name.replace('__', '.')}={text}")]
