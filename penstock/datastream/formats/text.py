"""Text files with one record in each line."""

from penstock.formats.text_files import TextLineFormat

__all__ = ["TextLineFormat"]
