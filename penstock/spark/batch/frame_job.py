"""A DataFrame that is computed as a job. The job can be cancelled, and its rows come to this process."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.common.job import JobStatus
from penstock.engine.job.job_driver import EndedJob
from penstock.engine.job.job_view import JobView, StatusChange
from penstock.errors import JobCancelled
from penstock.graph.plan import Node, Plan
from penstock.spark.sessions.session import cancel_group, enter_group, in_session
from penstock.spark.sessions.versions import arrow_table_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

NAME = "Spark SQL"


class FrameJob(EndedJob):
    """A job that collects a DataFrame. It has no epochs, no checkpoints and no queryable state."""

    def __init__(
        self, job_id: str, name: str, frame: DataFrame, explained: Callable[[Exception], BaseException]
    ) -> None:
        """Create the job. `explained` turns an error of Spark into the error to raise."""
        self._job_id = job_id
        self._plan = Plan([Node(0, NAME, "spark-sql", "source", None, 1, 1)], [], True, name)
        self._changes: list[StatusChange] = []
        self._frame = frame
        self._explained = explained
        self._group = f"{job_id}-{secrets.token_hex(4)}"
        self._stopped = False
        self.table: pyarrow.Table | None = None
        self.is_running = True
        self._enter(JobStatus.CREATED)
        in_session(self)

    @property
    def view(self) -> JobView:  # type: ignore[override]
        return JobView(self._job_id, self._plan, self._changes[-1].status, tuple(self._changes))

    def _enter(self, status: JobStatus) -> None:
        self._changes.append(StatusChange(status, int(time.time() * 1000)))

    def run(self) -> None:
        """Compute the DataFrame in the job's thread, by which Spark recognises its jobs."""
        self._enter(JobStatus.RUNNING)
        enter_group(self._frame.sparkSession, self._group, self._plan.job_name)
        try:
            if self._stopped:
                raise JobCancelled("the job was cancelled")
            self.table = arrow_table_of(self._frame)
        except Exception as error:
            self._enter(JobStatus.CANCELED if self._stopped else JobStatus.FAILED)
            raise (JobCancelled("the job was cancelled") if self._stopped else self._explained(error)) from None
        finally:
            self.is_running = False
        self._enter(JobStatus.FINISHED)

    def stop(self) -> None:
        self._stopped = True
        cancel_group(self._frame.sparkSession, self._group)

    def suspend(self) -> None:
        self.stop()
