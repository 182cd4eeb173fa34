"""Lines from a TCP socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

from penstock.api.functions.source_functions import SourceContext, SourceFunction
from penstock.base.arguments import check_arguments


@check_arguments
class SocketTextSource(SourceFunction):
    """Connects to a server and emits the text that it sends, cut at a delimiter.

    If the connection cannot be made or breaks, the source connects again up to `max_retries` times, half a second
    apart; -1 means for ever. When the server closes the connection and no retry is left, the source ends. Text that the
    server sends while the source is not connected is lost, because a socket cannot be read twice.
    """

    def __init__(self, hostname: str, port: int, delimiter: str = "\n", max_retries: int = 0) -> None:
        if not 0 < port < 65536:
            raise ValueError(f"a port is a number from 1 to 65535, not {port}")
        if not delimiter:
            raise ValueError("the delimiter is empty")
        self.hostname = hostname
        self.port = port
        self.delimiter = delimiter.encode()
        self.max_retries = max_retries

    def open(self, runtime_context: Any) -> None:
        self._cancelled = threading.Event()

    def run(self, ctx: SourceContext) -> None:
        left = self.max_retries
        while not self._cancelled.is_set():
            try:
                self._read(ctx)
                if left == 0:
                    return
            except OSError:
                if left == 0 and not self._cancelled.is_set():
                    raise
            left -= 1 if left > 0 else 0
            self._cancelled.wait(0.5)

    def cancel(self) -> None:
        self._cancelled.set()

    def _read(self, ctx: SourceContext) -> None:
        with socket.create_connection((self.hostname, self.port), timeout=5) as connection:
            connection.settimeout(0.5)
            pending = b""
            for received in self._pieces(connection):
                *lines, pending = (pending + received).split(self.delimiter)
                for line in lines:
                    ctx.collect(self._text(line))
            if pending:
                ctx.collect(self._text(pending))

    def _pieces(self, connection: socket.socket) -> Iterator[bytes]:
        while not self._cancelled.is_set():
            try:
                received = connection.recv(65536)
            except TimeoutError:
                continue
            if not received:
                return
            yield received

    def _text(self, line: bytes) -> str:
        if self.delimiter == b"\n":
            line = line.removesuffix(b"\r")
        return line.decode("utf-8", "replace")
