"""The id of a job, under the name of PyFlink's module."""

from penstock.common.job import JobID

__all__ = ["JobID"]
