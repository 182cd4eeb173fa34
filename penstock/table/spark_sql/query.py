"""A query on Spark SQL: its DataFrame, the job that computes it, and its rows."""

from __future__ import annotations
