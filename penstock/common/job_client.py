"""A running job, under the name of PyFlink's module."""

from penstock.common.job import JobClient

__all__ = ["JobClient"]
