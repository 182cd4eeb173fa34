"""The status of a job, under the name of PyFlink's module."""

from penstock.common.job import JobStatus

__all__ = ["JobStatus"]
