"""Lifelines: who answers lives, who does not is lost with a word on where it is, and a slow slot is left in peace."""

import logging
import os
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

from penstock.engine.job.cluster_protocol import Patience
from penstock.spark.links.lifelines import ASK, PING, TOLD, UNHEARD, WAKE, Lifelines, _Line, main_stack, where
from penstock.spark.links.links import this_machine
from tests.waiting import until

DUMP = textwrap.dedent(
    """\
    Timeout (0:00:02)!
    Thread 0x00007f0001 (most recent call first):
      File "/site/watch.py", line 3 in wait

    Thread 0x00007f0000 (most recent call first):
      File "/home/job.py", line 7 in spin
      File "/site/penstock/engine/slot/slot.py", line 9 in run_stage
      File "/site/penstock/spark/slots/worker.py", line 5 in _epoch
      File "/site/pyspark/worker.py", line 1 in main
    """
)
SPINS = '  File "/home/job.py", line 7 in spin\n  File "/site/penstock/engine/slot/slot.py", line 9 in run_stage'


@pytest.fixture
def line(request):
    """The driver's lifelines with one slot, and its end of it. Who is slow is not lost, unless a test says so."""
    heard = []
    own, other = socket.socketpair()
    other.settimeout(60)
    lines = Lifelines(
        Patience(heartbeat_interval=50, heartbeat_timeout=getattr(request, "param", 200_000)),
        lambda lost: heard.append("lost" if lost else "woken"),
        lambda slot: heard.append(f"slot {slot} is silent"),
    )
    lines.add(7, own, os.getpid(), this_machine())
    lines.heard = heard
    lines.start()
    yield lines, other
    lines.close()
    other.close()


def test_who_answers_lives_and_who_wakes_is_heard(line):
    lines, slot = line
    for _ in range(20):
        assert slot.recv(1) == PING
        slot.send(PING)
    assert lines.heard == [] and lines.cause is None
    slot.send(WAKE)
    until(lambda: lines.heard == ["woken"])


@pytest.mark.parametrize("line", [2000], indirect=True)
def test_who_says_where_it_hangs_is_lost_with_its_stack(line):
    lines, slot = line
    slot.send(DUMP.encode())
    until(lambda: "slot 7 is silent" in lines.heard)
    assert lines.cause == (
        "slot 7 has not answered for 2 s (heartbeat.timeout). The slot does not release the interpreter lock "
        "in\n" + SPINS
    )
    while slot.recv(100):
        pass


def test_a_link_that_ends_is_a_process_that_died(line):
    lines, slot = line
    slot.close()
    until(lambda: lines.cause)
    assert lines.cause == "the process of slot 7 died, and its state with it"


def test_who_noticed_a_loss_sooner_is_told_the_cause_as_soon_as_it_is_known(line):
    lines, slot = line
    assert lines.cause_within(0) is None
    slot.close()
    assert lines.cause_within(20) == "the process of slot 7 died, and its state with it"


def test_who_is_asked_tells_the_log_where_it_is(line, caplog):
    lines, slot = line
    with caplog.at_level(logging.WARNING, "penstock.job"):
        lines.ask([7, 8])
        while slot.recv(1) != ASK:
            slot.send(PING)
        slot.send(DUMP.encode() + TOLD)
        until(lambda: caplog.records)
    assert caplog.records[0].message == "slot 7 has been busy with one epoch for 200 s, in\n" + SPINS
    assert lines.cause is None


def test_whoever_asks_for_stacks_gets_them_and_the_log_does_not(line, caplog):
    lines, slot = line
    found = []
    asking = threading.Thread(target=lambda: found.append(lines.stacks(60)))
    asking.start()
    while slot.recv(1) != ASK:
        slot.send(PING)
    slot.send(DUMP.encode() + TOLD)
    asking.join(60)
    assert [set(stacks) for stacks in found] == [{7}] and "in spin" in found[0][7]
    assert not caplog.records
    assert lines.stacks(0.01) == {}, "it does not answer in time"


def test_who_waits_for_others_is_not_the_one_to_look_at(line, caplog):
    _, slot = line
    waits = DUMP.replace("job.py", "links.py").replace("spin", "exchange")
    with caplog.at_level(logging.WARNING, "penstock.job"):
        slot.send(waits.encode() + TOLD + DUMP.encode() + TOLD)
        until(lambda: caplog.records)
    assert "links.py" not in caplog.records[0].message


WAITS = DUMP.replace("/home/job.py", "penstock/spark/links/mesh.py").replace("spin", "exchange")


def test_slots_that_all_wait_for_each_other_are_a_matter_of_the_network(caplog):
    ends = [socket.socketpair() for _ in range(2)]
    lines = Lifelines(Patience(heartbeat_timeout=200_000), lambda lost: None, lambda slot: None)
    for slot, (own, _) in enumerate(ends):
        lines.add(slot, own, os.getpid(), f"host-{slot} 4711")
    lines.start()
    with caplog.at_level(logging.WARNING, "penstock.job"):
        lines.ask([0, 1])
        ends[0][1].send(WAITS.encode() + TOLD)
        ends[1][1].send(WAITS.encode() + TOLD)
        until(lambda: caplog.records)
    (record,) = caplog.records
    assert "all slots have waited for each other's messages for 200 s" in record.message
    assert "(slots 0 on host-0, 1 on host-1)" in record.message
    caplog.clear()
    with caplog.at_level(logging.WARNING, "penstock.job"):
        lines.ask([0, 1])
        ends[0][1].send(DUMP.encode() + TOLD)
        until(lambda: caplog.records)
        ends[1][1].send(WAITS.encode() + TOLD + DUMP.encode() + TOLD)
        until(lambda: len(caplog.records) == 2)
    assert not any("all slots" in record.message for record in caplog.records), "one of them works"
    lines.close()


@pytest.mark.parametrize("line", [2000], indirect=True)
def test_a_slot_that_hears_nothing_is_not_said_to_hang(line):
    lines, slot = line
    slot.send(UNHEARD)
    until(lambda: "slot 7 is silent" in lines.heard)
    assert "The slot is alive but receives nothing from the driver: the network loses messages to" in lines.cause


def test_text_before_an_answer_is_of_the_past():
    told = []
    line = _Line(socket.socket(), 1, "elsewhere", asked=1.0)
    line.hear(b"old " + WAKE + b"text" + PING + b"new", told.append)
    assert (line.asked, line.said, told) == (None, b"new", [])
    line.hear(b"er" + TOLD + PING + b"last", told.append)
    assert (line.said, told) == (b"last", ["newer"])


def test_where_a_slot_is_that_says_nothing():
    elsewhere = _Line(socket.socket(), os.getpid(), "elsewhere")
    assert "is stopped, or " in where(elsewhere) and "cannot be reached" in where(elsewhere)
    assert "cannot be reached" in where(_Line(socket.socket(), os.getpid(), this_machine()))
    assert main_stack("") == main_stack("no stack at all") == ""


HANGS = """
import ctypes, os, socket, sys
from penstock.spark.links.lifelines import Lifeline

def hang():
    ctypes.PyDLL(None).sleep(60)

Lifeline(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), float(sys.argv[3]))
print("ready", flush=True)
sys.stdin.readline()
hang()
"""


SILENCE = "0.5"


def test_a_slot_complains_when_it_hears_nothing():
    """It sends no stacks, since its thread runs."""
    own, other = socket.socketpair()
    task, held = os.pipe()
    own.settimeout(120)
    command = [sys.executable, "-c", HANGS, str(other.fileno()), str(task), "10"]
    slot = subprocess.Popen(command, pass_fds=(other.fileno(), task), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert own.recv(4096) + own.recv(4096) == UNHEARD * 2
        own.send(PING)
        assert own.recv(1) == PING
    finally:
        slot.kill()
        os.close(held)


def test_a_process_that_holds_the_interpreter_still_tells_where_it_is():
    own, other = socket.socketpair()
    task, held = os.pipe()
    own.settimeout(60)
    command = [sys.executable, "-c", HANGS, str(other.fileno()), str(task), SILENCE]
    slot = subprocess.Popen(
        command, pass_fds=(other.fileno(), task), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert slot.stdout.readline() == "ready\n"
        own.send(PING)
        assert own.recv(1) == PING
        slot.stdin.write("\n")
        slot.stdin.flush()
        said = b""
        while b"in hang" not in said:
            said += own.recv(4096)
        assert main_stack(said.decode()).splitlines()[0].endswith("in hang")
    finally:
        slot.kill()
        os.close(held)


def test_a_slot_ends_with_its_task_and_with_its_driver():
    for number in range(2):
        own, other = socket.socketpair()
        task, held = os.pipe()
        command = [sys.executable, "-c", HANGS, str(other.fileno()), str(task), SILENCE]
        slot = subprocess.Popen(command, pass_fds=(other.fileno(), task), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        other.close()
        os.close(task)
        assert slot.stdout.readline() == b"ready\n"
        if number:
            own.close()
        else:
            os.close(held)
        assert slot.wait(60) == 1
