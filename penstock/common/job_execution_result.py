"""The result of a job, under the name of PyFlink's module."""

from penstock.common.job import JobExecutionResult

__all__ = ["JobExecutionResult"]
