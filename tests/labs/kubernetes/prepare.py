"""Makes what the lab needs and keeps it for the next time: Kubernetes' binaries, its DNS, the base image, the store.

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
TOOLS = ("etcd", "containerd", "ctr", "runc", "podman", "kubectl", "iptables", "ip", "unshare", "openssl", "tar", "go")
PLUGINS = tuple(Path("/usr/lib/cni", name) for name in ("bridge", "host-local", "portmap"))
OLDEST_KUBECTL, OLDEST_GO = (1, 25), (1, 21)
"""The older kubectl of some systems cannot read the kustomizations. An older Go cannot fetch the one that is needed."""
STAMP = "-s -w -X k8s.io/component-base/version.gitVersion=v{0} -X k8s.io/component-base/version.gitMajor=1 -X \
k8s.io/component-base/version.gitMinor=33"
DNS_VERSION = "v1.12.4"
DNS_PROGRAM = """\
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
"""


def check_tools() -> None:
    """End with the names of programs that are missing or too old."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    missing += [str(plugin) for plugin in PLUGINS if not plugin.exists()]
    if missing:
        sys.exit(
            f"the lab needs {', '.join(missing)}. Debian: apt install etcd-server containerd runc podman buildah "
            "containernetworking-plugins iptables iproute2 debootstrap; kubectl and Go from their own pages"
        )
    check_version("kubectl", ("kubectl", "version", "--client"), OLDEST_KUBECTL)
    check_version("Go", ("go", "version"), OLDEST_GO)


def check_version(name: str, command: tuple[str, ...], oldest: tuple[int, int]) -> None:
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"\b(?:v|go)(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < oldest:
        sys.exit(f"the lab needs {name} {oldest[0]}.{oldest[1]} or newer; found: {said.strip()}")


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


def build_dns() -> None:
    """Build the DNS of clusters with the one part that the lab uses."""
    if (BINARIES / "coredns").exists():
        return
    folder = CACHE / "dns"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text(f"module dns\nrequire github.com/coredns/coredns {DNS_VERSION}\n")
    (folder / "main.go").write_text(DNS_PROGRAM)
    variables = {**os.environ, "GOFLAGS": "-mod=mod -p=2 -buildvcs=false", "CGO_ENABLED": "0"}
    build = ["nice", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(BINARIES / "coredns"), "."]
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
    build_dns()
    make_base_image(sys.argv[1])
    make_pause_image()
    store_jar()


if __name__ == "__main__":
    main()
