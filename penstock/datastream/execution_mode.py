"""The execution mode of a job: as a stream or as a batch."""

from penstock.api.settings.execution_mode import RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]
