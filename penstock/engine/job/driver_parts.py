"""The parts of sources and sinks that run on the driver: enumerators that hand out work, and global committers."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock import errors
from penstock.base.pickling import dumps_by_value
from penstock.connectors.source_api import GlobalCommitter
from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.operators.sinks.committing import (
    AT_THE_END,
    Begun,
    CommittingSink,
    abort_at_the_end,
    commit_at_the_end,
)
from penstock.engine.operators.sources.source_operator import Enumerator, SourceOperator
from penstock.engine.records.elements import join_receivers
from penstock.engine.records.failures import USER_ERRORS, Failure, failure_of
from penstock.errors import JobFailed, PenstockError
from penstock.graph.plan import Node, Plan

log = logging.getLogger("penstock.job")


class DriverParts:
    """The enumerators and committers of one job. An error in one of them names the operator that it belongs to."""

    def __init__(
        self,
        plan: Plan,
        news: Callable[[], None] = lambda: None,
        job_id: str = "",
        now: Callable[[], int] | None = None,
    ) -> None:
        """`news` is called when an enumerator has found work. `now` replaces the wall clock for enumerators."""
        self._plan = plan
        self._now = now
        self._job_id = job_id
        self._news = news
        self._enumerators: dict[int, Enumerator] = {}
        self._committers: dict[str, GlobalCommitter] = {}
        self._waiting: dict[tuple[int, str], list[Any]] = {}
        self._begun: dict[str, list[list[Any]]] = {}
        """Uncommitted items that the writers of a BATCH job have begun: a list for each writer, by uid of the sink."""

    def open(self, positions: dict[str, Any]) -> None:
        """Create the parts again. `positions` holds the positions of enumerators by source uid."""
        self.close()
        for node in self._plan.nodes:
            operator = node.operator
            if isinstance(operator, SourceOperator):
                with _attribute_errors(node):
                    self._enumerate(node, operator.source, positions)
            elif isinstance(operator, CommittingSink) and operator.sink.commits_globally:
                with _attribute_errors(node):
                    self._committers[node.uid] = operator.sink.create_global_committer()

    def _enumerate(self, node: Node, source: Any, positions: dict[str, Any]) -> None:
        enumerator = source.enumerator()
        if enumerator is not None:
            self._enumerators[node.id] = enumerator
            enumerator.news = self._news
            if self._now is not None:
                enumerator.keep_time(self._now)
            if node.uid in positions:
                enumerator.resume(positions[node.uid])

    # --- sources ---
    def assignments(self, max_records: int) -> dict[int, list[Any]]:
        """Return the work of each source for this epoch: a payload for each subtask, by source node."""
        assigned = {}
        for number, enumerator in self._enumerators.items():
            node = self._plan.nodes[number]
            with _attribute_errors(node):
                assigned[number] = enumerator.assign(node.parallelism, max_records)
        return assigned

    def has_more(self) -> bool:
        """Return True if an enumerator has more to hand out at once."""
        return any(not enumerator.exhausted for enumerator in self._enumerators.values())

    def due_in(self) -> float | None:
        """Return the seconds until an enumerator wants to be asked again, or None."""
        return min((due for e in self._enumerators.values() if (due := e.due_in()) is not None), default=None)

    def positions(self) -> dict[str, Any]:
        """Return the enumerators' positions after the assignments of this epoch, by source uid."""
        return {self._plan.nodes[node].uid: e.position() for node, e in self._enumerators.items()}

    def checkpoint_complete(self, checkpoint: int) -> None:
        """Notify the enumerators of a published checkpoint."""
        for number, enumerator in self._enumerators.items():
            with _attribute_errors(self._plan.nodes[number]):
                enumerator.checkpoint_complete(checkpoint)

    # --- sinks ---
    def begun(self, begun: list[Begun]) -> None:
        """Note the items that the sinks of a BATCH job's subtask have begun. A lost subtask begins items again."""
        for uid, items in begun:
            self._begun.setdefault(uid, []).append(items)

    def commit(self, reports: list[Report]) -> None:
        """Commit the slots' committables, one checkpoint after the other, before a later checkpoint can complete.

        In a job without checkpoints, slots hand committables over when they finish, and the commit waits for the last
        slot. A BATCH job commits only here, so that a failed attempt of a task or of the job has committed nothing.
        """
        for report in reports:
            for uid, checkpoint, items in report.committables:
                self._waiting.setdefault((checkpoint, uid), []).extend(items)
        over = all(report.finished for report in reports)
        due = sorted(entry for entry in self._waiting if entry[0] != AT_THE_END or over)
        for checkpoint, uid in due:
            node = self._node(uid)
            with _attribute_errors(node):
                self._commit(node, self._waiting.pop((checkpoint, uid)))

    def _commit(self, node: Node, items: list[Any]) -> None:
        if self._plan.batch:
            writers = self._begun.get(node.uid, [])
            begun = _join(writers) if len(writers) > node.parallelism else []
            commit_at_the_end(_copy_sink(node), self._context(node), items, begun)
            self._begun.pop(node.uid, None)
        if node.uid in self._committers:
            self._committers[node.uid].commit(items)

    def _undo(self) -> None:
        """Undo what the sinks of a BATCH job have begun, after a failed attempt or a failed commit."""
        begun, self._begun = self._begun, {}
        for uid, writers in begun.items():
            items = _join(writers)
            if items:
                node = self._node(uid)
                try:
                    abort_at_the_end(_copy_sink(node), self._context(node), items)
                except USER_ERRORS as error:
                    log.warning("what %s (uid %s) has begun was not undone: %s", node.name, uid, error)

    def _node(self, uid: str) -> Node:
        return next(node for node in self._plan.nodes if node.uid == uid)

    def _context(self, node: Node) -> OperatorContext:
        """Return the context for work that the driver does in place of all subtasks, as if there were only one."""
        return OperatorContext(
            name=node.name,
            uid=node.uid,
            subtask=0,
            parallelism=1,
            max_parallelism=node.max_parallelism,
            output=join_receivers([]),
            side_outputs={},
            clock=Clock(time.time_ns() // 1_000_000),
            job_id=self._job_id,
            job_name=self._plan.job_name,
            batch=self._plan.batch,
        )

    def close(self) -> None:
        parts: list[Enumerator | GlobalCommitter] = [*self._enumerators.values(), *self._committers.values()]
        self._enumerators, self._committers, self._waiting = {}, {}, {}
        for part in parts:
            part.close()
        self._undo()


def _copy_sink(node: Node) -> CommittingSink:
    """Return an unused copy of a node's sink."""
    copy: CommittingSink = pickle.loads(dumps_by_value(node.operator))
    return copy


def _join(writers: list[list[Any]]) -> list[Any]:
    return [item for items in writers for item in items]


@contextmanager
def _attribute_errors(node: Node) -> Iterator[None]:
    """Report errors inside the block as errors of a node's operator."""
    try:
        yield
    except USER_ERRORS as error:
        raise job_failed(failure_of(error, node.name, node.uid, 0)) from error


def job_failed(failure: Failure) -> JobFailed:
    """Return the exception for a failure. It is also an instance of the failure's own class if Penstock has that."""
    known = getattr(errors, failure.known_as, None) if failure.known_as else None
    kind = errors.job_failed_as(known) if known is not None and known is not PenstockError else JobFailed
    error = kind(
        failure.describe(),
        operator=failure.operator,
        uid=failure.uid,
        record=failure.record,
        cause=failure.traceback,
    )
    error.slot = failure.subtask
    return error
