"""A bounded source of whole numbers, under PyFlink's name."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.arguments import check_arguments


@check_arguments
@dataclass(frozen=True)
class NumberSequenceSource:
    """Whole numbers from `start` to `end`, both included. Each subtask emits one run of them."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError(f"a sequence ends where it starts or later: {self.start} to {self.end}")
