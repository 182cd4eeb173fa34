"""One attempt of a job on Spark: the tasks that are its slots, and the driver's links to them."""

from __future__ import annotations

import logging
import pickle
import secrets
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import cloudpickle

from penstock.engine.job.cluster_protocol import Patience
from penstock.engine.job.slot_queries import Asides
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.observe.slot_questions import Question
from penstock.engine.queryable.slot_states import Findings, Lookup
from penstock.errors import NotEnoughSlots, SlotLost
from penstock.graph.plan import Plan
from penstock.spark.links.encryption import new_identity
from penstock.spark.links.lifelines import Lifelines
from penstock.spark.links.links import Inlet, LinkLost, Tag, close_all, send
from penstock.spark.links.nudge import Nudge
from penstock.spark.links.side_links import SideLinks
from penstock.spark.sessions.preloading import modules_to_import
from penstock.spark.slots.arrivals import Arrivals
from penstock.spark.slots.slot_tasks import SlotHost, SlotTasks, loss
from penstock.spark.slots.worker import (
    ASIDE,
    ASIDE_STAGE,
    COMMAND,
    CONTROL,
    DEPLOY,
    LIFELINE,
    LOOK,
    LOOK_FIRST,
    RELEASE,
    SIDE,
    TOKENS,
    Invitation,
)

ENDING_SECONDS = 3.0
"""Time, in seconds, in which Spark's job may end by itself once its slots have ended."""
CUT_OFF_SECONDS = 0.5
"""The same if a slot is on a host that cannot be reached, so that its task does not end by itself."""
CAUSE_SECONDS = 0.5
"""Time, in seconds, to wait for the cause of a lost link."""
TOKENS_SECONDS = 60.0
"""Time, in seconds, between two checks whether Spark has renewed the tokens of HDFS."""
QUIET_SECONDS = 10.0
"""Time, in seconds, after which the log says what starting slots wait for."""
log = logging.getLogger("penstock.job")


class Attempt:
    """The slots of one attempt and the driver's links to them, from their start to their end."""

    def __init__(
        self,
        host: SlotHost,
        deployment: Deployment,
        patience: Patience,
        on_wake: Callable[[bool], None],
        is_cancelled: Callable[[], bool] = lambda: False,
        encrypt: bool = False,
    ) -> None:
        """Start the slots, and return when every slot has started. Stop waiting if `is_cancelled` returns True."""
        self._host = host
        self._number = deployment.attempt
        self._slots = deployment.plan.slots
        self._patience = patience
        self._epoch = -1
        self._ended = False
        self._missed: set[int] = set()
        """Slots that other slots could not reach."""
        self._nudge = Nudge()
        self._tokens = b""
        self._tokens_due = 0.0
        secret = secrets.token_bytes(32)
        identity = new_identity() if encrypt and host.on_network else None
        self._door = host.open_door(secret, identity)
        self._arrivals = Arrivals(self._door, self._slots, patience.heartbeat_timeout / 1000)
        invitation = Invitation(
            job_id=deployment.job_id,
            attempt=self._number,
            slots=self._slots,
            secret=secret,
            driver=self._door.address,
            on_network=host.on_network,
            silence=patience.heartbeat_timeout / 1000,
            identity=identity,
            preloaded=modules_to_import(),
        )
        group = f"{deployment.job_id}-{self._number}-{secrets.token_hex(4)}"
        self._tasks = host.tasks(invitation, deployment.plan.job_name, group)
        try:
            waiting = Waiting(self._tasks, deployment.plan, patience.slot_request_timeout / 1000, is_cancelled)
            self._await_cores(waiting)
            log.debug("attempt %d asks Spark for %d slots", self._number, self._slots)
            self._tasks.start()
            self._await_slots(waiting)
            log.debug("attempt %d has its slots", self._number)
        except BaseException:
            self.end()
            raise
        hellos, links = self._arrivals.hellos, self._arrivals.links
        self._addresses = [hellos[slot].address for slot in range(self._slots)]
        self._inlets = [Inlet(links[CONTROL][slot]) for slot in range(self._slots)]
        self._selector = selectors.DefaultSelector()
        for slot, inlet in enumerate(self._inlets):
            self._selector.register(inlet.sock, selectors.EVENT_READ, slot)
        self._selector.register(self._nudge.sock, selectors.EVENT_READ)
        self._lifelines = Lifelines(patience, on_wake, self._cut)
        for slot, hello in hellos.items():
            self._lifelines.add(slot, links[LIFELINE][slot], hello.process, hello.machine)
        self._lifelines.start()
        self._side = SideLinks(links[SIDE])

    # --- the start ---
    def _await_cores(self, waiting: Waiting) -> None:
        """Wait until Spark has enough cores. Spark itself may check only every 15 s whether a waiting job can start."""
        while self._cores() < self._slots:
            waiting.step(0)
            time.sleep(0.1)

    def _cores(self) -> int:
        """Return the number of tasks that Spark can run at once, or the number of slots if it is unknown."""
        capacity = self._host.capacity()
        return self._slots if capacity is None else capacity

    def _await_slots(self, waiting: Waiting) -> None:
        """Wait until every slot has made all of its links."""
        while not self._arrivals.are_complete:
            if self._arrivals.take(0.1):
                continue
            failure = self._tasks.failure
            if failure is not None:
                raise loss(f"the slots did not start: {failure}")
            waiting.step(self._arrivals.count)

    # --- orders ---
    def deploy(self, deployment: Deployment) -> list[Report]:
        """Open every slot."""
        reports = self._order_all(-1, DEPLOY + cloudpickle.dumps((deployment, self._addresses)))
        log.debug("attempt %d is open", self._number)
        return reports

    def run(self, command: Command, asides: Asides) -> list[Report]:
        """Run one epoch in all slots, let them answer asides meanwhile, and return the slots' reports."""
        self._epoch = command.epoch
        return self._order_all(command.epoch, COMMAND + pickle.dumps(command, pickle.HIGHEST_PROTOCOL), asides)

    def nudge(self) -> None:
        """Make a running epoch look for new questions that one slot can answer. Any thread may call this."""
        self._nudge.give()

    def look(self, lookups: Mapping[int, Lookup]) -> list[Findings]:
        """Let some slots answer clients' questions. All slots are at the same cut."""
        orders = {slot: LOOK + pickle.dumps(lookup, pickle.HIGHEST_PROTOCOL) for slot, lookup in lookups.items()}
        return self._order_some(Tag(self._number, self._epoch, -1), orders)

    def look_and_run(
        self,
        lookups: Mapping[int, Lookup],
        found: Callable[[list[Findings]], None],
        command: Command,
        asides: Asides,
    ) -> list[Report]:
        """Let some slots answer clients' questions, pass their answers to `found`, and run one epoch in all slots.

        Each slot has its whole order before it answers, so neither side waits for the other.
        """
        cut, epoch = Tag(self._number, self._epoch, -1), Tag(self._number, command.epoch, -1)
        self._epoch = command.epoch
        plain = pickle.dumps(command, pickle.HIGHEST_PROTOCOL)
        orders = dict.fromkeys(range(self._slots), COMMAND + plain)
        for slot, lookup in lookups.items():
            orders[slot] = LOOK_FIRST + pickle.dumps((lookup, plain), pickle.HIGHEST_PROTOCOL)
        owed = {slot: (cut, epoch) if slot in lookups else (epoch,) for slot in orders}
        answers: dict[Tag, dict[int, Any]] = {cut: {}, epoch: {}}
        with self._explain_loss():
            self._send_tokens(epoch)
            self._send(epoch, orders)
            for tag, slot, answer in self._answers(owed, asides):
                answers[tag][slot] = answer
                if tag == cut and len(answers[cut]) == len(lookups):
                    found(list(answers[cut].values()))
        return [answers[epoch][slot] for slot in sorted(orders)]

    def watch(self, question: Question) -> dict[int, Future[Any]]:
        """Ask all slots while they work. Any thread may call this."""
        return self._side.ask(question)

    def stacks(self, seconds: float) -> dict[int, str]:
        """Return the stacks of the slots' threads, by slot. Their lifelines report them, whatever the threads do."""
        return self._lifelines.stacks(seconds)

    def release(self) -> list[Report]:
        """Close the slots' functions, and let the slots' processes end."""
        return self._order_all(-1, RELEASE)

    def _order_all(self, epoch: int, order: bytes, asides: Asides | None = None) -> list[Report]:
        tag = Tag(self._number, epoch, -1)
        with self._explain_loss():
            self._send_tokens(tag)
        return self._order_some(tag, dict.fromkeys(range(self._slots), order), asides)

    def _send_tokens(self, tag: Tag) -> None:
        """Send all slots the delegation tokens of HDFS, before the first order and whenever Spark has renewed them."""
        now = time.monotonic()
        if now < self._tokens_due:
            return
        self._tokens_due = now + TOKENS_SECONDS
        tokens = self._host.tokens()
        if tokens not in (b"", self._tokens):
            log.debug("attempt %d sends tokens of HDFS to its slots", self._number)
            self._tokens = tokens
            self._send(tag, dict.fromkeys(range(self._slots), TOKENS + tokens))

    def _order_some(self, tag: Tag, orders: Mapping[int, bytes], asides: Asides | None = None) -> list[Any]:
        """Send an order to each of some slots, and return their answers in the order of the slots."""
        with self._explain_loss():
            self._send(tag, orders)
            answers = {slot: answer for _, slot, answer in self._answers(dict.fromkeys(orders, (tag,)), asides)}
        return [answers[slot] for slot in sorted(orders)]

    @contextmanager
    def _explain_loss(self) -> Iterator[None]:
        try:
            yield
        except (LinkLost, ValueError, OSError) as error:
            why = self._why(str(error))
            self._let_go()  # the others have time to end until the next attempt begins
            raise SlotLost(why) from None

    def _name(self, slot: int, lost: LinkLost) -> LinkLost:
        """Return the loss of a link with its slot and host, and note a host that cannot be reached."""
        if lost.is_unreachable:
            self._missed.add(slot)
        return LinkLost(f"slot {slot}{self._place(slot)}: {lost}", lost.is_unreachable, slot)

    def _place(self, slot: int) -> str:
        address = self._addresses[slot]
        return f" on {address.host}" if address is not None and address.host else ""

    def _send(self, tag: Tag, orders: Mapping[int, bytes]) -> None:
        for slot, order in orders.items():
            try:
                send(self._inlets[slot].sock, tag, order)
            except LinkLost as lost:
                raise self._name(slot, lost) from None

    def _answers(
        self, owed: Mapping[int, tuple[Tag, ...]], asides: Asides | None = None
    ) -> Iterator[tuple[Tag, int, Any]]:
        """Yield the answers that slots owe under these tags, as they come. Each slot answers in the order of its tags.

        Until all answers are here, slots can be asked asides.
        """
        left = {slot: deque(tags) for slot, tags in owed.items()}
        impatient_at: float | None = time.monotonic() + self._patience.heartbeat_timeout / 1000
        self._nudge.reset()
        while left or (asides is not None and asides.are_open()):
            due_in = None if asides is None or not left else self._ask_aside(asides)
            ready = self._selector.select(_sooner(impatient_at, due_in))
            if impatient_at is not None and time.monotonic() >= impatient_at and not ready:
                # The slots may take any time, but the user may want to know what the job waits for.
                self._lifelines.ask(left)
                impatient_at = None
            for key, _ in ready:
                if key.data is None:
                    self._nudge.drain()
                    continue
                slot, inlet = key.data, self._inlets[key.data]
                if slot not in left and not (asides is not None and asides.are_open(slot)):
                    # The slot owes no answer and is gone: rightly at the end of the job, else the next order fails.
                    self._selector.unregister(inlet.sock)
                    continue
                try:
                    is_complete = inlet.read()
                except LinkLost as lost:
                    raise self._name(slot, lost) from None
                if is_complete:
                    yield from self._take_answers(slot, left.get(slot, deque()), asides)
                    if slot in left and not left[slot]:
                        del left[slot]

    def _ask_aside(self, asides: Asides) -> float | None:
        """Ask the waiting questions if they are due. Return the seconds until they are due, or None."""
        due_in = asides.due_in()
        if due_in is None or due_in > 0:
            return due_in
        self._nudge.reset()
        for slot, lookup in asides.questions().items():
            question = ASIDE + pickle.dumps(lookup, pickle.HIGHEST_PROTOCOL)
            send(self._inlets[slot].sock, Tag(self._number, self._epoch, ASIDE_STAGE), question)
        return None

    def _take_answers(self, slot: int, owed: deque[Tag], asides: Asides | None) -> Iterator[tuple[Tag, int, Any]]:
        """Yield the complete answers of a slot: one, and the next one if both came together."""
        inlet = self._inlets[slot]
        while inlet.is_complete():
            found, body = inlet.message()
            if asides is not None and (found.attempt, found.stage) == (self._number, ASIDE_STAGE):
                asides.answer(pickle.loads(body))
                continue
            tag = owed.popleft() if owed else None
            if found != tag:
                raise LinkLost(f"slot {slot} answered {found} instead of {tag}")
            answer = pickle.loads(body)
            if isinstance(answer, Report) and answer.lost:
                # The other slots may notice late, or wait for this one for ever.
                if answer.unreachable is not None:
                    self._missed.add(answer.unreachable)
                raise LinkLost(f"slot {answer.slot}{self._place(answer.slot)}: {answer.lost}")
            yield tag, slot, answer

    # --- the end ---
    @property
    def unreachable(self) -> set[str]:
        """Hosts that the driver or other slots could not reach."""
        slots = self._missed | self._lifelines.unreachable
        return {address.host for slot in slots if (address := self._addresses[slot]) is not None and address.host}

    def _why(self, said: str) -> str:
        """Return the first known cause of a failure: of the lost slot, else of Spark, else of the link, given as
        `said`.
        """
        if self._ended:
            return "the job was cancelled"
        return self._lifelines.cause_within(CAUSE_SECONDS) or self._tasks.failure or said

    def _cut(self, slot: int) -> None:
        """End the link to a slot that does not answer, so that no thread waits for its report any longer."""
        shut_down(self._inlets[slot].sock)

    def _let_go(self) -> None:
        """Close the links, so that the slots end by themselves."""
        if hasattr(self, "_lifelines"):
            self._lifelines.close()
        for link in self._arrivals.of_kinds(CONTROL, LIFELINE):
            shut_down(link)

    def end(self) -> None:
        """Release the slots, whatever they do. Any thread may call this, and more than once."""
        self._ended = True
        self._door.close()
        self._let_go()
        # Tasks on a host that cannot be reached do not end, or Spark does not learn of it.
        is_cut_off = hasattr(self, "_lifelines") and self.unreachable
        self._tasks.end(CUT_OFF_SECONDS if is_cut_off else ENDING_SECONDS)
        self._close_side()

    def _close_side(self) -> None:
        """Close the links over which slots are watched, after reading them to their end, when the slots end."""
        if hasattr(self, "_side"):
            self._side.close()
        else:
            close_all(self._arrivals.of_kinds(SIDE))


def _sooner(at: float | None, due_in: float | None) -> float | None:
    """Return the seconds until the earlier of two moments, or None if there is neither.

    `at` is a time of the monotonic clock, and `due_in` a number of seconds.
    """
    left = None if at is None else max(0.0, at - time.monotonic())
    return min((one for one in (left, due_in) if one is not None), default=None)


class Waiting:
    """A wait for slots. It is logged once, and has a time limit."""

    def __init__(self, tasks: SlotTasks, plan: Plan, seconds: float, is_cancelled: Callable[[], bool]) -> None:
        self._tasks = tasks
        self._job = plan.job_name
        self._slots = plan.slots
        self._seconds = seconds
        self._is_cancelled = is_cancelled
        self._began = time.monotonic()
        self._told = False

    def step(self, there: int) -> None:
        """Check a wait of which `there` slots have started. Raise NotEnoughSlots if it has lasted too long."""
        if self._is_cancelled():
            raise SlotLost("the job was cancelled while its slots started")
        waited = time.monotonic() - self._began
        if waited > self._seconds:
            raise NotEnoughSlots(self._describe_wait(there, f"slot.request.timeout, {self._seconds:g} s, has expired"))
        if waited > QUIET_SECONDS and not self._told:
            self._told = True
            log.warning("%s", self._describe_wait(there, f"waiting up to {self._seconds:g} s"))

    def _describe_wait(self, there: int, how_long: str) -> str:
        return (
            f"job '{self._job}' needs {self._slots} slots at once, and {there} have started ({how_long}): "
            f"{self._tasks.obstacle(there)}"
        )


def shut_down(sock: socket.socket) -> None:
    """Shut a connection down for both sides. A thread that reads from it finds its end."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
