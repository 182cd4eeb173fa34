"""One node of Elasticsearch from its Maven artifacts, on loopback."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

from tests.services.maven import java
from tests.services.pinned import pinned_jars
from tests.services.service import Service, free_port

VERSION = "7.17.28"
LUCENE = "8.11.3"
NETTY = "4.1.94.Final"
SERVER = (
    *(
        f"org.elasticsearch:{name}:{VERSION}"
        for name in (
            *("elasticsearch", "elasticsearch-core", "elasticsearch-secure-sm", "elasticsearch-x-content"),
            *("elasticsearch-geo", "elasticsearch-lz4", "elasticsearch-cli", "elasticsearch-plugin-classloader"),
        )
    ),
    *(
        f"org.apache.lucene:lucene-{name}:{LUCENE}"
        for name in (
            *("core", "analyzers-common", "backward-codecs", "grouping", "highlighter", "join", "memory", "misc"),
            *("queries", "queryparser", "sandbox", "spatial3d", "suggest"),
        )
    ),
    "com.carrotsearch:hppc:0.8.1",
    "net.java.dev.jna:jna:5.10.0",
    "joda-time:joda-time:2.12.6",
    "com.tdunning:t-digest:3.2",
    "org.hdrhistogram:HdrHistogram:2.1.9",
    "org.apache.logging.log4j:log4j-api:2.17.1",
    "org.apache.logging.log4j:log4j-core:2.17.1",
    "net.sf.jopt-simple:jopt-simple:5.0.2",
    "org.lz4:lz4-java:1.8.0",
    "org.yaml:snakeyaml:1.33",
    *(
        f"com.fasterxml.jackson.{name}:2.14.2"
        for name in (
            *("core:jackson-core", "dataformat:jackson-dataformat-cbor"),
            *("dataformat:jackson-dataformat-smile", "dataformat:jackson-dataformat-yaml"),
        )
    ),
)
TRANSPORT = (
    f"org.elasticsearch.plugin:transport-netty4-client:{VERSION}",
    *(
        f"io.netty:netty-{name}:{NETTY}"
        for name in (
            *("buffer", "codec", "codec-http", "common", "handler", "resolver", "transport"),
            "transport-native-unix-common",
        )
    ),
)
DESCRIPTOR = f"""\
name=transport-netty4
description=HTTP
version={VERSION}
elasticsearch.version={VERSION}
java.version=1.8
classname=org.elasticsearch.transport.Netty4Plugin
extended.plugins=
has.native.controller=false
"""
POLICY = """\
grant {
  permission java.io.FilePermission "/proc/sys/net/core/somaxconn", "read";
  permission java.net.SocketPermission "*", "accept,connect,resolve";
};
"""
"""What the transport may do; the server runs under a security manager."""
SETTINGS = """\
cluster.name: penstock
discovery.type: single-node
network.host: 127.0.0.1
http.port: {port}
transport.port: {transport_port}
path.data: {folder}/data
path.logs: {folder}/logs
cluster.routing.allocation.disk.threshold_enabled: false
"""
LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


class Elasticsearch(Service):
    """A node with nothing but the HTTP transport: documents can be written, read and searched, nobody logs in."""

    name = "elasticsearch"

    def __init__(self, folder: Path | None = None, port: int | None = None) -> None:
        super().__init__(folder, port)
        self._transport_port = free_port()

    def install(self) -> None:
        self._server = pinned_jars(f"elasticsearch-{VERSION}", SERVER)
        self._transport = pinned_jars(f"elasticsearch-netty-{VERSION}", TRANSPORT)

    def launch(self) -> subprocess.Popen[bytes]:
        module, settings = self.folder / "modules" / "transport-netty4", self.folder / "config"
        for folder in (module, settings, self.folder / "lib"):
            folder.mkdir(parents=True, exist_ok=True)
        for jar in self._transport.glob("*.jar"):
            shutil.copy(jar, module)
        (module / "plugin-descriptor.properties").write_text(DESCRIPTOR)
        (module / "plugin-security.policy").write_text(POLICY)
        (settings / "elasticsearch.yml").write_text(
            SETTINGS.format(folder=self.folder, port=self.port, transport_port=self._transport_port)
        )
        (settings / "log4j2.properties").write_text(LOGGING)
        return self.spawn(
            [
                java(),
                *("-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                "-Djava.security.manager=allow",
                # Without native code it cannot tell that it runs as root, which it would refuse.
                *("-Djna.nosys=true", "-Djna.noclasspath=true", f"-Djna.boot.library.path={self.folder}"),
                "-Dlog4j2.disable.jmx=true",
                "-Dlog4j.shutdownHookEnabled=false",
                "-Dio.netty.noUnsafe=true",
                "-Dio.netty.allocator.numDirectArenas=0",
                f"-Djava.io.tmpdir={self.folder}",
                f"-Des.path.home={self.folder}",
                f"-Des.path.conf={settings}",
                "-Des.distribution.type=zip",
                "-Des.distribution.flavor=default",
                "--add-opens=java.base/java.io=ALL-UNNAMED",
                *("-cp", f"{self._server}/*"),
                "org.elasticsearch.bootstrap.Elasticsearch",
            ],
            LIBFFI_TMPDIR=str(self.folder),
        )

    def stop(self, signal_number: int = signal.SIGKILL) -> None:
        """Not gently, which takes long: everything that it has answered is on disk."""
        super().stop(signal_number)

    def answers(self) -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_cluster/health", timeout=2) as answer:
            return json.load(answer)["status"] in ("green", "yellow")
