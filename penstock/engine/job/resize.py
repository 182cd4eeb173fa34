"""The signal that a JobDriver ends, and its job goes on in the same process with another parallelism."""

from __future__ import annotations

from penstock.errors import JobSuspended


class Resized(JobSuspended):
    """The error that ends a driver whose job goes on with another number of slots. Programs do not see it."""

    def __init__(self, why: str, slots: int) -> None:
        super().__init__(why)
        self.slots = slots
