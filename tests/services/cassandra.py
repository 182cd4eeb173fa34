"""One node of Apache Cassandra from its Maven artifacts, on loopback."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.services.maven import java
from tests.services.pinned import pinned_jars
from tests.services.service import Service, free_port

VERSION = "5.0.6"
JARS = Path(__file__).with_suffix(".jars")
"""What a node loads, of the hundred that its artifact depends on: resolving them takes longer than the download."""
USER = PASSWORD = "cassandra"
"""The superuser that a new node makes for itself."""
EXPORTED = (
    "java.base/jdk.internal.misc",
    "java.base/java.lang.ref",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
    "jdk.unsupported/sun.misc",
)
OPENED = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.rmi/sun.rmi.transport.tcp",
    "jdk.management/com.sun.management.internal",
)
SETTINGS = """\
cluster_name: penstock
num_tokens: 1
initial_token: 0
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
commitlog_sync: batch
commitlog_segment_size: 4MiB
commitlog_directory: {folder}/commitlog
data_file_directories: ["{folder}/data"]
saved_caches_directory: {folder}/saved_caches
hints_directory: {folder}/hints
cdc_raw_directory: {folder}/cdc_raw
hinted_handoff_enabled: false
concurrent_reads: 4
concurrent_writes: 4
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
file_cache_size: 32MiB
key_cache_size: 0MiB
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {storage_port}
native_transport_port: {port}
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "127.0.0.1:{storage_port}"
"""
LOGGING = """\
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %d{HH:mm:ss,SSS} %logger{20} - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
"""


class Cassandra(Service):
    """A node that asks for credentials and skips what a single one need not wait for."""

    name = "cassandra"
    patience = 180.0

    def __init__(self, folder: Path | None = None, port: int | None = None) -> None:
        super().__init__(folder, port)
        self._storage_port = free_port()

    def install(self) -> None:
        self._jars = pinned_jars(f"cassandra-{VERSION}", JARS.read_text().split())

    def launch(self) -> subprocess.Popen[bytes]:
        settings, logging = self.folder / "cassandra.yaml", self.folder / "logback.xml"
        settings.write_text(SETTINGS.format(folder=self.folder, port=self.port, storage_port=self._storage_port))
        logging.write_text(LOGGING)
        return self.spawn(
            [
                java(),
                *("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k"),
                "-Djdk.attach.allowAttachSelf=true",
                *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTED),
                *(f"--add-opens={name}=ALL-UNNAMED" for name in OPENED),
                f"-Dcassandra.config=file://{settings}",
                f"-Dcassandra.storagedir={self.folder}",
                f"-Dcassandra.logdir={self.folder}",
                f"-Dlogback.configurationFile={logging}",
                f"-Djava.io.tmpdir={self.folder}",
                "-Dcassandra-foreground=yes",
                "-Dcassandra.skip_wait_for_gossip_to_settle=0",
                "-Dcassandra.ring_delay_ms=1",
                "-Dcassandra.superuser_setup_delay_ms=0",
                "-Dcassandra.auth_bcrypt_gensalt_log2_rounds=4",
                *("-cp", f"{self._jars}/*"),
                "org.apache.cassandra.service.CassandraDaemon",
            ]
        )

    def answers(self) -> bool:
        cluster = self.cluster()
        try:
            cluster.connect()
        finally:
            cluster.shutdown()
        return True

    def cluster(self, user: str = USER, password: str = PASSWORD):  # type: ignore[no-untyped-def]
        """A driver's cluster object for this node."""
        from cassandra.auth import PlainTextAuthProvider
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
        from cassandra.policies import RoundRobinPolicy

        return Cluster(
            ["127.0.0.1"],
            port=self.port,
            auth_provider=PlainTextAuthProvider(user, password),
            execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(RoundRobinPolicy())},
            connect_timeout=2,
        )
