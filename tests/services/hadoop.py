"""HDFS and YARN from Maven, of the version of Spark's own client, in one process on loopback.

The clusters are Hadoop's own for tests: real name nodes, data nodes, resource and node managers. Their process takes
orders over py4j, so that Java needs no compiler. Containers of YARN are processes of their own.
"""

from __future__ import annotations

import getpass
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import psutil
import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError

from tests.services.kerberos import REALM, Kdc
from tests.services.pinned import pinned_jars
from tests.services.service import Service

JARS = Path(__file__).with_suffix(".jars")
SPARK_JARS = Path(pyspark.__file__).parent / "jars"
OPENED = ("java.lang", "java.util", "java.net", "java.io", "java.nio", "sun.nio.ch")
KERBEROS_OPENED = ("java.security.jgss/sun.security.krb5",)
HEAP = "700m"
NODE_MEGABYTES, NODE_CORES = 8192, 8
LOGGING = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
"""
YARN = {
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.nodemanager.resource.memory-mb": str(NODE_MEGABYTES),
    "yarn.nodemanager.resource.cpu-vcores": str(NODE_CORES),
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": str(NODE_MEGABYTES),
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.scheduler.maximum-allocation-mb": str(NODE_MEGABYTES),
    "yarn.scheduler.maximum-allocation-vcores": str(NODE_CORES),
    "yarn.resourcemanager.am.max-attempts": "4",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "10000",
    "yarn.nodemanager.delete.debug-delay-sec": "3600",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    "yarn.application.classpath": "",
}
TOLD = (
    "yarn.resourcemanager.address",
    "yarn.resourcemanager.scheduler.address",
    "yarn.resourcemanager.webapp.address",
    "yarn.resourcemanager.resource-tracker.address",
    "yarn.resourcemanager.am.max-attempts",
)
"""Settings of the resource manager that its clients need."""
PRINCIPAL = f"hadoop/localhost@{REALM}"
"""Principal of all daemons. They are one process, which can log in once only."""
WEB = f"HTTP/localhost@{REALM}"
SECURED = {
    "hadoop.security.authentication": "kerberos",
    "hadoop.security.authorization": "true",
    "hadoop.security.auth_to_local": "DEFAULT",
    "dfs.namenode.kerberos.principal": PRINCIPAL,
    "dfs.datanode.kerberos.principal": PRINCIPAL,
    "dfs.block.access.token.enable": "true",
    "dfs.data.transfer.protection": "authentication",
    "yarn.resourcemanager.principal": PRINCIPAL,
    "yarn.nodemanager.principal": PRINCIPAL,
}
"""Settings of a cluster with Kerberos, of its daemons and its clients."""
KEYTABS = ("dfs.namenode", "dfs.datanode", "yarn.resourcemanager", "yarn.nodemanager")
TOKEN_RENEWAL, TOKEN_LIFETIME = 60, 240
"""Seconds after which a delegation token must be renewed, and after which it ends for good."""


class Hadoop(Service):
    """HDFS with one data node and, if there are node managers, YARN."""

    name = "hadoop"
    patience = 300.0

    def __init__(self, nodes: int = 0, service: str | None = None, kdc: Kdc | None = None) -> None:
        """`nodes` is the number of YARN's node managers; 0 starts HDFS alone.

        `service` is the name of a name service with two name nodes, of which the first is active. `kdc` is one that
        runs: then all daemons and clients must log in.
        """
        super().__init__()
        self.nodes = nodes
        self.service = service
        self.kdc = kdc
        self.gateway: JavaGateway | None = None

    def install(self) -> None:
        coordinates = JARS.read_text().format(hadoop=hadoop_version()).split()
        self._jars = pinned_jars(f"hadoop-{hadoop_version()}", coordinates)

    def launch(self) -> subprocess.Popen[bytes]:
        (self.folder / "log4j.properties").write_text(LOGGING)
        self.conf.mkdir(exist_ok=True)
        if self.kdc is not None:
            # Node managers fetch files with the configuration on their classpath.
            _write(self.folder / "core-site.xml", SECURED)
        own = [SPARK_JARS / f"hadoop-client-{part}-{hadoop_version()}.jar" for part in ("api", "runtime")]
        # py4j passes the output on for as long as the process lives.
        log = (self.folder / "log").open("a", buffering=1)
        with _without("PYTHONPATH"):  # containers of YARN would have it too
            port, secret, process = launch_gateway(
                jarpath=str(next(SPARK_JARS.glob("py4j-*.jar"))),
                classpath=os.pathsep.join([str(self.folder), *map(str, own), f"{self._jars}/*"]),
                javaopts=[
                    *(f"-Xmx{HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"),
                    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED),
                    f"-Dtest.build.data={self.folder / 'data'}",
                    f"-Dhadoop.log.dir={self.folder / 'logs'}",
                    *self._java_options(),
                ],
                die_on_exit=True,
                redirect_stdout=log,
                redirect_stderr=log,
                create_new_process_group=True,
                enable_auth=True,
                return_proc=True,
            )
        self.gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=secret, auto_convert=True, auto_field=True)
        )
        self._start_hdfs()
        if self.nodes:
            self._start_yarn()
        return process  # type: ignore[no-any-return]

    def _start_hdfs(self) -> None:
        jvm = self.jvm
        settings = jvm.org.apache.hadoop.conf.Configuration()
        _set(
            settings,
            {
                "hdfs.minidfs.basedir": str(self.folder / "dfs"),
                "dfs.replication": "1",
                "dfs.permissions.enabled": "false",
                **self._login(),
            },
        )
        if self.kdc is not None:
            jvm.org.apache.hadoop.security.UserGroupInformation.setConfiguration(settings)
        builder = jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(settings).numDataNodes(1)
        if self.service is None:
            self.dfs = builder.build()
        else:
            topology = jvm.org.apache.hadoop.hdfs.MiniDFSNNTopology.simpleHATopology()
            self.dfs = builder.nnTopology(topology).build()
            self.dfs.transitionToActive(0)
        self.dfs.waitActive(0)
        files = self.dfs.getFileSystem(0)
        self.url = files.getUri().toString() if self.service is None else f"hdfs://{self.service}"
        self.http = self.dfs.getHttpUri(0)
        for folder in ("/tmp", f"/user/{getpass.getuser()}"):
            files.mkdirs(jvm.org.apache.hadoop.fs.Path(folder))
        secured = {} if self.kdc is None else SECURED
        self._write("core-site.xml", {"fs.defaultFS": self.url, **secured})
        self._write("hdfs-site.xml", {"dfs.replication": "1", **self._addresses(), **secured})

    def _java_options(self) -> list[str]:
        if self.kdc is None:
            return []
        # A cluster for tests may listen on ports that are not root's, although it is secured.
        opened = [f"--add-opens={module}=ALL-UNNAMED" for module in KERBEROS_OPENED]
        return [f"-Djava.security.krb5.conf={self.kdc.configuration}", *opened]

    def _login(self) -> dict[str, str]:
        """Settings with which the daemons log in. Tokens live for minutes, so that tests outlive them."""
        if self.kdc is None:
            return {}
        keytab = str(self.kdc.keytab("hadoop/localhost", "HTTP/localhost"))
        return {
            **SECURED,
            **{f"{daemon}.keytab.file" if "dfs" in daemon else f"{daemon}.keytab": keytab for daemon in KEYTABS},
            "dfs.web.authentication.kerberos.principal": WEB,
            "dfs.web.authentication.kerberos.keytab": keytab,
            "ignore.secure.ports.for.testing": "true",
            "dfs.namenode.delegation.token.renew-interval": str(1000 * TOKEN_RENEWAL),
            "dfs.namenode.delegation.token.max-lifetime": str(1000 * TOKEN_LIFETIME),
            "yarn.resourcemanager.webapp.delegation-token-auth-filter.enabled": "false",
        }

    def _addresses(self) -> dict[str, str]:
        if self.service is None:
            return {"dfs.namenode.http-address": self.http.removeprefix("http://")}
        addresses = {"dfs.nameservices": self.service, f"dfs.ha.namenodes.{self.service}": "nn0,nn1"}
        for number in range(2):
            http = self.dfs.getHttpUri(number).removeprefix("http://")
            addresses[f"dfs.namenode.http-address.{self.service}.nn{number}"] = http
            rpc = f"localhost:{self.dfs.getNameNodePort(number)}"
            addresses[f"dfs.namenode.rpc-address.{self.service}.nn{number}"] = rpc
        return addresses

    def fail_over(self) -> None:
        """Let the second name node take over from the first, which dies."""
        self.dfs.shutdownNameNode(0)
        self.dfs.transitionToActive(1)

    def _start_yarn(self) -> None:
        settings = self.jvm.org.apache.hadoop.yarn.conf.YarnConfiguration(self.dfs.getConfiguration(0))
        _set(settings, YARN)
        self.yarn = self.jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("penstock", self.nodes, 1, 1)
        self.yarn.init(settings)
        self.yarn.start()
        self.yarn.waitForNodeManagersToConnect(60_000)
        running = self.yarn.getConfig()
        self._write(
            "yarn-site.xml",
            {
                **{key: running.get(key) for key in TOLD},
                "yarn.resourcemanager.hostname": "localhost",
                **({} if self.kdc is None else SECURED),
                "yarn.application.classpath": "",
            },
        )

    def answers(self) -> bool:
        return bool(self.dfs.isClusterUp())

    def stop(self, signal_number: int = signal.SIGTERM) -> None:
        if self.gateway is not None:
            with suppress(Py4JError, OSError):
                self.gateway.shutdown()
            self.gateway = None
        containers = psutil.Process(self.process.pid).children(recursive=True) if self.process is not None else []
        super().stop(signal_number)
        for process in containers:
            with suppress(psutil.Error):
                process.kill()

    # --- what tests do with it ---
    @property
    def conf(self) -> Path:
        """The folder for HADOOP_CONF_DIR."""
        return self.folder / "conf"

    @property
    def jvm(self) -> Any:
        assert self.gateway is not None
        return self.gateway.jvm

    @property
    def environment(self) -> dict[str, str]:
        """With these variables any client finds the clusters."""
        secured = {} if self.kdc is None else self.kdc.environment_of_clients
        return {"HADOOP_CONF_DIR": str(self.conf), "SPARK_LOCAL_IP": "127.0.0.1", **secured}

    def put(self, file: Path, url: str) -> None:
        """Copy a file into HDFS."""
        path = self.jvm.org.apache.hadoop.fs.Path
        self.dfs.getFileSystem(0).copyFromLocalFile(path(file.as_uri()), path(url))

    def stop_node(self, number: int) -> None:
        """Stop a node manager, which ends its containers."""
        self.yarn.getNodeManager(number).stop()

    def _write(self, name: str, settings: dict[str, str]) -> None:
        _write(self.conf / name, settings)


def hadoop_version() -> str:
    """The version of the Hadoop client that comes with Spark."""
    (jar,) = SPARK_JARS.glob("hadoop-client-api-*.jar")
    (version,) = re.findall(r"-api-(.+)\.jar", jar.name)
    return str(version)


@contextmanager
def _without(variable: str) -> Iterator[None]:
    """Processes that are started meanwhile do not inherit this variable."""
    own = os.environ.pop(variable, None)
    try:
        yield
    finally:
        if own is not None:
            os.environ[variable] = own


def _write(file: Path, settings: dict[str, str]) -> None:
    lines = "".join(
        f"  <property><name>{escape(key)}</name><value>{escape(value)}</value></property>\n"
        for key, value in settings.items()
    )
    file.write_text(f"<configuration>\n{lines}</configuration>\n")


def _set(configuration: Any, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        configuration.set(key, value)


def main() -> None:
    """Run the clusters until the end of standard input: FOLDER gets conf, for HADOOP_CONF_DIR."""
    hadoop = Hadoop(nodes=2)
    try:
        hadoop.start()
        print(f"HDFS {hadoop.url} ({hadoop.http})\nexport HADOOP_CONF_DIR={hadoop.conf}", flush=True)
        sys.stdin.read()
    finally:
        hadoop.remove()


if __name__ == "__main__":
    main()
