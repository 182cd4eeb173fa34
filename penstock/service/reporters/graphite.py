"""Graphite: a line for every value, `name value seconds`, over TCP or UDP."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import ClassVar

from penstock.errors import ConfigurationError
from penstock.metrics.samples import Sample
from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions, readings

SECONDS = 10
LONGEST_DATAGRAM = 1400
"""Greatest size of a datagram, in bytes, that most networks carry in one piece."""


class GraphiteReporter(Reporter):
    """Reporter that connects anew for every report, so that it finds a server again after an outage."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("host", "port", "protocol")

    def check(self, options: ReporterOptions) -> None:
        options.needed("host")
        options.number("port", 2003)
        if options.text("protocol", "TCP").upper() not in ("TCP", "UDP"):
            raise ConfigurationError(f"option {options.full_name('protocol')} must be TCP or UDP")

    def open(self, context: ReporterContext) -> None:
        self.context = context
        self._where = context.options.needed("host"), context.options.number("port", 2003)
        self._udp = context.options.text("protocol", "TCP").upper() == "UDP"

    def report(self, samples: Sequence[Sample]) -> None:
        lines = self._lines(samples, int(time.time()))
        if self._udp:
            self._send_datagrams(lines)
        else:
            with socket.create_connection(self._where, SECONDS) as link:
                link.sendall(b"".join(lines))

    def _lines(self, samples: Sequence[Sample], now: int) -> list[bytes]:
        return [
            f"{self._name(sample, part)} {value} {now}\n".encode()
            for sample in samples
            for part, value in readings(sample).items()
        ]

    def _name(self, sample: Sample, part: str) -> str:
        name = self.context.full_name(sample) + (f"{self.context.delimiter}{part}" if part else "")
        return "-".join(name.split())

    def _send_datagrams(self, lines: list[bytes]) -> None:
        family, kind, _, _, address = socket.getaddrinfo(*self._where, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as link:
            gathered = b""
            for line in [*lines, b""]:
                if gathered and (not line or len(gathered) + len(line) > LONGEST_DATAGRAM):
                    link.sendto(gathered, address)
                    gathered = b""
                gathered += line
