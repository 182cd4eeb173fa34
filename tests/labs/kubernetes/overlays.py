"""Kustomizations on top of the manifests: another image, another storage, other secrets, and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.labs.kubernetes.places import ROOT

TOKEN = "a-token-of-the-lab"


def write_overlay(
    folder: Path, base: str, image: str, storage: Mapping[str, str], patches: list[dict[str, Any]] | None = None
) -> Path:
    """Write a kustomization over `base`, a folder of the project, for this image and these variables of the storage."""
    folder.mkdir(parents=True)
    name, _, tag = image.rpartition(":")
    secrets = {"penstock-storage": dict(storage), "penstock": {"token": TOKEN}}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(ROOT / base, folder.resolve())],
        "images": [{"name": "penstock", "newName": name, "newTag": tag}],
        "patches": [
            *({"patch": json.dumps(_secret(secret, values))} for secret, values in secrets.items()),
            *(patches or []),
        ],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization, indent=1))
    return folder


def _secret(name: str, values: Mapping[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "penstock"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(values)}
