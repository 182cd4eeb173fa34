"""The link over which a slot is watched: lines out, questions in, and neither waits for the other side."""

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.base.logs.levels import apply
from penstock.base.logs.log_lines import Line, Origin
from penstock.engine.observe.profiling import ProfileOrder
from penstock.engine.observe.slot_questions import SetLevels
from penstock.spark.links.encryption import encrypt, new_identity
from penstock.spark.links.links import LinkLost
from penstock.spark.links.side_links import MOST_WAITING, SideLink, SideLinks
from tests.waiting import until

ORIGIN = Origin("j", "job", "", "", 0, 1)


def line(text: str) -> Line:
    return Line(0.0, logging.INFO, "x", text, ORIGIN)


class Shown(list):
    """What the driver has shown."""

    def __call__(self, said: Line) -> None:
        self.append(said.text)


def pair(kind: str) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    if kind == "plain":
        return ours, theirs
    identity = new_identity()
    with ThreadPoolExecutor(1) as other_side:
        far = other_side.submit(encrypt, theirs, identity, True, 60)
        return encrypt(ours, identity, False, 60), far.result()


@pytest.fixture(params=["plain", "encrypted"])
def ends(request):
    """A slot's end, the driver's end, and what was shown."""
    ours, theirs = pair(request.param)
    shown = Shown()
    slot, driver = SideLink(theirs, 0), SideLinks({0: ours}, shown)
    yield slot, driver, shown
    slot.finish()
    driver.close()


def test_lines_arrive_in_order(ends):
    slot, _, shown = ends
    assert all(slot.line(line(str(number))) for number in range(1000))
    until(lambda: len(shown) == 1000)
    assert shown == [str(number) for number in range(1000)]


def test_what_was_said_before_the_end_is_shown(ends):
    slot, driver, shown = ends
    for number in range(100):
        slot.line(line(str(number)))
    slot.finish()
    driver.close()
    assert len(shown) == 100


def test_a_driver_that_does_not_read_costs_lines_and_no_time():
    ours, theirs = socket.socketpair()
    slot = SideLink(theirs, 0)
    text = "x" * 10_000
    taken = 0
    while slot.line(line(text)):
        taken += 1
        assert taken * 10_000 < 100 * MOST_WAITING
    shown = Shown()
    driver = SideLinks({0: ours}, shown)
    until(lambda: len(shown) == taken)
    assert slot.line(line("again"))
    until(lambda: shown[-1] == "again")
    slot.finish()
    driver.close()


def test_an_end_leaves_no_thread_and_no_file_behind():
    def open_files():
        return len(os.listdir("/proc/self/fd"))

    files, threads = open_files(), threading.active_count()
    for _ in range(5):
        ours, theirs = socket.socketpair()
        slot, driver = SideLink(theirs, 0), SideLinks({0: ours}, Shown())
        slot.line(line("x"))
        slot.finish()
        assert not slot.line(line("too late"))
        driver.close()
    until(lambda: threading.active_count() == threads)
    assert open_files() == files


def test_levels_can_be_changed(ends):
    _, driver, _ = ends
    try:
        assert driver.ask(SetLevels({"side.links": "DEBUG"}))[0].result(60) is None
        assert logging.getLogger("side.links").level == logging.DEBUG
    finally:
        apply({"side.links": ""})


def test_a_profile_is_taken_while_lines_go_on(ends):
    slot, driver, shown = ends
    asked = driver.ask(ProfileOrder(samples=3, millis=1))
    slot.line(line("meanwhile"))
    seen = asked[0].result(60)
    assert {one.subtask for one in seen} == {0}
    until(lambda: shown == ["meanwhile"])


def test_a_slot_that_is_gone_answers_with_an_error(ends):
    slot, driver, _ = ends
    asked = driver.ask(ProfileOrder(samples=1000, millis=1000))
    slot.finish()
    with pytest.raises(LinkLost):
        asked[0].result(60)
    with pytest.raises(LinkLost):
        until(lambda: driver.ask(SetLevels({}))[0].exception(60)) and driver.ask(SetLevels({}))[0].result(60)


KILLED = """
import os, signal, socket, sys
from penstock.base.logs.log_lines import Line, Origin
from penstock.spark.links.side_links import SideLink
slot = SideLink(socket.socket(fileno=int(sys.argv[1])), 0)
for number in range(50):
    slot.line(Line(0.0, 20, "x", str(number), Origin()))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_lines_before_a_sudden_death_arrive():
    ours, theirs = socket.socketpair()
    shown = Shown()
    driver = SideLinks({0: ours}, shown)
    with theirs:
        done = subprocess.run([sys.executable, "-c", KILLED, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    assert done.returncode == -9
    driver.close()
    assert shown == [str(number) for number in range(50)]


def test_a_failing_handler_does_not_end_the_link():
    ours, theirs = socket.socketpair()
    heard = []

    def broken(said):
        heard.append(said.text)
        raise RuntimeError("the program's handler")

    slot, driver = SideLink(theirs, 0), SideLinks({0: ours}, broken)
    slot.line(line("a"))
    slot.line(line("b"))
    until(lambda: heard == ["a", "b"])
    slot.finish()
    driver.close()


def test_idle_links_do_nothing(ends):
    """Neither end wakes up by itself."""
    before = time.process_time()
    threading.Event().wait(0.5)
    assert time.process_time() - before < 0.25
