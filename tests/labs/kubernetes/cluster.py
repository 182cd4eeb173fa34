"""A Kubernetes of one node on this machine: control plane, kubelet and containers, all of them real.

It needs a network, a tree of mounts and processes of its own, which end with it: see ISOLATION.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.labs.kubernetes.certificates import make_certificates
from tests.labs.kubernetes.images import make_archive, name_of
from tests.labs.kubernetes.places import BINARIES, DOMAIN, HOST, PODS, SERVICES
from tests.labs.kubernetes.processes import Processes
from tests.labs.kubernetes.settings import write_settings

ETCD = "http://127.0.0.1:23790"
ISOLATION = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "slave")
"""The command before the one that starts a cluster."""
START_SECONDS = 180


def is_isolated() -> bool:
    """Tell whether this process has a network of its own, which a cluster may change."""
    links = subprocess.run(["ip", "-json", "link"], capture_output=True, text=True, check=True).stdout
    return [link["ifname"] for link in json.loads(links)] == ["lo"]


class Cluster:
    """Started and ended with `with`."""

    def __init__(self, folder: Path, images: list[str]) -> None:
        """The pods of the cluster may have these images, which podman's store has."""
        self.folder = folder
        self._images = images
        self._processes = Processes(folder)

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    # --- the start ---
    def _start(self) -> None:
        if not is_isolated():
            raise RuntimeError(f"a cluster needs a network of its own: start this with {' '.join(ISOLATION)} ...")
        self._make_network()
        make_certificates(self.folder)
        write_settings(self.folder)
        self._start_containers()
        self._start_control_plane()
        self._start_node()
        self.await_true("the node is ready", self._is_node_ready, START_SECONDS)
        self.kubectl("apply", "-f", str(self.folder / "dns.yaml"))
        self._processes.start("dns", BINARIES / "coredns", "-conf", "Corefile")

    def _make_network(self) -> None:
        for command in (
            "mount --make-rshared /",
            "ip link set lo up",
            "ip link add lab0 type bridge",
            f"ip addr add {HOST}/24 dev lab0",
            "ip link set lab0 up",
            "ip route add default dev lab0",
        ):
            subprocess.run(command.split(), check=True)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def _start_containers(self) -> None:
        start = self._processes.start
        start("etcd", "etcd", "--data-dir", self.folder / "etcd", "--listen-client-urls", ETCD,
              "--advertise-client-urls", ETCD, "--listen-peer-urls", "http://127.0.0.1:23800",
              "--unsafe-no-fsync")  # fmt: skip
        start("containerd", "containerd", "-c", self.folder / "containerd.toml")
        self.await_true("containerd answers", lambda: self.ctr("version") is not None, 60)
        present = self.ctr("images", "list", "-q") or ""
        for image in self._images:
            name = name_of(image)
            if name not in present.split():
                self.ctr("images", "import", "--digests=false", str(make_archive(image)), check=True)
                self.ctr("images", "tag", image, name, check=True)

    def _start_control_plane(self) -> None:
        start = self._processes.start
        start("apiserver", BINARIES / "kube-apiserver", f"--etcd-servers={ETCD}", "--bind-address=0.0.0.0",
              f"--advertise-address={HOST}", "--secure-port=6443", "--tls-cert-file=apiserver.crt",
              "--tls-private-key-file=apiserver.key", "--client-ca-file=ca.crt",
              "--requestheader-client-ca-file=ca.crt", "--kubelet-client-certificate=admin.crt",
              "--kubelet-client-key=admin.key", "--service-account-key-file=accounts.pub",
              "--service-account-signing-key-file=accounts.key",
              f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}",
              f"--service-cluster-ip-range={SERVICES}.0.0/16", "--authorization-mode=Node,RBAC",
              "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
              "--kubelet-preferred-address-types=InternalIP")  # fmt: skip
        self.await_true("the API server is ready", self._is_api_ready, START_SECONDS)
        alone = ("--leader-elect=false", "--bind-address=127.0.0.1")
        start("controllers", BINARIES / "kube-controller-manager", "--kubeconfig=controllers.conf",
              "--use-service-account-credentials", "--service-account-private-key-file=accounts.key",
              "--root-ca-file=ca.crt", "--cluster-signing-cert-file=ca.crt", "--cluster-signing-key-file=ca.key",
              "--authentication-kubeconfig=controllers.conf", "--authorization-kubeconfig=controllers.conf",
              *alone)  # fmt: skip
        start("scheduler", BINARIES / "kube-scheduler", "--kubeconfig=scheduler.conf",
              "--authentication-kubeconfig=scheduler.conf", "--authorization-kubeconfig=scheduler.conf",
              *alone)  # fmt: skip

    def _start_node(self) -> None:
        folder = self.folder
        self._processes.start("kubelet", BINARIES / "kubelet", "--kubeconfig=kubelet.conf", "--config=kubelet.yaml",
                              "--hostname-override=node1", f"--node-ip={HOST}", f"--root-dir={folder}/kubelet",
                              f"--cert-dir={folder}/kubelet-pki")  # fmt: skip
        self._processes.start("proxy", BINARIES / "kube-proxy", "--kubeconfig=proxy.conf", "--proxy-mode=iptables",
                              "--hostname-override=node1", "--conntrack-max-per-core=0", "--oom-score-adj=0",
                              f"--cluster-cidr={PODS}.0/24", "--metrics-bind-address=127.0.0.1",
                              "--healthz-bind-address=127.0.0.1")  # fmt: skip

    def _is_api_ready(self) -> bool:
        self._processes.check()
        return self.kubectl("get", "--raw", "/readyz", check=False) == "ok"

    def _is_node_ready(self) -> bool:
        self._processes.check()
        ready = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        return self.kubectl("get", "nodes", "-o", ready, check=False) == "True"

    # --- use ---
    def kubectl(self, *arguments: str, check: bool = True, stdin: str | None = None) -> str:
        """Run kubectl as the administrator, and return what it prints."""
        command = self.kubectl_command(*arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False, input=stdin)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def kubectl_command(self, *arguments: str) -> list[str]:
        return ["kubectl", f"--kubeconfig={self.folder}/admin.conf", *arguments]

    def objects(self, kind: str, namespace: str = "penstock", selector: str = "") -> list[dict[str, Any]]:
        """The objects of a kind."""
        labels = ["-l", selector] if selector else []
        items: list[dict[str, Any]] = json.loads(self.kubectl("-n", namespace, "get", kind, *labels, "-o", "json"))[
            "items"
        ]
        return items

    def ctr(self, *arguments: str, check: bool = False) -> str | None:
        """Run containerd's own client."""
        command = ["ctr", "-a", str(self.folder / "containerd.sock"), "-n", "k8s.io", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=check)
        return done.stdout if done.returncode == 0 else None

    def run_beside(self, name: str, *command: str | Path, variables: Mapping[str, str] | None = None) -> None:
        """Start a process that ends with the cluster, such as a store that its pods use."""
        self._processes.start(name, *command, variables=variables)

    @staticmethod
    def await_true(fact: str, check: Callable[[], bool], seconds: float) -> float:
        """Wait until something is so; return how many seconds that took."""
        began = time.monotonic()
        while not check():
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"not within {seconds:g} s: {fact}")
            time.sleep(0.3)
        return time.monotonic() - began

    # --- the end ---
    def end(self) -> None:
        """End the containers, then the parts. Mounts and the network end with the namespaces."""
        self._processes.end("kubelet", "proxy", "controllers", "scheduler")
        for task in (self.ctr("task", "list", "-q") or "").split():
            self.ctr("task", "kill", "-s", "KILL", task)
        self._processes.end()
