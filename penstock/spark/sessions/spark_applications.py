"""The Spark application of a job, and its replacement when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.spark.sessions.cached_files import upload
from penstock.spark.sessions.session import replace_session


class Application:
    """The current Spark session of one job, which can be replaced."""

    def __init__(self, create: Callable[[], SparkSession]) -> None:
        self._create = create
        self.session = create()
        self.uploaded: Sequence[str] = ()
        """Names of the files that slots need from it."""

    def renew(self) -> SparkContext:
        """Replace an application that has ended, and return the new context. Raise ConfigurationError."""
        self.session = replace_session(self.session, self._create)
        upload(self.session, self.uploaded)
        return self.session.sparkContext
