"""The process of an executor that forks its Python processes. Unlike Spark's own daemon, it imports Penstock first.

Spark starts it (`spark.python.daemon.module`) in sessions that Penstock creates. It runs as long as the executor, so a
new slot needs only a fork, and no import.
"""

from __future__ import annotations

import gc
import os

import pyspark.worker  # noqa: F401  every process would import it after its fork
from pyspark.daemon import manager

import penstock.spark.slots.worker  # noqa: F401
from penstock.spark.sessions.preloading import VARIABLE, preload


def main() -> None:
    """Import modules, and serve Spark until the executor ends."""
    preload(name for name in os.environ.get(VARIABLE, "").split(",") if name)
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
