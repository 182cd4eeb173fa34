"""Exactly once for systems that cannot hold a transaction open until a checkpoint is complete."""

from penstock.connectors.committing.prepared_records import MARKERS_KEPT, Prepared, PreparingWriter

__all__ = ["MARKERS_KEPT", "Prepared", "PreparingWriter"]
