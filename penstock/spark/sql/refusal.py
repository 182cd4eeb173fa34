"""The error for queries that cannot run on Spark SQL."""

from __future__ import annotations


class Untranslatable(Exception):
    """Raised if a part of a plan has no form in Spark SQL. The message names the part."""
