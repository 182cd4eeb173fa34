"""What a task imports before it forks its slot, so that neither this slot nor those of later attempts have to.

A task's process is used for one program after the other. So it imports no module of a program: only parts of Penstock,
and libraries that they need. These must not start threads, because a forked process would not have them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module

PARTS = "penstock.datastream."
LIBRARIES = {
    "penstock.datastream.connectors.jdbc": (
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.dialects.sqlite",
        "psycopg",
    ),
    "penstock.datastream.connectors.kafka": ("confluent_kafka.admin",),
}
"""By connector: what it imports when it is opened."""


def preloaded_modules() -> tuple[str, ...]:
    """Asked in the program's process: the parts of Penstock that it has imported, and what they will import."""
    parts = sorted(name for name in sys.modules if name.startswith(PARTS))
    return (*parts, *(library for part in parts for library in LIBRARIES.get(part, ())))


def preload(names: Iterable[str]) -> None:
    """Import what can be imported. If a slot needs a module that cannot, it raises a better error."""
    for name in names:
        with suppress(Exception):
            import_module(name)
