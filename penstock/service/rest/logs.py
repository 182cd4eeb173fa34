"""Answers with log files, whole or from an offset on. A name is looked up in a list, never used as a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from fastapi import Response
from starlette.responses import StreamingResponse

from penstock.service.rest.job_backend import LogFile
from penstock.service.rest.replies import PlainText, not_found

SIZE_HEADER = "x-log-size"
_PIECE = 1 << 18


def serve_log(files: Sequence[LogFile], output: bool, offset: int) -> Response:
    """Return the log, or with `output` the standard output. The answer is empty if the file does not exist yet."""
    for file in files:
        if file.name.endswith(".out") == output:
            return _from(file, offset)
    return PlainText(b"", headers={SIZE_HEADER: "0"})


def serve_log_by_name(files: Sequence[LogFile], name: str, offset: int) -> Response:
    """Return the file with this name. Raise a 404 error if it is not in the list."""
    for file in files:
        if file.name == name:
            return _from(file, offset)
    raise not_found("This file does not exist in the log directory.")


def _from(file: LogFile, offset: int) -> Response:
    """Return the content of the file from the offset on. A negative offset counts from the end."""
    try:
        opened = file.path.open("rb")
        size = opened.seek(0, 2)
    except OSError:
        raise not_found(f"The file {file.name} does not exist any more.") from None
    first = min(size, offset if offset >= 0 else max(0, size + offset))
    opened.seek(first)
    headers = {SIZE_HEADER: str(size), "content-length": str(size - first)}
    return StreamingResponse(_pieces(opened, size - first), media_type="text/plain", headers=headers)


def _pieces(opened: BinaryIO, length: int) -> Iterator[bytes]:
    """Yield exactly `length` bytes, even if the file grows or shrinks meanwhile. Zeros replace missing bytes."""
    with opened:
        while length > 0:
            piece = opened.read(min(_PIECE, length)) or b"\0" * min(_PIECE, length)
            length -= len(piece)
            yield piece
