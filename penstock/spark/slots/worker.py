"""A slot's process. Spark starts a task for every slot of an attempt, and the task forks the process of the slot.

The task only waits for the process, so that a Python worker that Spark reuses has run no code of earlier programs. The
slot ends when the driver orders it to, or by itself as soon as the driver or its own task is gone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from pyspark import TaskContext

from penstock import compat
from penstock.base.hdfs.token_files import use_tokens
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.messages.epoch_requests import Bell
from penstock.engine.observe.log_capture import capture
from penstock.engine.queryable.slot_states import Findings, Lookup
from penstock.engine.records.failures import Failure, OperatorFailed, failure_of
from penstock.engine.slot.slot import MACHINE, Slot
from penstock.spark.links.door import Door, Listener
from penstock.spark.links.encryption import Identity
from penstock.spark.links.lifelines import Lifeline
from penstock.spark.links.links import (
    Address,
    Inlet,
    LinkLost,
    Tag,
    connect,
    host_towards,
    limit_silence,
    say_farewell,
    send,
    this_machine,
)
from penstock.spark.links.mesh import Mesh, mesh_of
from penstock.spark.links.side_links import SideLink
from penstock.spark.sessions import cached_files
from penstock.spark.sessions.interpreters import Interpreter
from penstock.spark.sessions.preloading import preload

CONTROL, LIFELINE, SIDE = "control", "lifeline", "side"
DEPLOY, COMMAND, LOOK, LOOK_FIRST, ASIDE, RELEASE, TOKENS = b"D", b"C", b"L", b"F", b"A", b"R", b"T"
ASIDE_STAGE = -2
"""Stage in the tags of questions that are asked while an epoch runs, and of their answers."""
PEER_SECONDS = 60
SERVED = b"\x00"
"""Byte that a slot sends to its task when it has its orders. No text begins with it."""
LONGEST_REASON = 2000
"""Longest reason, in bytes, that a slot gives its task for not starting. A pipe takes that many at once."""
MOST_FILES = 1 << 16
"""Number of file descriptors that a slot closes at most. The system's limit can be in the thousands of millions."""
_PR_SET_PDEATHSIG = 1
GC_THRESHOLDS = (50_000, 20, 50)
"""Thresholds of the garbage collector. Python's defaults would scan the many long-lived objects of state too often."""


@dataclass(frozen=True)
class Invitation:
    """The data that a task needs to become a slot of an attempt."""

    job_id: str
    attempt: int
    slots: int
    secret: bytes
    driver: Address
    on_network: bool
    """Whether slots and driver may be on several machines."""
    silence: float
    """Time without an answer, in seconds, after which the driver gives a slot up."""
    identity: Identity | None = None
    """Certificate and key for encrypted links between machines; None without encryption."""
    preloaded: tuple[str, ...] = ()
    """Modules to import before the slot is forked."""
    interpreter: Interpreter = field(default_factory=Interpreter)
    """Python of the driver. The Python of slots must fit it."""

    def __call__(self, index: int, elements: Iterator[object]) -> Iterator[object]:
        """Run the task of slot `index`. An RDD calls this."""
        for _ in elements:
            pass
        return iter(self.host_slot(index))

    def host_slot(self, index: int) -> list[str]:
        """Run the task of slot `index` from the start of the attempt to its end.

        Return a description of the slot's end if it was not a normal one.
        """
        self.interpreter.check_slot()
        preload(self.preloaded)
        return _fork_slot(self, index)


@dataclass(frozen=True)
class Hello:
    """The first message of a slot on a link to the driver."""

    slot: int
    kind: str
    """Kind of the link: CONTROL, LIFELINE or SIDE."""
    task: int
    """Spark's id of the task. A task that Spark starts later has a higher id."""
    process: int = field(default_factory=os.getpid)
    address: Address | None = None
    machine: str = field(default_factory=this_machine)


def _fork_slot(invitation: Invitation, index: int) -> list[str]:
    """Fork the slot's process and wait for its end. Return a description of the end if it was not a normal one.

    Raise RuntimeError if the process ended before it had its orders: the driver may not know the process then, and
    Spark has to report the failure. Later, the links report it. The task does not fail then, since a failure would make
    Spark start a new Python process for the next attempt.
    """
    watched, held = os.pipe()  # the slot watches one end, which closes when the task, which holds the other end, ends
    heard, said = os.pipe()  # the slot reports here that it has its orders
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # the slot's garbage collector need not scan the objects of the task
    task = TaskIdentity(os.getppid(), _task_id())
    process = os.fork()
    if process == 0:
        _become_slot(invitation, index, task, Pipes(watched, said))
    gc.unfreeze()
    os.close(watched)
    os.close(said)
    try:
        _, status = os.waitpid(process, 0)
        last_words = os.read(heard, LONGEST_REASON)
    finally:
        os.close(held)
        os.close(heard)
    code = os.waitstatus_to_exitcode(status)
    ended = f"the process of slot {index} ended with {f'signal {-code}' if code < 0 else code}"
    if last_words.startswith(SERVED):
        return [ended] if code else []
    raise RuntimeError(f"slot {index} did not start: {last_words.decode(errors='replace')}" if last_words else ended)


def _task_id() -> int:
    context = TaskContext.get()
    return -1 if context is None else context.taskAttemptId()


class TaskIdentity(NamedTuple):
    """The executor process and the id of a slot's task."""

    executor: int
    """Process that starts the Python processes of tasks. Every executor has its own."""
    id: int
    """Spark's id of the task. No two tasks of an application have the same."""


class Pipes(NamedTuple):
    """A slot's ends of the pipes to its task."""

    task: int
    """Pipe that closes when the task ends."""
    served: int
    """Pipe that takes SERVED as soon as the slot has its orders, or the reason why it never got them."""


def _become_slot(invitation: Invitation, index: int, task: TaskIdentity, pipes: Pipes) -> NoReturn:
    """Run the slot in the forked process until its end. It keeps only the standard streams of the task."""
    code = 1
    try:
        _close_all_but(pipes)
        die_with_parent(signal.SIGKILL)  # others end through their lifeline, unless they are stopped or hang
        _name_process(f"slot{index}-{invitation.job_id}")
        SlotProcess(invitation, index, task, pipes).serve()
        code = 0
    except LinkLost as lost:
        code = 0  # the driver or another slot is gone; the driver reports that loss
        os.write(pipes.served, str(lost).encode()[:LONGEST_REASON])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _close_all_but(kept: Pipes) -> None:
    """Close the task's files except the standard streams and these pipes."""
    first, last = sorted(kept)
    os.closerange(3, first)
    os.closerange(first + 1, last)
    os.closerange(last + 1, min(os.sysconf("SC_OPEN_MAX"), MOST_FILES))


def die_with_parent(number: signal.Signals) -> None:
    """Make the system send this signal to this process when its parent ends, if the system supports it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _name_process(name: str) -> None:
    """Set the process name that `ps` and `top` show, if the system can. They show 15 characters."""
    with suppress(OSError), open("/proc/self/comm", "w") as shown:
        shown.write(name)


class SlotProcess:
    """Executes the driver's commands: opens the slot, runs epochs, closes the slot."""

    def __init__(self, invitation: Invitation, index: int, task: TaskIdentity, pipes: Pipes) -> None:
        host = host_towards(invitation.driver) if invitation.on_network else None
        self._place = MACHINE if host is None else f"{host}:{task.executor}"
        self._invitation = invitation
        self._served = pipes.served
        self._index = index
        self._door = Door(Listener(invitation.secret, host, host or "", invitation.identity))
        self._control = self._connect(Hello(index, CONTROL, task.id, address=self._door.address))
        self._lifeline = Lifeline(self._connect(Hello(index, LIFELINE, task.id)), pipes.task, invitation.silence)
        self._side = SideLink(self._connect(Hello(index, SIDE, task.id)), index)
        self._mesh = Mesh({})
        self._slot: Slot | None = None
        self._orders = Inlet(self._control)
        self._next_order: tuple[Tag, bytearray] | None = None
        """Order that came before the previous one was finished."""

    def _connect(self, hello: Hello) -> socket.socket:
        made = connect(self._invitation.driver, self._invitation.secret, self._invitation.identity)
        limit_silence(made, self._invitation.silence)
        send(made, self._tag(), pickle.dumps(hello))
        return made

    def _tag(self, epoch: int = -1, stage: int = -1) -> Tag:
        return Tag(self._invitation.attempt, epoch, stage)

    def serve(self) -> None:
        """Execute the driver's orders until it releases the slot or closes the link."""
        handlers: dict[bytes, Callable[[memoryview], Report | Findings]] = {
            DEPLOY: self._deploy,
            COMMAND: self._epoch,
            LOOK: self._look,
            LOOK_FIRST: self._look_first,
            ASIDE: self._look,
        }
        while self._next_order is not None or self._orders.read():
            tag, order = self._next_order or self._orders.message()
            self._next_order = None
            if tag.attempt != self._invitation.attempt:
                raise LinkLost(f"an order of attempt {tag.attempt}")
            kind, body = bytes(order[:1]), memoryview(order)[1:]
            if kind == TOKENS:
                use_tokens(bytes(body))
                continue
            if kind == RELEASE:
                released = self._release()
                self._side.finish()
                self._answer(released)
                say_farewell(self._control)
                return
            self._answer(handlers[kind](body), tag.stage)

    def _answer(self, report: Report | Findings, stage: int = -1) -> None:
        send(self._control, self._tag(report.epoch, stage), pickle.dumps(report, pickle.HIGHEST_PROTOCOL))

    def _answer_aside(self) -> None:
        """Answer clients' questions between two steps of an epoch, and keep other orders for later."""
        if self._next_order is not None:
            return
        with suppress(LinkLost):  # the end of the epoch is early enough for that
            if self._orders.read(socket.MSG_DONTWAIT):
                tag, order = self._orders.message()
                if tag.stage == ASIDE_STAGE:
                    assert self._slot is not None
                    self._answer(self._slot.look_within(pickle.loads(memoryview(order)[1:])), ASIDE_STAGE)
                else:
                    self._next_order = tag, order

    # --- the orders ---
    def _deploy(self, body: memoryview) -> Report:
        failure = None
        try:
            os.write(self._served, SERVED)
            deployment, addresses = pickle.loads(body)
            self._mesh = mesh_of(self._index, self._meet_others(addresses), [address.host for address in addresses])
            self._open(deployment)
        except OperatorFailed as failed:
            failure = failed.failure
        except LinkLost as lost:
            return Report(self._index, -1, os.getpid(), lost=str(lost))
        except Exception as error:
            failure = failure_of(error, "the engine", "-", self._index)
        return self._report(failure)

    def _open(self, deployment: Deployment) -> None:
        move_in(deployment)
        capture(self._index, deployment, self._side.line)
        self._slot = Slot(self._index, deployment, Bell(self._lifeline.wake), place=self._place)
        self._slot.between_steps = self._answer_aside
        self._slot.open()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)

    def _meet_others(self, addresses: list[Address]) -> dict[int, socket.socket]:
        """Return links to all other slots. This slot connects to those before it, and those after it connect to it."""
        peers = {}
        for peer in range(self._index):
            peers[peer] = connect(addresses[peer], self._invitation.secret, self._invitation.identity)
            send(peers[peer], self._tag(), str(self._index).encode())
        while len(peers) < self._invitation.slots - 1:
            guest = self._door.guest(PEER_SECONDS)
            if guest is None:
                raise LinkLost(f"only {len(peers)} of {self._invitation.slots - 1} other slots could be reached")
            peers[int(guest[0])] = guest[1]
        self._door.close()
        for link in peers.values():
            limit_silence(link, self._invitation.silence)
        return peers

    def _epoch(self, body: memoryview) -> Report:
        command: Command = pickle.loads(body)
        slot = self._slot
        assert slot is not None
        slot.begin(command)
        arrived: list[bytes] = []
        for stage in range(slot.plan.stages):
            outgoing = slot.run_stage(stage, arrived)
            if stage == slot.plan.stages - 1:
                break
            try:
                others = self._mesh.exchange(self._tag(command.epoch, stage), outgoing)
            except LinkLost as lost:
                unreachable = lost.slot if lost.is_unreachable else None
                return Report(self._index, command.epoch, os.getpid(), lost=str(lost), unreachable=unreachable)
            arrived = [outgoing[self._index], *others]  # type: ignore[list-item]
        return slot.report()

    def _look(self, body: memoryview) -> Findings:
        """Answer clients' questions between two epochs."""
        lookup: Lookup = pickle.loads(body)
        assert self._slot is not None
        return self._slot.look(lookup)

    def _look_first(self, body: memoryview) -> Report:
        """Answer clients' questions, then run an epoch. Clients need not wait for the end of the epoch."""
        lookup, command = pickle.loads(body)
        assert self._slot is not None
        self._answer(self._slot.look(lookup))
        return self._epoch(memoryview(command))

    def _release(self) -> Report:
        """Close the slot's functions."""
        failures = self._slot.release() if self._slot is not None else []
        return self._report(failures[0] if failures else None)

    def _report(self, failure: Failure | None) -> Report:
        return Report(self._index, -1, os.getpid(), failure=failure)


def move_in(deployment: Deployment) -> None:
    """Make the program's modules and files available in this process."""
    if deployment.archive is not None:
        sys.path[:0] = cached_files.unpack_archive(deployment.archive)
    sys.path.extend(folder for folder in deployment.search_path if folder not in sys.path)
    if deployment.pyflink:
        compat.install()
    deployment.cached_files = cached_files.local(deployment.cached_files)
    if deployment.working_directory is not None:
        os.chdir(deployment.working_directory)
