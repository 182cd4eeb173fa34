"""Links and lifelines over a real network that loses packets without a word, in one direction or both."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.engine.job.cluster_protocol import Patience
from penstock.spark.links.door import Door, Listener
from penstock.spark.links.lifelines import Lifelines
from penstock.spark.links.links import Address, Inlet, LinkLost, connect, limit_silence
from tests.nemesis.hosts import Disk, Host, Network, build_clock, obstacle
from tests.nemesis.schedule import plan_of
from tests.nemesis.slot_end import SECRET
from tests.waiting import until

REASON = obstacle()
pytestmark = [pytest.mark.skipif(REASON is not None, reason=str(REASON)), pytest.mark.timeout(300)]
SILENCE = 2.0
"""The heartbeat.timeout of these tests, in seconds."""
CLONE_NEWNET = 0x40000000
ROOT = Path(__file__).parents[2]
Made = TypeVar("Made")


@pytest.fixture
def network() -> Iterator[Network]:
    with Network(["driver", "other"]) as made:
        yield made


def inside(host: Host, make: Callable[[], Made]) -> Made:
    """Call something in the network of a host. Sockets that it opens stay there."""

    def enter() -> Made:
        with open(f"/run/netns/{host.space}") as space:
            assert ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET) == 0
        return make()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter).result()


@pytest.fixture
def door(network: Network) -> Iterator[Door]:
    address = network.hosts["driver"].address
    made = inside(network.hosts["driver"], lambda: Door(Listener(SECRET, address, address)))
    yield made
    made.close()


def awaited_guest(door: Door) -> tuple[bytes, object]:
    return until(lambda: door.guest(0.1))


def cut(network: Network, *ways: tuple[str, str]) -> None:
    for sender, receiver in ways:
        network.lose(network.hosts[sender], network.hosts[receiver])


BOTH = (("driver", "other"), ("other", "driver"))


def test_an_idle_link_between_hosts_that_are_parted_is_lost(network: Network, door: Door) -> None:
    """Nobody sends anything, so that only probes can tell."""
    address = Address("", "", door.address.host, door.address.port)
    link = inside(network.hosts["other"], lambda: connect(address, SECRET))
    limit_silence(link, SILENCE)
    cut(network, *BOTH)
    began = time.monotonic()
    with pytest.raises(LinkLost, match="its host acknowledges nothing"):
        Inlet(link).read()
    assert time.monotonic() - began < 20 * SILENCE, "and not after the quarter of an hour that the kernel would take"


@pytest.fixture
def slot(network: Network, door: Door, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.nemesis.slot_end", door.address.host, str(door.address.port), str(SILENCE)]
    with (tmp_path / "slot.log").open("wb") as out:
        started = network.hosts["other"].start(command, out, {"PYTHONPATH": str(ROOT)})
    yield started
    network.hosts["other"].kill_all()
    started.wait()


@pytest.fixture
def lifelines(door: Door, slot: subprocess.Popen[bytes]) -> Iterator[Lifelines]:
    """The driver's end, which knows slot 3 on the host `other`."""
    hello, link = awaited_guest(door)
    limit_silence(link, SILENCE)
    millis = int(1000 * SILENCE)
    made = Lifelines(Patience(heartbeat_interval=millis // 4, heartbeat_timeout=millis), lambda lost: None, print)
    made.add(3, link, int(hello), "other with-its-own-kernel")
    made.start()
    yield made
    made.close()


@pytest.mark.parametrize("ways", [BOTH, BOTH[:1], BOTH[1:]], ids=["both", "to the slot", "to the driver"])
def test_loss_on_the_network_is_not_taken_for_a_slot_that_hangs(
    network: Network, lifelines: Lifelines, ways: tuple[tuple[str, str], ...]
) -> None:
    cut(network, *ways)
    until(lambda: lifelines.cause)
    assert "slot 3" in lifelines.cause
    assert "other" in lifelines.cause, "the host is named"
    assert "interpreter" not in lifelines.cause
    assert "stopped" not in lifelines.cause


def test_a_slot_ends_when_the_host_of_its_driver_loses_power(
    network: Network, lifelines: Lifelines, slot: subprocess.Popen[bytes]
) -> None:
    began = time.monotonic()
    network.hosts["driver"].pull_cable()
    until(lambda: slot.poll() is not None)
    assert time.monotonic() - began < 20 * SILENCE, "far less than the quarter of an hour that the kernel would take"


def test_a_short_partition_is_survived(network: Network, lifelines: Lifelines, slot: subprocess.Popen[bytes]) -> None:
    cut(network, *BOTH)
    time.sleep(SILENCE / 4)
    for sender, receiver in BOTH:
        network.heal(network.hosts[sender], network.hosts[receiver])
    found = until(lambda: lifelines.stacks(SILENCE))
    assert "penstock lifeline" in found[3] or "lifelines.py" in found[3]
    assert lifelines.cause is None
    assert slot.poll() is None


def test_a_disk_can_be_full_read_only_and_stand_still(tmp_path: Path) -> None:
    with Disk(tmp_path, 16) as disk:
        file = disk.folder / "file"
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            file.write_bytes(bytes(1 << 20))
        disk.mend()
        disk.make_read_only()
        with pytest.raises(OSError, match="Read-only"):
            file.write_bytes(b"here")
        disk.mend()
        disk.freeze()
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(file.write_bytes, b"here")
            with pytest.raises(TimeoutError):
                writing.result(0.3)
            disk.mend()
            writing.result()
        assert file.read_bytes() == b"here"
    assert not os.path.ismount(disk.folder)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_host_has_a_clock_of_its_own(network: Network, tmp_path: Path) -> None:
    host, out = network.hosts["other"], tmp_path / "out"
    host.give_clock(build_clock(tmp_path), tmp_path / "clock")
    host.set_clock(-3600)
    said = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp(), time.monotonic())"
    began, steady = time.time(), time.monotonic()
    with out.open("wb") as file:
        assert host.start([sys.executable, "-c", said], file, {}).wait(60) == 0
    ended = time.time()
    wall, date, span = map(float, out.read_text().split())
    assert began - 3600.01 < wall <= date < ended - 3599.99
    assert steady < span < steady + ended - began + 1, "spans of time are measured as before"


def test_a_seed_always_means_the_same() -> None:
    assert plan_of(17) == plan_of(17)
    assert len({str(plan_of(seed)) for seed in range(50)}) == 50
