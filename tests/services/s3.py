"""An S3 server from Maven: S3Proxy, which keeps objects as files in a folder, on loopback.

Of two clients that create the same object with `If-None-Match: *` it refuses one, in a single put as well as at the end
of an upload in parts: it links a finished file to the object's name. Two things differ from Amazon's S3: no object may
have the name of another one's folder, and a copy takes no condition.
"""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from tests.services.maven import java
from tests.services.pinned import pinned_jars
from tests.services.service import Service

VERSION = "4.1.0"
WHOLE = "jar-with-dependencies"
KEY, SECRET = "penstock", "penstock-secret"
SETTINGS = """\
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={key}
s3proxy.credential={secret}
jclouds.provider=filesystem
jclouds.filesystem.basedir={objects}
jclouds.identity=unused
jclouds.credential=unused
"""


class S3(Service):
    """One server with one user. A bucket is a folder of its own, which `bucket` makes."""

    name = "s3"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """With these variables any S3 client finds the server and may do everything there."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    # --- the server ---
    def install(self) -> None:
        self._jars = pinned_jars(f"s3proxy-{VERSION}", [f"org.gaul:s3proxy:{VERSION}:{WHOLE}"])

    def launch(self) -> subprocess.Popen[bytes]:
        self._objects.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "s3proxy.conf"
        settings.write_text(SETTINGS.format(port=self.port, key=KEY, secret=SECRET, objects=self._objects))
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-DLOG_LEVEL=warn"]
        jar = self._jars / f"s3proxy-{VERSION}-{WHOLE}.jar"
        return self.spawn([java(), *options, "-jar", str(jar), "--properties", str(settings)])

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.endpoint, timeout=2):
                return True
        except HTTPError:
            # It is there, and wants to know who asks.
            return True

    # --- what tests do with it ---
    @property
    def _objects(self) -> Path:
        return self.folder / "objects"

    def bucket(self, name: str) -> str:
        """The URL of a bucket, which is made."""
        (self._objects / name).mkdir(parents=True, exist_ok=True)
        return f"s3://{name}"

    def remove_bucket(self, name: str) -> None:
        shutil.rmtree(self._objects / name, ignore_errors=True)

    def client(self, **settings: Any) -> Any:
        """A client of botocore's, to look at objects without Penstock."""
        import botocore.session

        return botocore.session.get_session().create_client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            **settings,
        )
