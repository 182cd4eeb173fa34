"""A task of a BATCH job, in one of Spark's Python workers."""

from __future__ import annotations

import gc
import os
import pickle
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from penstock.base.pickling import dumps
from penstock.engine.batch.stage import Assignments, BatchStage, InputCut, Sent
from penstock.engine.messages.commands_and_reports import Deployment
from penstock.engine.observe.log_capture import capture_logs
from penstock.engine.operators.sinks.committing import Begun
from penstock.engine.records.failures import USER_ERRORS, Failure, OperatorFailed, failure_of
from penstock.spark.links.encryption import Identity
from penstock.spark.links.links import Address, LinkLost, Tag, connect, receive, send
from penstock.spark.links.side_links import LateSideLink
from penstock.spark.slots.guests import as_guest
from penstock.spark.slots.worker import GC_THRESHOLDS, move_in


@dataclass(frozen=True)
class StageTask:
    """The function of a stage's tasks. Spark calls it with the number of a slot and the parcels for that slot."""

    stage: int
    deployment: bytes
    driver: Address
    secret: bytes
    identity: Identity | None

    def __call__(self, index: int, elements: Iterator[Any]) -> Iterator[Sent]:
        try:
            with as_guest():
                yield from self._run(index, _mark_input_errors(elements))
        except RunLost as lost:
            # Spark handles this error by itself.
            raise lost.error from None
        except InputCut:
            # PySpark ends the iterator where an executor is lost, and finds the cause when a task fails.
            raise
        except OperatorFailed as failed:
            self._tell(replace(failed.failure, stage=self.stage))
        except USER_ERRORS as error:
            self._tell(replace(failure_of(error, "the engine", "-", index), stage=self.stage))

    def _run(self, index: int, elements: Iterator[Any]) -> Iterator[Sent]:
        deployment: Deployment = pickle.loads(self.deployment)
        move_in(deployment)
        deployment.spill_folder = _spill_folder()
        gc.set_threshold(*GC_THRESHOLDS)
        assigned = self._read_assignments(index, elements) if self.stage == 0 else {}
        links: list[socket.socket] = []
        stage = BatchStage(index, deployment, self.stage, lambda begun: links.append(self._announce(begun)))
        side = LateSideLink(index, self._connect)
        with closing_all(links), capture_logs(index, deployment, side.line):
            try:
                yield from stage.run((parcel for _, parcel in elements), assigned)
            finally:
                side.finish()

    def _connect(self, hello: bytes) -> socket.socket:
        driver = connect(self.driver, self.secret, self.identity)
        send(driver, Tag(0, -1, self.stage), hello)
        return driver

    def _read_assignments(self, index: int, elements: Iterator[Any]) -> Assignments:
        for _, assigned in elements:
            return pickle.loads(assigned)  # type: ignore[no-any-return]
        raise InputCut(f"slot {index} has not received its input splits")

    def _announce(self, begun: list[Begun]) -> socket.socket:
        """Tell the driver that sinks have begun work, and wait for its answer.

        A driver that is gone, or cancels the job, does not answer. The returned link stays open as long as this task
        works on the data of its sinks.
        """
        try:
            driver = connect(self.driver, self.secret, self.identity)
            send(driver, Tag(0, -1, self.stage), dumps(begun))
            receive(driver)
        except LinkLost as error:
            raise RunLost(error) from error
        return driver

    def _tell(self, failure: Failure) -> NoReturn:
        """Report a failure to the driver, which cancels the job. Wait until then, or Spark would run the task again."""
        try:
            driver = connect(self.driver, self.secret, self.identity)
            send(driver, Tag(0, -1, self.stage), pickle.dumps(failure))
            receive(driver)
        except LinkLost:
            pass
        raise RuntimeError(failure.describe())


class RunLost(BaseException):
    """Raised if a run of a task cannot read its input or cannot reach the driver. The program is not at fault."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@contextmanager
def closing_all(links: list[socket.socket]) -> Iterator[None]:
    """Close the sockets of the list at the end of the block."""
    try:
        yield
    finally:
        for link in links:
            link.close()


def _mark_input_errors(elements: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from elements
    except Exception as error:
        raise RunLost(error) from error


def _spill_folder() -> str | None:
    """Return the first folder of Spark's own temporary files, or None if Spark names none."""
    folders = [folder for folder in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(folder)]
    return folders[0] if folders else None
