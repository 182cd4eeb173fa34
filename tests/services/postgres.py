"""PostgreSQL from the system's packages."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg

from tests.services.service import NotInstalled, Service


class Postgres(Service):
    """A server on loopback. It refuses to run as root, so that a root starts it as somebody else."""

    name = "postgres"
    user = "penstock"
    password = "p@ss:w/rd"

    def __init__(self, folder: Path | None = None, port: int | None = None, *, durable: bool = False) -> None:
        """`durable` has it wait for the disk, as if the machine could lose its power."""
        super().__init__(folder, port)
        self.durable = durable

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user={self.user} password={self.password} dbname=postgres"

    def install(self) -> None:
        _binary("postgres")
        _binary("initdb")

    def launch(self) -> subprocess.Popen[bytes]:
        data = self.folder / "data"
        if os.geteuid() == 0:
            account = pwd.getpwnam(_account())
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        if not data.exists():
            self._initialise(data)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": data,
            "max_prepared_transactions": 60,
            "max_connections": 100,
            "fsync": "on" if self.durable else "off",
            "shared_buffers": "16MB",
            "autovacuum": "off",
        }
        return self.spawn([*_as_other(), _binary("postgres"), "-D", str(data), *_arguments(settings)])

    def _initialise(self, data: Path) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        command = [_binary("initdb"), "-D", str(data), "--username", self.user, "--pwfile", str(secret), "--no-sync"]
        accepting = ["--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C"]
        done = subprocess.run(
            [*_as_other(), *command, *accepting], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"initdb ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")

    def answers(self) -> bool:
        with psycopg.connect(self.dsn, connect_timeout=2):
            return True

    def stop(self, signal_number: int = signal.SIGINT) -> None:
        """End it: by default without waiting for its clients. Its helpers have process groups of their own."""
        helpers = []
        if self.process is not None and self.process.poll() is None:
            helpers = psutil.Process(self.process.pid).children(recursive=True)
        super().stop(signal_number)
        for helper in helpers:
            with suppress(psutil.NoSuchProcess):
                helper.kill()
        psutil.wait_procs(helpers, timeout=10)


def _binary(name: str) -> str:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    found = str(installed[-1]) if installed else shutil.which(name)
    if found is None:
        raise NotInstalled(f"{name} is not installed; with Debian's packages: apt install postgresql")
    return found


def _account() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _as_other() -> list[str]:
    if os.geteuid() != 0:
        return []
    account = pwd.getpwnam(_account())
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]


def _arguments(settings: dict[str, object]) -> list[str]:
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
