"""How the bytes of a file become records: what a FileSource asks of a format."""

from penstock.formats.contracts import BulkFormat, FileFormat, FormatReader, Reject, StreamFormat

__all__ = ["BulkFormat", "FileFormat", "FormatReader", "Reject", "StreamFormat"]
