"""Where the lab keeps its things, and how containers are run on a machine that may lack some capabilities."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CACHE = Path(os.environ.get("PENSTOCK_LAB_CACHE") or Path.home() / ".cache/penstock-labs") / "kubernetes"
"""What takes long to make, and is used again: the binaries of Kubernetes, base images, the images' store."""
BINARIES = CACHE / "bin"
ENGINES = ("podman", "docker")
CHOSEN_ENGINE = os.environ.get("PENSTOCK_ENGINE", "")
"""The engine of containers that was asked for, podman or docker, or an empty text for the one that is there."""
HOST = "10.99.0.1"
"""The address of this machine for the pods. It exists on a bridge of this machine only, as do the next ones."""
PODS = "10.244.0"
SERVICES = "10.96"
DOMAIN = "cluster.local"
CONTAINERS = """\
[containers]
default_ulimits = []
pids_limit = 0
[engine]
runtime = "lab"
cgroup_manager = "cgroupfs"
events_logger = "file"
[engine.runtimes]
lab = ["{wrapper}"]
"""
STORAGE = """\
[storage]
driver = "overlay"
runroot = "{cache}/containers/run"
graphroot = "{cache}/containers/storage"
"""
REGISTRIES = 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n'
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'


def installed_engine() -> str:
    """Return the engine of containers to use, or an empty text if there is none."""
    return next((name for name in ENGINES if CHOSEN_ENGINE in ("", name) and shutil.which(name)), "")


def container_variables() -> dict[str, str]:
    """The environment in which podman and buildah work here, with a store of their own."""
    CACHE.mkdir(parents=True, exist_ok=True)
    files = {
        "CONTAINERS_CONF": ("containers.conf", CONTAINERS.format(wrapper=HERE / "runc-wrapper")),
        "CONTAINERS_STORAGE_CONF": ("storage.conf", STORAGE.format(cache=CACHE)),
        "CONTAINERS_REGISTRIES_CONF": ("registries.conf", REGISTRIES),
    }
    policy = CACHE / "home/.config/containers/policy.json"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text(POLICY)
    variables = {**os.environ, "HOME": str(CACHE / "home"), "BUILDAH_ISOLATION": "chroot"}
    for variable, (name, text) in files.items():
        path = CACHE / name
        path.write_text(text)
        variables[variable] = str(path)
    return {**variables, "REGISTRIES_CONFIG_PATH": variables["CONTAINERS_REGISTRIES_CONF"]}
