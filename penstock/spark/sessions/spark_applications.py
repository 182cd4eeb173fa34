"""The Spark application of a job, and the one that takes its place when the first has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.spark.sessions.cached_files import upload
from penstock.spark.sessions.session import replace_session


class Application:
    """Creates sessions for one job, one after the other."""

    def __init__(self, create: Callable[[], SparkSession]) -> None:
        self._create = create
        self.session = create()
        self.uploaded: Sequence[str] = ()
        """The files that slots need from it."""

    def renew(self) -> SparkContext:
        """Put another application in place of one that has ended, and return its context. Raises ConfigurationError."""
        self.session = replace_session(self.session, self._create)
        upload(self.session, self.uploaded)
        return self.session.sparkContext
