"""A slot: the operators of one subtask index, alive from epoch to epoch, run stage by stage.

This module knows nothing of Spark or of the driver's loop: bytes in, bytes out.
"""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from penstock.base.main_classes import adopt_classes
from penstock.engine.exchange.frames import deliver
from penstock.engine.messages.commands_and_reports import CheckpointOrder, Command, Deployment, Notice, Report
from penstock.engine.messages.epoch_requests import Bell
from penstock.engine.observe.measures import Measures
from penstock.engine.observe.slot_activity import Traffic
from penstock.engine.operators.batch.batch_operator import wrap_for_batch
from penstock.engine.operators.operator import Alignment, Clock, GateState, Operator, OperatorContext
from penstock.engine.operators.sinks.committing import Begun
from penstock.engine.operators.sources.source_operator import Budget
from penstock.engine.queryable.slot_states import Findings, Lookup, Queryables
from penstock.engine.records.elements import MIN_TIMESTAMP, NOBODY, join_receivers
from penstock.engine.records.failures import USER_ERRORS, Failure, OperatorFailed, failure_of
from penstock.engine.slot.slot_parts import SlotParts
from penstock.engine.slot.wiring import Address, Wiring
from penstock.engine.snapshots.local_copies import LocalCopies
from penstock.engine.snapshots.restore import RestoredOperator, SlotRestore
from penstock.engine.snapshots.snapshot_parts import Extent, SubtaskSnapshot
from penstock.engine.snapshots.writing import SlotCheckpoints
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.snapshot_file import State
from penstock.engine.state.table_choice import tables_for
from penstock.engine.state.tables import Tables
from penstock.errors import JobDisplaced, PenstockError, StorageError
from penstock.graph.plan import Node

MACHINE = socket.gethostname()
_NOTHING = b""
"""An empty blob."""


class Slot:
    """Subtask `index` of every operator that has one, or only of one stage if every stage has its own process."""

    def __init__(
        self,
        index: int,
        deployment: Deployment,
        bell: Bell | None = None,
        stage: int | None = None,
        place: str = MACHINE,
    ) -> None:
        self.index = index
        self._stage = stage
        self._place = place
        self.bell = bell or Bell()
        self.deployment = deployment
        self.plan = deployment.plan
        self.clock = Clock(deployment.now)
        self.alignment = Alignment()
        self.operators: dict[int, Operator] = {}
        self._parts = SlotParts(self)
        self.measures = Measures(self.plan, index, deployment.measuring)
        self.metrics, self.activity = self.measures.metrics, self.measures.activity
        self._wiring = Wiring(index, deployment, self.operators, self.activity)
        self.gates, self.channels, self.writers = self._wiring.gates, self._wiring.channels, self._wiring.writers
        self.command: Command | None = None
        self.failure: Failure | None = None
        self.epoch = -1
        self._results: list[tuple[str, Any]] = []
        self._committables: list[tuple[str, int, list[Any]]] = []
        self._waiting: dict[int, list[tuple[Address, list[bytes]]]] = {}
        self.tables: Tables = tables_for(deployment.state_backend, f"{deployment.job_id}-{index}")
        self.queryables = Queryables()
        self.between_steps: Callable[[], None] = _nothing_between
        """Function to answer clients. The slot calls it between two steps of an epoch, while no user function runs."""
        self._looks = 0
        own = deployment.checkpoints
        keeps_copies = own is not None and own.local_copies
        self._copies = LocalCopies(deployment.job_id, index, own.local_folders) if own and keeps_copies else None
        self._restore = SlotRestore(deployment.restore, self._copies) if deployment.restore is not None else None
        self.checkpoints = SlotCheckpoints(index, deployment, self._copies, self.bell)

    # --- opening and closing ---
    def open(self) -> None:
        """Open every operator, downstream first. They may commit then, so the job must still belong to this attempt."""
        self._check_owner()
        loaded = {node.id: self._load(node) for node in self._nodes}
        adopt_classes(self.deployment.main_classes, self.deployment.class_definitions)
        for node in reversed(self._nodes):
            self._open(node, loaded[node.id])
        if self._restore is not None:
            self._resume()
            self._restore.close()

    def _resume(self) -> None:
        """Restore event time and round-robin positions."""
        for node in self._nodes:
            restored = self.operators[node.id].context.restored
            if restored is None or restored.drained:
                continue
            if restored.continued:
                own = restored.own() or {}
                if node.id in self.gates:
                    self.gates[node.id].restore(GateState(*own["_gate"]))
                for edge, turn in own["_turns"].items():
                    self.writers[edge].resume(turn)
            elif node.id in self.gates:
                watermarks = [GateState(*own["_gate"]).watermark for own in restored.all_own() if "_gate" in own]
                self.gates[node.id].resume_at(min(watermarks, default=MIN_TIMESTAMP))

    @cached_property
    def _nodes(self) -> list[Node]:
        there = [node for node in self.plan.nodes if self.index < node.parallelism]
        return [node for node in there if self._stage in (None, node.stage)]

    def _load(self, node: Node) -> Operator:
        try:
            operator: Operator = pickle.loads(self.deployment.operators[node.id])
        except USER_ERRORS as error:
            raise OperatorFailed(failure_of(error, node.name, node.uid, self.index)) from error
        return wrap_for_batch(operator) if self.plan.batch else operator

    def _open(self, node: Node, operator: Operator) -> None:
        outputs = {tag: join_receivers(receivers) for tag, receivers in self._wiring.outputs(node, operator).items()}
        aged = operator.is_source or operator.gives_event_time
        outputs = {
            tag: self.measures.count_output(node, tag, to, aged) for tag, to in {None: NOBODY, **outputs}.items()
        }
        deployment = self.deployment
        # An operator whose open() fails half-way must be closed too, so the slot registers it before it opens it.
        self.operators[node.id] = operator
        operator.open(
            OperatorContext(
                name=node.name,
                uid=node.uid,
                subtask=self.index,
                parallelism=node.parallelism,
                max_parallelism=node.max_parallelism,
                output=outputs[None],
                side_outputs={tag: receiver for tag, receiver in outputs.items() if tag is not None},
                clock=self.clock,
                job_id=deployment.job_id,
                job_name=self.plan.job_name,
                attempt=deployment.attempt,
                batch=self.plan.batch,
                watermark_interval=deployment.watermark_interval,
                tracks_changes=deployment.checkpoints is not None and not self.plan.batch,
                tables=self.tables,
                queryables=self.queryables,
                restored=self._find_restored(node),
                job_parameters=deployment.job_parameters,
                cached_files=deployment.cached_files,
                metrics=self.metrics.add_group(node.uid),
                latencies=self.measures.latencies(node),
                markers=self.measures.markers(node),
                alignment=self.alignment,
                aligned=node.aligned,
                bell=self.bell,
                results=lambda uid, payload: self._results.append((uid, payload)),
                to_global_committer=lambda number, items: self._committables.append((node.uid, number, items)),
                owner=deployment.owner,
                sort_memory=deployment.sort_memory,
                spill_folder=deployment.spill_folder,
            )
        )
        if not operator.is_source:
            self._wiring.open_gate(node, operator)

    def _find_restored(self, node: Node) -> RestoredOperator | None:
        return None if self._restore is None else self._restore.operator(node.uid, self.index, node.parallelism)

    def release(self) -> list[Failure]:
        """Close the slot at the end of the job. Delete its local copies, unless a new owner may use them by now."""
        if self._copies is not None:
            with suppress(PenstockError):
                self._check_owner()
                self._copies.delete()
        return self.close()

    def _check_owner(self) -> None:
        """Raise JobDisplaced if this attempt may no longer commit."""
        if self.deployment.owner is not None:
            self.deployment.owner.check()

    def close(self) -> list[Failure]:
        """Close every operator, upstream first. A close that fails does not keep the others from closing."""
        failures = []
        for node in self._nodes:
            operator = self.operators.pop(node.id, None)
            try:
                if operator is not None:
                    operator.close()
            except USER_ERRORS as error:
                failures.append(failure_of(error, node.name, node.uid, self.index))
        self.checkpoints.close()
        self.tables.close()
        return failures

    # --- one epoch ---
    def begin(self, command: Command) -> None:
        """Take the command of a new epoch."""
        self.bell.disarm()
        self.command = command
        self.epoch = command.epoch
        self._looks = 0
        self.clock.now = command.now
        self.alignment.limits = command.alignment
        self.failure = None
        self._waiting.clear()
        self.activity.begin_epoch()
        try:
            for notice in command.notices:
                self._notify(notice)
        except OperatorFailed as failed:
            self.failure = failed.failure
        except PenstockError as error:
            self.failure = failure_of(error, "the engine", "-", self.index)

    def _notify(self, notice: Notice) -> None:
        """Tell every operator the outcome of a checkpoint. If it is complete, they may commit what it holds."""
        if notice.complete:
            self._check_owner()
        if notice.complete and not notice.savepoint:
            self.checkpoints.complete(notice.number)
            for backend in self._backends():
                for table in backend.tables.values():
                    table.confirm(notice.number)
        for operator in self._all_operators:
            try:
                if notice.complete:
                    operator.checkpoint_complete(notice.number)
                else:
                    operator.checkpoint_aborted(notice.number)
            except USER_ERRORS as error:
                raise operator.failure(error, []) from error

    @cached_property
    def _all_operators(self) -> list[Operator]:
        return [self.operators[node.id] for node in self._nodes]

    def _backends(self) -> list[KeyedStateBackend]:
        return [backend for operator in self.operators.values() for backend in operator.backends().values()]

    def run_stage(self, stage: int, blobs: list[bytes]) -> list[bytes]:
        """Run one stage on the blobs of the previous one, and return a blob for every slot."""
        for blob in filter(None, blobs):
            for address, frames in pickle.loads(blob):
                self._hold(address, frames)
        if self.failure is None:
            try:
                self._drive(stage)
                return self._outgoing(stage)
            except OperatorFailed as failed:
                self.failure = replace(failed.failure, stage=stage)
            except USER_ERRORS as error:
                self.failure = replace(failure_of(error, "the engine", "-", self.index), stage=stage)
        return [_NOTHING] * self.plan.slots

    def _hold(self, address: Address, frames: list[bytes]) -> None:
        """Keep frames unopened until the stage of their target."""
        target = self.plan.nodes[self.plan.edges[address[0]].target]
        self._waiting.setdefault(target.stage, []).append((address, frames))

    def _drive(self, stage: int) -> None:
        """Run one stage and measure its time, without the time that a source waits for its first record."""
        assert self.command is not None
        clock = time.thread_time if stage == 0 and self.command.wait_millis else time.perf_counter
        began = clock()
        self._drive_operators(stage, self.command)
        self.activity.add_work(stage, clock() - began)

    def _drive_operators(self, stage: int, command: Command) -> None:
        operators = self._parts.by_stage[stage]
        for operator in operators:
            operator.advance_processing_time(command.now)
        if stage == 0 and command.drain:
            for _, source in self._parts.sources:
                source.drain()
        elif stage == 0 and command.paused:
            for _, source in self._parts.sources:
                source.settle()
        elif stage == 0:
            self._run_sources(command)
        if stage in self._waiting:
            self._deliver(self._waiting.pop(stage))
        if self._stage is None:
            while self.step():
                pass
        for operator in operators:
            operator.end_epoch()

    def _run_sources(self, command: Command) -> None:
        sources, between = self._parts.sources, self._between
        deadline = time.monotonic() + command.max_millis / 1000
        for node, operator in sources:
            assigned = command.assignments.get(node)
            operator.run(
                Budget(
                    records=max(1, command.max_records // len(sources)),
                    deadline=deadline,
                    wait=command.wait_millis / 1000,
                    settles=command.checkpoint is not None,
                    payload=None if assigned is None else assigned[self.index],
                    between_chunks=between,
                )
            )

    def _deliver(self, arrived: list[tuple[Address, list[bytes]]]) -> None:
        """Deliver frames to their channels in turn, so that no channel runs an epoch ahead of the others."""
        queues = deque((address, deque(frames)) for address, frames in sorted(arrived))
        between = self._between
        while queues:
            address, frames = queues.popleft()
            frame, received = frames.popleft(), self._traffic_into(address[0])
            records = deliver(frame, self.channels[address])
            received.bytes += len(frame)
            received.records += records
            self.measures.add_arrivals(address[0], records)
            if frames:
                queues.append((address, frames))
            between()

    @property
    def _between(self) -> Callable[[], None]:
        """The function to call between two steps. It does nothing if clients cannot look anything up."""
        return self.between_steps if self.queryables else _nothing_between

    def _traffic_into(self, edge: int) -> Traffic:
        return self.activity.received[self.plan.nodes[self.plan.edges[edge].target].chain]

    def step(self) -> bool:
        """Run one step of the first operator that finishes in steps, upstream first. Return True if there was one."""
        return any(gate.step() for gate in self._parts.upstream_first)

    # --- one stage by itself ---
    def run_epoch(self, command: Command, arrived: Sequence[tuple[Address, list[bytes]]] = ()) -> None:
        """Run an epoch of a slot with one stage. The output that operators hold back to the end is left to `step`."""
        assert self._stage is not None
        self.begin(command)
        for address, frames in arrived:
            self._hold(address, frames)
        self._drive(self._stage)

    def has_read(self) -> bool:
        """Return True if every source has ended."""
        return all(source.finished for _, source in self._parts.sources)

    def waiting(self) -> int:
        """Return the approximate number of records that wait in the writers."""
        return sum(writer.waiting() for writer in self.writers.values())

    def take_output(self) -> dict[tuple[int, int], list[tuple[Address, list[bytes]]]]:
        """Take the frames to be sent, by target stage and slot."""
        taken: dict[tuple[int, int], list[tuple[Address, list[bytes]]]] = {}
        for edge, writer in self.writers.items():
            stage = self.plan.nodes[self.plan.edges[edge].target].stage
            for target, frames in writer.take().items():
                taken.setdefault((stage, target), []).append(((edge, self.index), frames))
        return taken

    def begun(self) -> list[Begun]:
        """Return the items that sinks would leave behind if this process were lost.

        No checkpoint of BATCH mode holds them.
        """
        return [(each.context.uid, begun) for each in self._all_operators if (begun := each.begun()) is not None]

    def take_results(self) -> list[tuple[str, Any]]:
        """Take the results of sinks for the driver."""
        results, self._results = self._results, []
        return results

    def _outgoing(self, stage: int) -> list[bytes]:
        """Return one blob per slot. Frames for a later stage of this slot do not travel."""
        parcels: list[list[tuple[Address, list[bytes]]]] = [[] for _ in range(self.plan.slots)]
        for address, writer, stays in self._parts.leaving[stage]:
            for target, frames in writer.take().items():
                if stays:
                    self._hold(address, frames)
                else:
                    parcels[target].append((address, frames))
        return [pickle.dumps(parcel, pickle.HIGHEST_PROTOCOL) if parcel else _NOTHING for parcel in parcels]

    def report(self) -> Report:
        """Return the answer to the command, after the last stage."""
        self._take_checkpoint()
        results = self.take_results()
        committables, self._committables = self._committables, []
        metrics = self._metrics()
        operators = list(self.operators.values())
        due = [when for operator in operators if (when := operator.next_due()) is not None]
        sources = [source for _, source in self._parts.sources]
        self.bell.arm()
        if self.command is not None and not self.command.paused:
            for source in sources:
                source.watch()
        answers = self.checkpoints.answers()
        backlog = any(source.backlog for source in sources)
        self.activity.end_epoch(backlog)
        return Report(
            slot=self.index,
            epoch=self.epoch,
            process=os.getpid(),
            place=self._place,
            finished=all(gate.finished for gate in self.gates.values()) and all(s.finished for s in sources),
            backlog=backlog,
            news=self.bell.works
            and (self.checkpoints.has_answers() or any(operator.has_news() for operator in operators)),
            rings=self.bell.works,
            read=max((source.read for source in sources), default=0),
            waits_for_input=any(source.waits_for_input() for source in sources),
            next_due=min(due, default=None),
            results=results,
            committables=committables,
            watermarks={o.context.uid: o.current_watermark for o in operators},
            alignment=dict(self.alignment.reached),
            metrics=metrics,
            activity=self.activity.figures(),
            operators=self.measures.operators(self._nodes, self.gates),
            usage=self.measures.usage(self.tables),
            described=self.measures.new_descriptions(),
            acknowledgements=answers,
            uploading=self.checkpoints.uploading(),
            queryable=self.queryables.news(),
            failure=self.failure,
        )

    def look(self, lookup: Lookup) -> Findings:
        """Answer questions of clients from the cut at the end of the last epoch. Nothing changes by it."""
        return Findings(self.index, self.deployment.attempt, self.epoch, self.queryables.answers(lookup))

    def look_within(self, lookup: Lookup) -> Findings:
        """Answer questions of clients between two steps of the running epoch."""
        self._looks += 1
        found = self.queryables.answers(lookup)
        return Findings(self.index, self.deployment.attempt, self.epoch - 1, found, self._looks)

    def _take_checkpoint(self) -> None:
        if self.command is not None and self.command.checkpoint is not None and self.failure is None:
            order = self.command.checkpoint
            try:
                self.checkpoints.take(order, lambda extent: self._snapshots(order, extent))
            except JobDisplaced as displaced:
                self.failure = failure_of(displaced, "the engine", "-", self.index)

    def _snapshots(self, order: CheckpointOrder, extent: Extent) -> list[State]:
        """Return the state of every operator of this slot, upstream first."""
        states: list[State] = []
        for node in self._nodes:
            operator = self.operators[node.id]
            into = SubtaskSnapshot(node.uid, order.number, order.timestamp, extent)
            try:
                operator.snapshot(into)
                if node.id in self.gates:
                    into.own("_gate", tuple(self.gates[node.id].snapshot()))
                edges = [edge.id for edge in self.plan.outgoing[node.id] if edge.id in self.writers]
                into.own("_turns", {edge: self.writers[edge].turn() for edge in edges})
                states.extend(into.finished())
            except USER_ERRORS as error:
                raise operator.failure(error, []) from error
        self._check_prepared(order.number)
        return states

    def _check_prepared(self, checkpoint: int) -> None:
        """Discard the items just prepared if the job has a new owner, which knows only those prepared before."""
        committing = [operator for operator in self._all_operators if operator.commits]
        if not committing:
            return
        try:
            self._check_owner()
        except JobDisplaced:
            for operator in committing:
                operator.abandon(checkpoint)
            raise
        except StorageError as error:
            raise OperatorFailed(failure_of(error, "the checkpoint's storage", "-", self.index)) from error

    def _metrics(self) -> dict[str, Any]:
        """Return the metrics that have changed. A gauge is user code; if it fails, the slot fails."""
        try:
            return self.measures.changes()
        except USER_ERRORS as error:
            self.failure = self.failure or failure_of(error, "a gauge", "-", self.index)
            return {}


def _nothing_between() -> None:
    """Do nothing between two steps."""
