"""StatsD: a datagram for every value, `name:value|g`."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, ClassVar

from penstock.metrics.samples import Sample
from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions, readings


class StatsDReporter(Reporter):
    """Reporter that sends all values as gauges, as Flink does, because it knows totals of counters, not increments."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("host", "port")

    def check(self, options: ReporterOptions) -> None:
        options.number("port", 8125)

    def open(self, context: ReporterContext) -> None:
        self.context = context
        where = context.options.text("host", "localhost"), context.options.number("port", 8125)
        self._address: Any
        family, kind, _, _, self._address = socket.getaddrinfo(*where, type=socket.SOCK_DGRAM)[0]
        self._socket = socket.socket(family, kind)

    def report(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            name = _clean(self.context.full_name(sample))
            for part, value in readings(sample).items():
                full = f"{name}{self.context.delimiter}{part}" if part else name
                # A value with a sign changes a gauge by that amount, so a gauge is set to zero before a negative value.
                for line in ([f"{full}:0|g"] if value < 0 else []) + [f"{full}:{value}|g"]:
                    self._socket.sendto(line.encode(), self._address)

    def close(self) -> None:
        self._socket.close()


def _clean(name: str) -> str:
    """Replace the characters of a name that would end it, and blanks."""
    return "".join("-" if character in ":|@\n\t #" else character for character in name)
