"""Why a query cannot run on Spark SQL."""

from __future__ import annotations


class Untranslatable(Exception):
    """A part of a plan has no form in Spark SQL; the message says which."""
