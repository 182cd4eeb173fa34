"""A job as seen from outside: its id, its status, its result, and the client that controls it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from penstock.base.arguments import check_arguments
from penstock.common.completable_future import CompletableFuture

if TYPE_CHECKING:
    from penstock.base.display.live_picture import LivePicture

__all__ = ["JobClient", "JobExecutionResult", "JobID", "JobStatus", "RunningJob"]


@check_arguments
@dataclass(frozen=True, order=True, repr=False)
class JobID:
    """32 hexadecimal digits, random unless given."""

    hex: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{32}", self.hex):
            raise ValueError(f"a job id has 32 hexadecimal digits, not {self.hex!r}")

    @staticmethod
    def from_hex_string(hex_string: str) -> JobID:
        """Return the id that has this text."""
        return JobID(hex_string)

    def to_hex_string(self) -> str:
        """Return the id as text."""
        return self.hex

    def __str__(self) -> str:
        return self.hex

    def __repr__(self) -> str:
        return f"JobID({self.hex!r})"


class JobStatus(Enum):
    """State of a job that runs or has ended."""

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9

    def is_globally_terminal_state(self) -> bool:
        """Return True if the job has ended for good: failed, cancelled or finished."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Return True if the job has ended here. A suspended job may continue elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()


@check_arguments
class JobExecutionResult:
    """Result of a job that has finished."""

    def __init__(self, job_id: JobID, net_runtime: int = 0, accumulators: dict[str, Any] | None = None) -> None:
        self._job_id = job_id
        self._net_runtime = net_runtime
        self._accumulators = dict(accumulators or {})
        self._draw: Callable[[], str] | None = None
        """Function that returns what the job has done as HTML."""

    def get_job_id(self) -> JobID:
        """Return the id of the job."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """Return the time from the first epoch to the last, in milliseconds."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Return the value of an accumulator, or None if the job had none with this name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Return the values of all accumulators, by name."""
        return dict(self._accumulators)

    def __repr__(self) -> str:
        metrics = f", accumulators={self._accumulators}" if self._accumulators else ""
        return f"JobExecutionResult(job_id={self._job_id}, net_runtime={self._net_runtime} ms{metrics})"

    def _repr_html_(self) -> str | None:
        return None if self._draw is None else self._draw()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the function, which needs the job."""
        return {**vars(self), "_draw": None}


class RunningJob(Protocol):
    """The part of a job that a client needs."""

    @property
    def job_id(self) -> JobID: ...

    def status(self) -> JobStatus: ...

    def cancel(self) -> None: ...

    def result(self, timeout: float | None = None) -> JobExecutionResult:
        """Wait for the end of the job. If it failed, raise the error."""
        ...

    def accumulators(self) -> dict[str, Any]: ...

    def trigger_savepoint(self, directory: str | None, stop: bool, drain: bool) -> str:
        """Write a savepoint and return its path. With `stop` the job ends after it; `drain` fires timers first."""
        ...

    @property
    def queryable_address(self) -> tuple[str, int] | None: ...

    def query(self, request: Any) -> Future[Any]: ...

    def widget(self, seconds: float) -> LivePicture:
        """Show the job in a notebook."""
        ...

    def bundle(self) -> Mapping[str, str]:
        """Return the present view of the job for a notebook."""
        ...


@check_arguments
class JobClient:
    """Controls one job. Every method returns a future, because it may have to ask the job."""

    def __init__(self, job: RunningJob) -> None:
        self._job = job

    def get_job_id(self) -> JobID:
        """Return the id of the job."""
        return self._job.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return the present status of the job."""
        return CompletableFuture.submit(self._job.status)

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job. The future is done when it is cancelled."""
        return CompletableFuture.submit(self._job.cancel)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """End the job after a savepoint. Advancing to the end of time first fires every remaining event-time timer."""
        stop = partial(self._job.trigger_savepoint, savepoint_directory, True, bool(advance_to_end_of_event_time))
        return CompletableFuture.submit(stop)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Write a savepoint while the job continues. The result is its path."""
        return CompletableFuture.submit(partial(self._job.trigger_savepoint, savepoint_directory, False, False))

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return the present values of all accumulators, by name."""
        return CompletableFuture.submit(self._job.accumulators)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result of the job once it has ended. If the job failed, reading the result raises the error."""
        return CompletableFuture.submit(self._job.result)

    def query(self, request: Any) -> Future[Any]:
        """Look up queryable state in this process. A QueryRequest gives a QueryAnswer (`penstock.queryable`)."""
        return self._job.query(request)

    def get_queryable_state_address(self) -> tuple[str, int] | None:
        """Return host and port for a QueryableStateClient, or None unless queryable-state.enable is set."""
        return self._job.queryable_address

    def widget(self, seconds: float = 1.0) -> LivePicture:
        """Show the job's graph with live rates below a notebook's cell.

        The graph is redrawn every `seconds` seconds until the job ends or `stop()` of the result is called. A
        client that is the value of a cell shows itself in this way.
        """
        return self._job.widget(seconds)

    def _ipython_display_(self) -> None:
        """Show the job below the cell. IPython calls this for the value of a cell."""
        self.widget()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        return self._job.bundle()

    def __repr__(self) -> str:
        return f"JobClient({self._job.job_id})"
