"""Makes what the lab needs and keeps it for the next time: Kubernetes' binaries, the base image, the image, the store.

python -m tests.labs.kubernetes.prepare BASE_IMAGE
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.labs.kubernetes.base_image import make_base_image
from tests.labs.kubernetes.images import make_pause_image
from tests.labs.kubernetes.places import BINARIES, CACHE
from tests.labs.kubernetes.store import store_jar

VERSION = "1.33.13"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
TOOLS = ("etcd", "containerd", "runc", "podman", "kubectl", "dnsmasq", "iptables", "unshare", "openssl", "go")
STAMP = "-s -w -X k8s.io/component-base/version.gitVersion=v{0} -X k8s.io/component-base/version.gitMajor=1 -X \
k8s.io/component-base/version.gitMinor=33"


def check_tools() -> None:
    """End with the names of programs that are missing."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing:
        sys.exit(
            f"the lab needs {', '.join(missing)}. Debian: apt install etcd-server containerd runc podman buildah "
            "kubernetes-client containernetworking-plugins dnsmasq iptables debootstrap golang"
        )


def build_kubernetes() -> None:
    """Build the binaries from Kubernetes' Go modules: about half an hour with two cores, the first time only."""
    if all((BINARIES / program).exists() for program in PROGRAMS):
        return
    folder = CACHE / "build"
    folder.mkdir(parents=True, exist_ok=True)
    variables = {**os.environ, "GOFLAGS": "-mod=mod -p=2 -buildvcs=false", "CGO_ENABLED": "0"}
    (folder / "go.mod").write_text("module build\n")
    download = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{VERSION}"]
    done = subprocess.run(download, cwd=folder, env=variables, capture_output=True, text=True, check=True)
    (folder / "go.mod").write_text(module_file(Path(json.loads(done.stdout)["Dir"])))
    imports = "\n".join(f'import _ "k8s.io/kubernetes/cmd/{program}"' for program in PROGRAMS)
    (folder / "tools.go").write_text(f"//go:build tools\n\npackage tools\n\n{imports}\n")
    subprocess.run(["go", "mod", "tidy", "-e"], cwd=folder, env=variables, capture_output=True, check=False)
    packages = [f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS]
    BINARIES.mkdir(parents=True, exist_ok=True)
    build = ["nice", "go", "build", "-trimpath", "-ldflags", STAMP.format(VERSION), "-o", f"{BINARIES}/", *packages]
    subprocess.run(build, cwd=folder, env=variables, check=True)


def module_file(sources: Path) -> str:
    """A module that takes Kubernetes' own parts from their releases, instead of from folders beside them."""
    text = (sources / "go.mod").read_text()
    kept = re.findall(r"^(?:go|godebug) .+$", text, re.M)
    parts = re.findall(r"^\s*(k8s\.io/[a-z0-9-]+) => \./staging", text, re.M)
    released = VERSION.removeprefix("1.")
    replaced = "\n".join(f"  {part} => {part} v0.{released}" for part in parts)
    return "\n".join(["module build", *kept, f"require k8s.io/kubernetes v{VERSION}", f"replace (\n{replaced}\n)", ""])


def main() -> None:
    check_tools()
    build_kubernetes()
    make_base_image(sys.argv[1])
    make_pause_image()
    store_jar()


if __name__ == "__main__":
    main()
