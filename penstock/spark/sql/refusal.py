"""Queries that cannot run on Spark SQL: the error while they are translated, and the answer."""

from __future__ import annotations

from dataclasses import dataclass


class Untranslatable(Exception):
    """Raised if a part of a plan has no form in Spark SQL. The message names the part."""


@dataclass(frozen=True)
class Refused:
    """A query that runs on our own operators."""

    reason: str
