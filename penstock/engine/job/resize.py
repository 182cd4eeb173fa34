"""The signal that a JobDriver ends, and its job goes on in the same process with another parallelism."""

from __future__ import annotations

from penstock.errors import JobSuspended


class Resized(JobSuspended):
    """The error that ends a driver whose job goes on with another number of slots. Programs do not see it."""

    def __init__(self, why: str, slots: int | None, parallelism: int | None = None) -> None:
        """`slots` limits the number of slots, and `parallelism` is the job's from now on; None leaves it as it is."""
        super().__init__(why)
        self.slots = slots
        self.parallelism = parallelism
