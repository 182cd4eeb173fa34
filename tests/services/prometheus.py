"""Prometheus and its PushGateway, from the system's packages."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from typing import Any

from tests.services.service import NotInstalled, Service


def _need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise NotInstalled(f"{program} is not installed: apt install {program}")
    return found


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return bytes(answer.read())


class Prometheus(Service):
    """Scrapes the targets that it is given, every 200 ms."""

    name = "prometheus"

    def __init__(self, targets: list[int]) -> None:
        super().__init__()
        self._targets = targets

    def install(self) -> None:
        _need("prometheus")

    def launch(self) -> subprocess.Popen[bytes]:
        targets = [f"127.0.0.1:{port}" for port in self._targets]
        jobs = [{"job_name": "penstock", "honor_labels": True, "static_configs": [{"targets": targets}]}]
        settings = {"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"}, "scrape_configs": jobs}
        (self.folder / "prometheus.json").write_text(json.dumps(settings))  # which is YAML, too
        return self.spawn(
            [
                _need("prometheus"),
                f"--config.file={self.folder}/prometheus.json",
                f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ]
        )

    def answers(self) -> bool:
        return b"Ready" in _get(f"http://127.0.0.1:{self.port}/-/ready")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What PromQL says at this moment: a label set and a value each."""
        query = urllib.parse.urlencode({"query": expression})
        answer = json.loads(_get(f"http://127.0.0.1:{self.port}/api/v1/query?{query}"))
        return list(answer["data"]["result"])


class PushGateway(Service):
    name = "pushgateway"

    def install(self) -> None:
        _need("prometheus-pushgateway")

    def launch(self) -> subprocess.Popen[bytes]:
        return self.spawn([_need("prometheus-pushgateway"), f"--web.listen-address=127.0.0.1:{self.port}"])

    def answers(self) -> bool:
        return b"OK" in _get(f"{self.url}/-/ready")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def page(self) -> str:
        return _get(f"{self.url}/metrics").decode()
