"""Text files, one record a line."""

from penstock.formats.text_files import TextLineFormat

__all__ = ["TextLineFormat"]
