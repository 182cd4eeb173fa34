"""A limit for guessing tokens: after several wrong tokens, an address must wait before the next one is checked.

The wait doubles with each wrong token. While it lasts, no token of that address is compared, because the answer would
reveal a valid token. A valid token after the wait resets the count.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

FREE = 10
"""Number of wrong tokens in a row that cause no wait."""
FIRST_SECONDS = 1.0
FORGOTTEN_SECONDS = 600.0
MOST_ADDRESSES = 4096
"""Number of addresses that are remembered. The address that was quiet for longest is forgotten first."""


@dataclass
class _Client:
    failures: int = 0
    last: float = 0.0
    until: float = 0.0


class RateLimit:
    """Counts wrong tokens by the address that sent them."""

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Create a limit. `longest` is the longest wait in seconds; 0 means no wait."""
        self._longest = longest
        self._clock = clock
        self._clients: OrderedDict[str, _Client] = OrderedDict()

    def wait(self, address: str) -> float:
        """Return the time, in seconds, for which no token of this address is checked."""
        client = self._clients.get(_network_of(address))
        return 0.0 if client is None else max(0.0, client.until - self._clock())

    def record_failure(self, address: str) -> None:
        """Count a wrong token of this address."""
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
        """Forget the wrong tokens of this address."""
        self._clients.pop(_network_of(address), None)


def _network_of(address: str) -> str:
    """Return an IPv4 address, or the network of an IPv6 address: one client usually has all addresses of a network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))
