"""Text files, one record a line."""

from penstock.formats.text import TextLineFormat

__all__ = ["TextLineFormat"]
