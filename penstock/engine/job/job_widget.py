"""A widget that shows a job in a notebook, as a picture that is redrawn while the job runs."""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.display.live_picture import DRAWN_EVERY, LivePicture
from penstock.common.job import JobStatus
from penstock.engine.job.job_picture import bundle
from penstock.engine.job.job_record import JobRecord


class JobWidget(LivePicture):
    """A picture of a job below the cell that created it, until the job ends or `stop` is called."""

    def __init__(self, read: Callable[[], JobRecord], seconds: float = DRAWN_EVERY) -> None:
        self._read = read
        super().__init__(lambda: bundle(read()), self._has_ended, seconds)

    def _has_ended(self) -> bool:
        return JobStatus[self._read().status].is_terminal_state()
