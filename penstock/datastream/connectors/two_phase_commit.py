"""Sinks into systems with transactions that can be prepared now and committed later, perhaps by another process."""

from penstock.connectors.committing.two_phase_commit import (
    TwoPhaseCommitSink,
    TwoPhaseCommitSinkFunction,
    as_sink,
)

__all__ = [
    "TwoPhaseCommitSink",
    "TwoPhaseCommitSinkFunction",
    "as_sink",
]
