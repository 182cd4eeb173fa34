"""Slows down whoever guesses tokens: after some wrong ones, an address has to wait before another is looked at.

The wait doubles with each wrong token. While it lasts, no token of that address is compared, since an answer to a right
one would tell it from wrong ones. A token that is right ends it all.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

FREE = 10
"""How many wrong tokens in a row cost nothing."""
FIRST_SECONDS = 1.0
FORGOTTEN_SECONDS = 600.0
MOST_ADDRESSES = 4096
"""How many addresses are remembered; the one that was quiet for longest goes first."""


@dataclass
class _Client:
    failures: int = 0
    last: float = 0.0
    until: float = 0.0


class RateLimit:
    """Wrong tokens, by the address that they came from."""

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`longest` is the longest wait in seconds; 0 for none at all."""
        self._longest = longest
        self._clock = clock
        self._clients: OrderedDict[str, _Client] = OrderedDict()

    def wait(self, address: str) -> float:
        """For how many seconds no token of this address is looked at."""
        client = self._clients.get(_network_of(address))
        return 0.0 if client is None else max(0.0, client.until - self._clock())

    def record_failure(self, address: str) -> None:
        if not self._longest:
            return
        now, key = self._clock(), _network_of(address)
        client = self._clients.setdefault(key, _Client())
        if now - client.last > FORGOTTEN_SECONDS:
            client.failures = 0
        client.failures, client.last = client.failures + 1, now
        if client.failures > FREE:
            client.until = now + min(self._longest, FIRST_SECONDS * 2 ** min(client.failures - FREE - 1, 20))
        self._clients.move_to_end(key)
        while len(self._clients) > MOST_ADDRESSES:
            self._clients.popitem(last=False)

    def record_success(self, address: str) -> None:
        self._clients.pop(_network_of(address), None)


def _network_of(address: str) -> str:
    """An address, or the part of an IPv6 address that names a network: whoever has one such address has them all."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))
