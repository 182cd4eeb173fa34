"""Hosts on one machine: each has its own network, host name and processes, and its cable can be harmed.

Hosts are network namespaces of Linux, joined by a bridge in a further namespace. Every host knows the hardware
addresses of all others, so that a wrong one loses, without a word, what one host sends to another.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

LOST = "02:00:00:00:0f:ff"
"""A hardware address that no host has."""


def obstacle(*more: str) -> str | None:
    """Return why this machine can have no hosts, or lacks one of these commands; None if it can."""
    missing = [
        tool for tool in ("ip", "unshare", "mount", "mkfs.ext4", "fsfreeze", *more) if shutil.which(tool) is None
    ]
    if missing:
        return f"these commands are missing: {', '.join(missing)}"
    name = f"penstock-try-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"network namespaces are not allowed: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return None


def run(*command: str) -> str:
    """Run a command of the system, and return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def build_clock(folder: Path) -> Path:
    """Compile the library that gives hosts clocks of their own. Spark and Python need no other of libc's functions."""
    library = folder / "clock.so"
    run("cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).with_name("clock.c")))
    return library


class Host:
    """One host. Its processes are those in its network namespace."""

    def __init__(self, network: str, name: str, number: int) -> None:
        self.name = name
        self.space = f"{network}-{name}"
        self.address = f"10.83.0.{number}"
        self.hardware = f"02:00:00:00:00:{number:02x}"
        self.is_on = True
        self._clock: dict[str, str] = {}

    def start(self, command: Sequence[str], out: IO[bytes], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a process on this host."""
        renamed = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name, *command]
        return subprocess.Popen(
            ["ip", "netns", "exec", self.space, *renamed],
            stdout=out,
            stderr=out,
            env={**os.environ, **environment, **self._clock, "SPARK_LOCAL_IP": self.address},
            start_new_session=True,
        )

    def give_clock(self, library: Path, place: Path) -> None:
        """Let the processes that start from now on have a clock of their own, which `set_clock` sets."""
        self._clock = {"LD_PRELOAD": str(library), "PENSTOCK_TEST_CLOCK": str(place)}
        self.set_clock(0.0)

    def set_clock(self, seconds: float) -> None:
        """Set the clock to this much ahead of the machine's. What measures spans of time does not change."""
        if self._clock:
            draft = Path(f"{self._clock['PENSTOCK_TEST_CLOCK']}.draft")
            draft.write_text(f"{round(1000 * seconds)}\n")
            draft.rename(draft.with_suffix(""))

    def processes(self) -> list[int]:
        """The ids of all living processes."""
        return [int(line) for line in run("ip", "netns", "pids", self.space).split() if not _is_zombie(int(line))]

    def find(self, word: str) -> list[int]:
        """The processes in whose name or command line a word occurs."""
        return [process for process in self.processes() if word in _shown(process)]

    def kill_all(self) -> None:
        """Kill every process, until there is none."""
        while processes := self.processes():
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.02)

    def pull_cable(self) -> None:
        run("ip", "-n", self.space, "link", "set", "eth0", "down")
        self.is_on = False

    def lose_power(self) -> None:
        """Nothing on this host gets to say a last word."""
        self.pull_cable()
        self.kill_all()


class Network:
    """Hosts that reach each other."""

    def __init__(self, names: Sequence[str]) -> None:
        self._name = f"pn{os.getpid()}"
        self.hosts = {name: Host(self._name, name, number) for number, name in enumerate(names, 1)}
        self._switch = f"{self._name}-switch"

    def __enter__(self) -> Network:
        try:
            run("ip", "netns", "add", self._switch)
            run("ip", "-n", self._switch, "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", self._switch, "link", "set", "bridge", "up")
            for host in self.hosts.values():
                self._wire(host)
            for host in self.hosts.values():
                self.plug_in(host)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wire(self, host: Host) -> None:
        run("ip", "netns", "add", host.space)
        end = ["type", "veth", "peer", "name", host.name, "netns", self._switch]
        run("ip", "-n", host.space, "link", "add", "eth0", "address", host.hardware, *end)
        run("ip", "-n", self._switch, "link", "set", "dev", host.name, "master", "bridge", "up")
        run("ip", "-n", host.space, "address", "add", f"{host.address}/24", "dev", "eth0")
        run("ip", "-n", host.space, "link", "set", "lo", "up")

    def plug_in(self, host: Host) -> None:
        """Connect a host to all others; also after its cable was pulled."""
        run("ip", "-n", host.space, "link", "set", "eth0", "up")
        host.is_on = True
        for other in self.hosts.values():
            if other is not host:
                self.heal(host, other)

    def lose(self, sender: Host, receiver: Host) -> None:
        """Lose what one host sends to another; the other direction is not affected."""
        self._send_to(sender, receiver, LOST)

    def heal(self, sender: Host, receiver: Host) -> None:
        """Deliver again what one host sends to another."""
        self._send_to(sender, receiver, receiver.hardware)

    def _send_to(self, sender: Host, receiver: Host, hardware: str) -> None:
        if sender.is_on:
            to = [receiver.address, "lladdr", hardware, "dev", "eth0", "nud", "permanent"]
            run("ip", "-n", sender.space, "neigh", "replace", *to)

    def heal_all(self) -> None:
        for host in self.hosts.values():
            self.hasten(host)
            self.plug_in(host)

    def slow(self, host: Host, kilobits: int) -> None:
        """Let a host send no more than so much a second; further packets wait, for up to a second, and get lost."""
        limit = ["tbf", "rate", f"{kilobits}kbit", "burst", "64kb", "latency", "1s"]
        run("tc", "-n", host.space, "qdisc", "replace", "dev", "eth0", "root", *limit)

    def hasten(self, host: Host) -> None:
        """Take a limit away, if there is one."""
        with suppress(OSError):
            run("tc", "-n", host.space, "qdisc", "del", "dev", "eth0", "root")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for host in self.hosts.values():
            with suppress(OSError):
                host.kill_all()
            with suppress(OSError):
                run("ip", "netns", "del", host.space)
        with suppress(OSError):
            run("ip", "netns", "del", self._switch)


class Disk:
    """A file system that all hosts see, of a size of its own: it can be full, read-only, or stand still."""

    def __init__(self, place: Path, megabytes: int = 256) -> None:
        self.folder = place / "disk"
        self._image = place / "disk.img"
        self._megabytes = megabytes
        self._filler = self.folder / "filler"
        self._frozen = False

    def __enter__(self) -> Disk:
        self.folder.mkdir()
        with self._image.open("wb") as image:
            image.truncate(self._megabytes << 20)
        run("mkfs.ext4", "-q", str(self._image))
        run("mount", "-o", "loop", str(self._image), str(self.folder))
        return self

    def fill(self) -> None:
        """Leave no space."""
        with suppress(OSError), self._filler.open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(1 << 20))
        with suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            while True:
                filler.write(bytes(1 << 10))

    def make_read_only(self) -> None:
        """Refuse writes. It fails as long as a file is open for writing, and then the disk is full instead."""
        try:
            run("mount", "-o", "remount,ro", str(self.folder))
        except OSError:
            self.fill()

    def freeze(self) -> None:
        """Let every write wait."""
        run("fsfreeze", "-f", str(self.folder))
        self._frozen = True

    def mend(self) -> None:
        """Work again as at first."""
        if self._frozen:
            run("fsfreeze", "-u", str(self.folder))
            self._frozen = False
        run("mount", "-o", "remount,rw", str(self.folder))
        self._filler.unlink(missing_ok=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self.mend()
        run("umount", "-l", str(self.folder))


def _is_zombie(process: int) -> bool:
    with suppress(OSError), open(f"/proc/{process}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"
    return True


def _shown(process: int) -> str:
    with suppress(OSError):
        name = Path(f"/proc/{process}/comm").read_text()
        return name + Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    return ""
