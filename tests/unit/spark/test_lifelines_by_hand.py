"""Both ends of a lifeline one call at a time: what is sent, what is remembered, and who is lost and why."""

import errno
import faulthandler
import logging
import os
import signal
import socket
import subprocess
import threading

import pytest

from penstock.engine.job.cluster_protocol import Patience
from penstock.spark.links import lifelines
from penstock.spark.links.lifelines import (
    ASK,
    MOST_FRAMES,
    PING,
    TOLD,
    UNHEARD,
    WAKE,
    Lifeline,
    Lifelines,
    _Line,
    main_stack,
    where,
)
from penstock.spark.links.links import this_machine
from tests.unit.spark.test_lifelines import DUMP, SPINS, WAITS
from tests.waiting import until


# --- the slot's end ---
class Slot:
    """The slot's end of a lifeline in this process, which does not end."""

    def __init__(self, silence):
        self.own, self.driver = socket.socketpair()
        self.driver.settimeout(60)
        self.task, self.held = os.pipe()
        self.ended = threading.Event()
        self.codes = []
        self.silence = silence

    def end(self, code):
        self.codes.append(code)
        self.ended.set()

    def start(self):
        self.lifeline = Lifeline(self.own, self.task, self.silence)
        return self


@pytest.fixture
def slot(monkeypatch, request):
    made = Slot(getattr(request, "param", 600))
    later = []
    monkeypatch.setattr(lifelines.os, "_exit", made.end)
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, file: later.append((seconds, file)))
    # The real one holds the interpreter until the driver has read, and this driver is in the same process.
    monkeypatch.setattr(faulthandler, "dump_traceback", lambda file: os.write(file, b"stacks"))
    made.later = later
    yield made.start()
    made.driver.close()
    assert made.ended.wait(60) and made.codes == [1]
    made.own.close()
    for end in (made.task, made.held):
        if end is not None:
            os.close(end)


def heard(sock, until_said):
    said = b""
    while not said.endswith(until_said):
        more = sock.recv(1 << 16)
        assert more, "the line was closed"
        said += more
    return said


def test_a_slot_answers_and_gets_more_time(slot):
    slot.driver.send(PING)
    assert heard(slot.driver, PING) == PING
    assert slot.later == [(600, slot.own.fileno())]


def test_a_slot_shows_its_stacks_when_it_is_asked(slot):
    slot.driver.send(ASK)
    assert heard(slot.driver, TOLD) == b"stacks" + TOLD and slot.later == []
    slot.driver.send(PING + ASK)
    assert heard(slot.driver, TOLD) == PING + b"stacks" + TOLD and len(slot.later) == 1


def test_a_slot_wakes_its_driver(slot):
    slot.lifeline.wake()
    assert slot.driver.recv(10) == WAKE
    slot.own.shutdown(socket.SHUT_WR)
    slot.lifeline.wake()


@pytest.mark.parametrize("slot", [0.02], indirect=True)
def test_a_slot_that_hears_nothing_complains_and_lives_on(slot):
    for _ in range(3):
        assert slot.driver.recv(1) == UNHEARD
    assert slot.later[0] == (0.02, slot.own.fileno()) and not slot.ended.is_set()
    slot.driver.send(PING)
    while slot.driver.recv(1) != PING:
        pass


def test_a_slot_ends_with_its_task(slot):
    os.close(slot.held)
    slot.held = None
    assert slot.ended.wait(60)


def test_the_thread_of_a_lifeline_keeps_no_process_alive(slot):
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "penstock lifeline")


# --- the driver's end ---
class Sock:
    """A link that gives what it was told to give."""

    def __init__(self, *coming):
        self.coming = list(coming)
        self.sent = []
        self.closed = False

    def recv(self, size):
        said = self.coming.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    def send(self, said, flags):
        assert flags == socket.MSG_DONTWAIT
        self.sent.append(said)
        if self.closed:
            raise OSError("closed")

    def shutdown(self, how):
        pass

    def close(self):
        self.closed = True


class Driver(Lifelines):
    """The driver's ends without a thread, on a clock that is set by hand."""

    def __init__(self, *socks):
        self.events = []
        patience = Patience(heartbeat_interval=1_000, heartbeat_timeout=5_000)
        super().__init__(
            patience,
            lambda lost: self.events.append("lost" if lost else "woken"),
            lambda slot: self.events.append(f"silent {slot}"),
        )
        for slot, sock in enumerate(socks):
            self._lines[slot] = _Line(sock, 1, f"host-{slot} 4711")

    def hear(self, slot=0):
        self._hear(slot, self._lines[slot])


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(lifelines.time, "monotonic", lambda: now[0])
    return now


def test_times_are_given_in_milliseconds():
    driver = Driver()
    assert (driver._interval, driver._timeout) == (1.0, 5.0)


def test_a_slot_is_lost_when_its_first_unanswered_ping_is_old_enough(clock):
    sock = Sock()
    driver = Driver(sock)
    for now in (100.0, 103.0, 104.9):
        clock[0] = now
        driver._ping_all()
        assert driver.cause is None and driver._lines[0].asked == 100.0
    clock[0] = 105.0
    driver._ping_all()
    assert driver.cause.startswith("slot 0 has not answered for 5 s (heartbeat.timeout). The reason is unknown")
    assert sock.sent == [PING] * 3 and sock.closed and driver.events == ["lost", "silent 0"] and driver._lines == {}
    assert driver.unreachable == set()


def test_an_answer_gives_a_slot_its_time_again(clock):
    driver = Driver(Sock(PING))
    driver._ping_all()
    driver.hear()
    assert driver._lines[0].asked is None
    clock[0] = 110.0
    driver._ping_all()
    assert driver.cause is None and driver._lines[0].asked == 110.0


def test_the_others_are_asked_although_one_is_lost(clock):
    late, closed, good = Sock(), Sock(), Sock()
    closed.closed = True
    driver = Driver(late, closed, good)
    driver._lines[0].asked = 95.0
    driver._ping_all()
    assert late.sent == [] and closed.sent == good.sent == [PING] and set(driver._lines) == {1, 2}


@pytest.mark.parametrize(("silence", "unreachable"), [(1.0, False), (1.1, True)])
def test_a_host_that_acknowledges_nothing_cannot_be_reached(monkeypatch, silence, unreachable):
    monkeypatch.setattr(lifelines, "silence_of", lambda sock: silence)
    driver = Driver(Sock(), Sock())
    driver._give_up(1, driver._lines[1])
    assert driver.unreachable == ({1} if unreachable else set())
    assert ("Its host host-1 acknowledges nothing" in driver.cause) is unreachable


def test_a_deaf_slot_cannot_be_reached(clock):
    driver = Driver(Sock(UNHEARD))
    driver.hear()
    driver._give_up(0, driver._lines[0])
    assert driver.unreachable == {0} and "The slot is alive but receives nothing from the driver" in driver.cause


def test_a_slot_is_no_longer_deaf_when_it_answers():
    driver = Driver(Sock(UNHEARD, b"text", PING))
    driver.hear()
    driver.hear()
    assert driver._lines[0].is_deaf
    driver.hear()
    assert not driver._lines[0].is_deaf


@pytest.mark.parametrize(
    ("coming", "cause", "unreachable"),
    [
        (b"", "the process of slot 0 died, and its state with it", set()),
        (OSError(errno.ECONNRESET, "reset"), "the process of slot 0 died, and its state with it", set()),
        (OSError(errno.ETIMEDOUT, "t"), "slot 0 on host-0: its host acknowledges nothing (t)", {0}),
    ],
)
def test_the_end_of_a_line_has_a_cause(coming, cause, unreachable):
    driver = Driver(Sock(coming))
    driver.hear()
    assert (driver.cause, driver.unreachable, driver.events) == (cause, unreachable, ["lost"])
    assert driver.cause_within(0) == cause


def test_the_first_cause_is_the_one_that_counts():
    driver = Driver(Sock(b""), Sock(b""))
    driver.hear(1)
    driver.hear(0)
    assert driver.cause.startswith("the process of slot 1") and driver.events == ["lost", "lost"]


def test_lines_that_end_while_the_driver_closes_are_no_loss():
    driver = Driver(Sock(b""))
    driver.close()
    driver.hear()
    assert (driver.cause, driver.events, driver.cause_within(0)) == (None, [], None)


def test_a_slot_that_wakes_the_driver_is_not_lost():
    driver = Driver(Sock(PING, WAKE + PING))
    driver.hear()
    assert driver.events == []
    driver.hear()
    assert driver.events == ["woken"]


def test_the_thread_ends_with_the_lines():
    own, other = socket.socketpair()
    driver = Driver()
    driver.add(0, own, 1, "m")
    driver.start()
    (thread,) = [one for one in threading.enumerate() if one.name == "penstock lifelines" and one.is_alive()][-1:]
    assert thread.daemon
    other.close()
    thread.join(60)
    assert not thread.is_alive() and driver.events == ["lost"]


def test_pings_keep_their_interval():
    own, other = socket.socketpair()
    other.settimeout(60)
    driver = Driver()
    driver._interval = 600.0
    driver.add(0, own, 1, "m")
    driver.start()
    assert other.recv(1) == PING
    other.send(PING + WAKE)
    until(lambda: driver.events == ["woken"])
    other.settimeout(0.1)
    with pytest.raises(TimeoutError):
        other.recv(1)
    driver.close()
    other.close()


# --- stacks ---
def test_unknown_slots_are_not_asked():
    sock, closed = Sock(), Sock()
    closed.closed = True
    driver = Driver(closed, sock)
    driver.ask([0, 1, 2])
    assert sock.sent == closed.sent == [ASK] and driver._asked == {0, 1}


def test_an_empty_stack_is_not_worth_a_line(caplog):
    driver = Driver(Sock(TOLD))
    driver.ask([0])
    driver.hear()
    assert caplog.records == []


def test_slots_that_wait_are_told_only_when_all_of_them_do(caplog):
    driver = Driver(Sock(WAITS.encode() + TOLD), Sock(WAITS.encode() + TOLD))
    driver.ask([0, 1])
    with caplog.at_level(logging.WARNING, "penstock.job"):
        driver.hear(0)
        assert caplog.records == []
        driver.hear(1)
        assert [record.message.split(" for ")[0] for record in caplog.records] == ["all slots have waited"]
        driver.ask([0, 1])
        assert driver._waiting == set()


def test_whoever_asks_for_stacks_waits_no_longer_than_for_the_last():
    driver = Driver(Sock(DUMP.encode() + TOLD), Sock(DUMP.encode() + TOLD))
    answering = threading.Thread(
        target=lambda: (until(lambda: driver._asked == {0, 1}), driver.hear(0), driver.hear(1))
    )
    answering.start()
    found = driver.stacks(600)
    answering.join(60)
    assert set(found) == {0, 1} and driver._stacks is None
    assert driver._lines[0].said == b"" and driver._lines[0].asked is None


# --- where a slot is ---
def test_a_stack_is_cut_off_where_only_the_slot_is_left():
    frames = "\n".join(f'  File "/home/job.py", line {line} in deep' for line in range(MOST_FRAMES + 5))
    assert len(main_stack("Thread 0x1 (most recent call first):\n" + frames).splitlines()) == MOST_FRAMES
    assert main_stack(DUMP) == SPINS


def test_a_stopped_process_is_named():
    process = subprocess.Popen(["sleep", "600"])
    line = _Line(socket.socket(), process.pid, this_machine())
    try:
        assert lifelines._state_of(process.pid) in ("S", "R", "D")
        process.send_signal(signal.SIGSTOP)
        until(lambda: lifelines._state_of(process.pid) == "T")
        assert where(line) == f": its process {process.pid} is stopped, as by SIGSTOP"
        line.machine = "elsewhere 4711"
        assert where(line).startswith(". The reason is unknown: its process on elsewhere is stopped")
    finally:
        process.kill()
        process.wait()
    assert lifelines._state_of(process.pid) == ""


@pytest.mark.parametrize(
    ("stack", "waits"),
    [
        ('  File "penstock/spark/links/mesh.py", line 3 in exchange', True),
        ('  File "penstock/spark/links/mesh.py", line 3 in close', False),
        ('  File "/home/job.py", line 3 in exchange', False),
    ],
)
def test_a_slot_that_waits_for_others_is_in_an_exchange(stack, waits):
    assert lifelines._waits_for_others(stack) is waits
