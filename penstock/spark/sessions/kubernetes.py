"""Spark on Kubernetes: settings from the driver's pod, and reasons why executors' pods do not start."""

from __future__ import annotations

import json
import logging
import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Path at which Kubernetes mounts the token of a pod's service account."""
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
TIMEOUT_SECONDS = 10.0
EVERYWHERE = ("0.0.0.0", "::")
log = logging.getLogger("penstock.job")


class PodClient:
    """Reads and deletes pods of this pod's namespace with the token of the pod's service account."""

    def __init__(self, url: str, account: Path = ACCOUNT) -> None:
        self._url = url
        self._account = account
        self.namespace = (account / "namespace").read_text().strip()

    def pod(self, name: str) -> dict[str, Any]:
        """Return the pod with this name. Raise OSError."""
        return self._call("GET", f"pods/{name}")

    def executors(self, application: str) -> list[dict[str, Any]]:
        """Return the pods of the executors of a Spark application. Raise OSError."""
        items: list[dict[str, Any]] = self._call("GET", f"pods?{_executors_of(application)}")["items"]
        return items

    def delete_executors(self, application: str) -> None:
        """Delete the pods of the executors of a Spark application, and their settings. Raise OSError."""
        for kind in ("pods", "configmaps"):
            self._call("DELETE", f"{kind}?{_executors_of(application)}")

    def _call(self, method: str, path: str) -> dict[str, Any]:
        token = (self._account / "token").read_text().strip()
        url, headers = f"{self._url}/api/v1/namespaces/{self.namespace}/{path}", {"Authorization": f"Bearer {token}"}
        request = Request(url, headers=headers, method=method)
        trust = ssl.create_default_context(cafile=self._account / "ca.crt") if self._url.startswith("https:") else None
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=trust))
        with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
            read: dict[str, Any] = json.load(answer)
            return read


def _executors_of(application: str) -> str:
    """Return the selector of the objects that Spark has made for an application's executors."""
    return "labelSelector=" + quote(f"spark-app-selector={application},spark-role=executor")


def pod_client(environment: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> PodClient | None:
    """Return a client of the cluster in whose pod this process runs; None outside of a pod or without an account."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (account / "token").exists():
        return None
    return PodClient(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", account)


def driver_settings(
    master: str, options: Mapping[str, str], client: PodClient | None, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return settings of a driver on Kubernetes that the user need not give.

    In a pod, they are its namespace, its name, its address and its image. By the name, Kubernetes deletes the executors
    with the driver. Executors look for the driver at `spark.driver.bindAddress`, which is useless if it stands for all
    addresses.
    """
    if not master.startswith("k8s://"):
        return {}
    own = {} if options.get("spark.driver.bindAddress") not in EVERYWHERE else _NOT_BY_BIND_ADDRESS
    name = environment.get("HOSTNAME")
    if client is None or not name:
        return dict(own)
    own = {**own, "spark.kubernetes.namespace": client.namespace}
    if options.get("spark.kubernetes.namespace", client.namespace) != client.namespace:
        return own
    try:
        pod = client.pod(name)
    except OSError as error:
        log.warning("the pod of the driver, '%s', cannot be read from Kubernetes: %s", name, error)
        return own
    given = {
        "spark.kubernetes.driver.pod.name": name,
        "spark.driver.host": pod["status"].get("podIP"),
        "spark.kubernetes.container.image": _own_image(pod),
    }
    return {**own, **{setting: value for setting, value in given.items() if value}}


_NOT_BY_BIND_ADDRESS = {"spark.kubernetes.executor.useDriverPodIP": "false"}


def _own_image(pod: Mapping[str, Any]) -> str | None:
    """Return the image of the pod's main container."""
    containers = pod["spec"]["containers"]
    main = pod["metadata"].get("annotations", {}).get(DEFAULT_CONTAINER)
    image: str | None = next((one for one in containers if one["name"] == main), containers[0]).get("image")
    return image


def pods_obstacle(client: PodClient | None, application: str) -> str | None:
    """Return the reason why executors do not start, with the setting to change; None if no reason is known."""
    if client is None:
        return None
    try:
        pods = client.executors(application)
    except OSError as error:
        return f"the pods of the executors cannot be read from Kubernetes: {error}"
    if not pods:
        return (
            "Spark has not created any executor pods; its log has the reason, for instance a quota or a policy of the "
            f"namespace '{client.namespace}'"
        )
    return next((text for pod in pods for text in _hindrances(pod)), None)


def _hindrances(pod: Mapping[str, Any]) -> Iterator[str]:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    for container in status.get("containerStatuses", ()):
        waiting = container.get("state", {}).get("waiting") or {}
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        if reason in IMAGE_REASONS:
            yield (
                f"the image '{container['image']}' of pod {name} cannot be pulled ({reason}: {message}); "
                "correct spark.kubernetes.container.image"
            )
        elif reason.startswith(("Create", "Run")):
            yield f"the container of pod {name} cannot be created ({reason}: {message})"
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield (
                f"pod {name} waits for a node ({condition.get('message', '')}); add nodes, or lower "
                "spark.executor.memory, spark.executor.memoryOverhead or spark.kubernetes.executor.request.cores"
            )
