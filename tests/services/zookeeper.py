"""One Apache ZooKeeper server, from the jars that come with Spark: Java is all that is needed."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pyspark

from tests.services.maven import java
from tests.services.service import Service

JARS = Path(pyspark.__file__).parent / "jars"
MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"


class ZooKeeper(Service):
    name = "zookeeper"

    @property
    def quorum(self) -> str:
        return f"127.0.0.1:{self.port}"

    def install(self) -> None:
        """Spark has brought it: its own masters elect a leader with it."""

    def launch(self) -> subprocess.Popen[bytes]:
        settings = self.folder / "zoo.cfg"
        settings.write_text(
            f"tickTime=500\ndataDir={self.folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n4lw.commands.whitelist=ruok\nmaxClientCnxns=0\n"
        )
        options = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        return self.spawn([java(), *options, "-cp", f"{JARS}/*", MAIN, str(settings)])

    def answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), 1) as link:
            link.sendall(b"ruok")
            return link.recv(10) == b"imok"
