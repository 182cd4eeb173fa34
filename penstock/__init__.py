"""Penstock: Flink's stateful stream processing for Python, on Apache Spark."""

__version__ = "0.2.0"
