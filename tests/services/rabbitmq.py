"""RabbitMQ as the distribution packages it, on loopback, with everything it writes in the service's folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.services.service import Service, free_port

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""The packaged script in /usr/sbin would change the user and write to /var."""


class RabbitMQ(Service):
    """One broker with the user guest/guest; its Erlang port mapper is in the same process group and ends with it."""

    name = "rabbitmq"

    def __init__(self, folder: Path | None = None, port: int | None = None) -> None:
        super().__init__(folder, port)
        self._mapper_port = free_port()
        self._node_port = free_port()

    def install(self) -> None:
        if not SERVER.exists() or shutil.which("epmd") is None:
            raise RuntimeError(
                "RabbitMQ is not installed. Debian, Ubuntu: apt-get install --no-install-recommends rabbitmq-server"
            )

    def launch(self) -> subprocess.Popen[bytes]:
        (self.folder / "plugins").write_text("[].\n")
        (self.folder / "rabbitmq.conf").write_text("disk_free_limit.absolute = 1MB\nlog.console.level = error\n")
        both = f"epmd -address 127.0.0.1 -port {self._mapper_port} & exec {SERVER}"
        return self.spawn(
            ["sh", "-c", both],
            HOME=str(self.folder),
            ERL_EPMD_PORT=str(self._mapper_port),
            ERL_EPMD_ADDRESS="127.0.0.1",
            RABBITMQ_NODENAME="penstock@localhost",
            RABBITMQ_NODE_IP_ADDRESS="127.0.0.1",
            RABBITMQ_NODE_PORT=str(self.port),
            RABBITMQ_DIST_PORT=str(self._node_port),
            RABBITMQ_MNESIA_BASE=str(self.folder / "data"),
            RABBITMQ_LOG_BASE=str(self.folder / "logs"),
            RABBITMQ_PID_FILE=str(self.folder / "pid"),
            RABBITMQ_CONF_ENV_FILE="/dev/null",
            RABBITMQ_CONFIG_FILE=str(self.folder / "rabbitmq.conf"),
            RABBITMQ_ENABLED_PLUGINS_FILE=str(self.folder / "plugins"),
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} +S 1:1",
        )

    def answers(self) -> bool:
        import pika  # type: ignore[import-untyped, unused-ignore]

        pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port, socket_timeout=2)).close()
        return True
