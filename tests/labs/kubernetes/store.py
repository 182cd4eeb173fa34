"""The S3 of the lab's pods: the server that other tests use, at an address that pods reach."""

from __future__ import annotations

import ast
import urllib.request
from collections import Counter
from pathlib import Path
from urllib.error import HTTPError

from tests.labs.kubernetes.cluster import Cluster
from tests.labs.kubernetes.places import HOST
from tests.services.maven import java
from tests.services.pinned import pinned_jars
from tests.services.s3 import KEY, SECRET, SETTINGS, VERSION, WHOLE

PORT = 9000
BUCKET = "penstock"


def store_jar() -> Path:
    """The program of the server, which is fetched on first use."""
    jars = pinned_jars(f"s3proxy-{VERSION}", [f"org.gaul:s3proxy:{VERSION}:{WHOLE}"])
    return jars / f"s3proxy-{VERSION}-{WHOLE}.jar"


class Store:
    """One bucket, whose objects are files."""

    def __init__(self, cluster: Cluster) -> None:
        folder = cluster.folder / "s3"
        self._objects = folder / "objects"
        (self._objects / BUCKET).mkdir(parents=True)
        self.endpoint = f"http://{HOST}:{PORT}"
        text = SETTINGS.format(port=PORT, key=KEY, secret=SECRET, objects=self._objects)
        (folder / "s3proxy.conf").write_text(text.replace("127.0.0.1", HOST))
        options = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-DLOG_LEVEL=warn")
        properties = str(folder / "s3proxy.conf")
        cluster.run_beside("s3", java(), *options, "-jar", store_jar(), "--properties", properties)
        cluster.await_true("the store answers", self._answers, 60)

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(self.endpoint, timeout=2).close()
        except HTTPError:
            return True  # it is there, and wants to know who asks
        except OSError:
            return False
        return True

    @property
    def variables(self) -> dict[str, str]:
        """What a client needs to know."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def rows(self, folder: str) -> list[tuple[int, int, int]]:
        """The rows that are committed below a folder of the bucket.

        The server writes an object into a file with another suffix first.
        """
        files = [path for path in (self._objects / BUCKET / folder).rglob("*.txt") if path.is_file()]
        lines = [line for path in files if not path.name.startswith((".", "_")) for line in path.open()]
        return [ast.literal_eval(line) for line in lines]


def check_counts(rows: list[tuple[int, int, int]], numbers: int) -> None:
    """Check that every number is there once, and that each count is the one that follows the count before."""
    times = Counter(row[1] for row in rows)
    assert sorted(times) == list(range(numbers)), f"{numbers - len(times)} of {numbers} numbers are missing"
    assert not [number for number, count in times.items() if count > 1], "numbers are there twice"
    expected = Counter((number % 10, number // 10 + 1) for number in range(numbers))
    assert Counter((row[0], row[2]) for row in rows) == expected
