"""Servers as pytest fixtures: started on first use, removed at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TypeVar

import pytest

from tests.services.service import NotInstalled, Service

S = TypeVar("S", bound=Service)


def started(service: S) -> Iterator[S]:
    """A running server, for a fixture to `yield from`.

    Its tests are left out where it is not installed and cannot be fetched, unless PENSTOCK_REQUIRE_SERVICES is set.
    """
    try:
        service.install()
    except NotInstalled as missing:
        service.remove()
        if os.environ.get("PENSTOCK_REQUIRE_SERVICES"):
            raise
        # A user without the package can still run all other tests; the reason says how to get it.
        pytest.skip(str(missing))
    try:
        service.start()
        yield service
    finally:
        service.remove()
