"""The configuration files of containerd, the kubelet, the pods' network and the cluster's DNS."""

from __future__ import annotations

import json
from pathlib import Path

from tests.labs.kubernetes.places import CACHE, DOMAIN, HERE, HOST, PODS, SERVICES

CONTAINERD = """\
version = 2
root = "{cache}/containerd"
state = "{folder}/containerd-state"
oom_score = 0
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{here}/runc-wrapper"
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/network"
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {host}
healthzBindAddress: 127.0.0.1
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: false}}, x509: {{clientCAFile: {folder}/ca.crt}}}}
authorization: {{mode: AlwaysAllow}}
cgroupDriver: cgroupfs
clusterDNS: [{services}.0.10]
clusterDomain: {domain}
resolvConf: {folder}/resolv.conf
failSwapOn: false
# Machines with cgroups of version 1, and without the right to lower the score of the OOM killer, will do.
failCgroupV1: false
oomScoreAdj: 0
featureGates: {{KubeletInUserNamespace: true}}
containerRuntimeEndpoint: unix://{folder}/containerd.sock
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
"""
DNS = """\
apiVersion: v1
kind: Service
metadata: {{name: kube-dns, namespace: kube-system}}
spec:
  clusterIP: {services}.0.10
  ports: [{{name: dns, port: 53, protocol: UDP}}, {{name: dns-tcp, port: 53, protocol: TCP}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: kube-dns-1, namespace: kube-system, labels: {{kubernetes.io/service-name: kube-dns}}}}
addressType: IPv4
ports: [{{name: dns, port: 53, protocol: UDP}}, {{name: dns-tcp, port: 53, protocol: TCP}}]
endpoints: [{{addresses: [{host}]}}]
"""
COREFILE = """\
.:53 {{
  errors
  kubernetes {domain} {{
    kubeconfig {folder}/admin.conf lab
  }}
}}
"""


def write_settings(folder: Path) -> None:
    """Write all of them into the folder of a cluster."""
    places = {"cache": CACHE, "folder": folder, "here": HERE, "host": HOST, "services": SERVICES, "domain": DOMAIN}
    (folder / "containerd.toml").write_text(CONTAINERD.format(**places))
    (folder / "kubelet.yaml").write_text(KUBELET.format(**places))
    (folder / "dns.yaml").write_text(DNS.format(**places))
    (folder / "Corefile").write_text(COREFILE.format(**places))
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    (folder / "network").mkdir()
    (folder / "network/10-bridge.conflist").write_text(json.dumps(network(folder)))


def network(folder: Path) -> dict[str, object]:
    """The pods' network: a bridge on this machine."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": f"{PODS}.0/24"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": str(folder / "addresses"),
    }
    bridge = {"type": "bridge", "bridge": "cni-lab", "isGateway": True, "ipMasq": False, "hairpinMode": True}
    mapping = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{**bridge, "ipam": addresses}, mapping]}
