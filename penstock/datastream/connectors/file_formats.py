"""The interface between file formats and a FileSource."""

from penstock.formats.contracts import BulkFormat, FileFormat, FormatReader, Reject, StreamFormat

__all__ = ["BulkFormat", "FileFormat", "FormatReader", "Reject", "StreamFormat"]
