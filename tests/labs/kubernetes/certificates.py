"""An authority of the lab's own, certificates for its parts, and their kubeconfigs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.labs.kubernetes.places import DOMAIN, HOST, SERVICES

NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{DOMAIN}", "localhost")
CLIENTS = {
    "admin": "/O=system:masters/CN=admin",
    "controllers": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "kubelet": "/O=system:nodes/CN=system:node:node1",
    "proxy": "/CN=system:kube-proxy",
}
"""The parts that talk to the API server, and who they are to it."""


def make_certificates(folder: Path) -> None:
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt",
            "-days", "7", "-subj", "/CN=lab")  # fmt: skip
    openssl(folder, "genrsa", "-out", "accounts.key", "2048")
    openssl(folder, "rsa", "-in", "accounts.key", "-pubout", "-out", "accounts.pub")
    addresses = [f"IP:{address}" for address in (HOST, f"{SERVICES}.0.1", "127.0.0.1")]
    alternatives = ",".join([*addresses, *(f"DNS:{name}" for name in NAMES)])
    sign(folder, "apiserver", "/CN=kube-apiserver", f"subjectAltName={alternatives}\nextendedKeyUsage=serverAuth\n")
    for name, subject in CLIENTS.items():
        sign(folder, name, subject, "extendedKeyUsage=clientAuth\n")
        write_kubeconfig(folder, name)


def sign(folder: Path, name: str, subject: str, extensions: str) -> None:
    """Make a key, and a certificate of the lab's authority for it."""
    openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
            "-subj", subject)  # fmt: skip
    (folder / f"{name}.ext").write_text(extensions)
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.crt", "-days", "7", "-extfile", f"{name}.ext")  # fmt: skip


def write_kubeconfig(folder: Path, name: str) -> None:
    """Write the file with which a client reaches the API server."""
    server = f"--server=https://{HOST}:6443"
    steps = (
        ("set-cluster", "lab", server, "--certificate-authority=ca.crt", "--embed-certs"),
        ("set-credentials", name, f"--client-certificate={name}.crt", f"--client-key={name}.key", "--embed-certs"),
        ("set-context", "lab", "--cluster=lab", f"--user={name}"),
        ("use-context", "lab"),
    )
    for step in steps:
        command = ["kubectl", "config", f"--kubeconfig={name}.conf", *step]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
