"""The interface between file formats and a FileSource: how bytes become records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import IO, Any, Generic

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import OUT
from penstock.common.typeinfo import TypeInformation

Reject = Callable[[Any, Exception, str], None]
"""Function that is called with a record that cannot be decoded, the error, and the record's position.

It raises an error, or returns to skip the record.
"""


class FormatReader(ABC):
    """Reads the records of one piece of a file."""

    finished = False
    """True once the last record has been read."""

    @abstractmethod
    def read(self, most: int) -> Sequence[Any]:
        """Return the next records, at most `most`.

        The result is empty only at the end, or if all of them were rejected. It is a list, or a `BatchOfRows` if the
        format is columnar.
        """

    @abstractmethod
    def position(self) -> Any:
        """Return the position from which another reader of the same piece would continue, as plain data."""

    def close(self) -> None:  # noqa: B027 - the file is closed by its owner
        """Release everything except the file itself."""


class FileFormat(ABC, Generic[OUT]):
    """A format as plain data."""

    splittable = False
    """True if a file may be read in pieces. A record then belongs to the piece in which its first byte lies."""

    @abstractmethod
    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        """Read the bytes from `start` to `end` of a file; from the beginning if `position` is None."""

    def get_produced_type(self) -> TypeInformation[OUT] | None:
        """Return the type of the records, if it is known."""
        return None


@check_arguments
class StreamFormat(FileFormat[OUT]):
    """A format that is read record by record."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat[str]:
        """Read each line as one record, without its line end."""
        from penstock.formats.text_files import TextLineFormat

        return TextLineFormat(charset_name)


class BulkFormat(FileFormat[OUT]):
    """A format that is read in batches of records."""
