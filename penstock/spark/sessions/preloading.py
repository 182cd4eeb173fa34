"""Modules that a task imports before it forks its slot, so that slots of this and later attempts start faster.

A task's process serves one program after the other. It therefore imports no module of a program, but only parts of
Penstock and libraries that they need. These must not start threads, because a forked process would not have them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module

PARTS = "penstock.datastream."
VARIABLE = "PENSTOCK_PRELOADED"
"""Environment variable of executors with the names of modules that the process imports which forks those of tasks."""
LIBRARIES = {
    "penstock.datastream.connectors.jdbc": (
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.dialects.sqlite",
        "psycopg",
    ),
    "penstock.datastream.connectors.kafka": ("confluent_kafka.admin",),
}
"""Modules that a connector imports when it is opened, by connector."""


def modules_to_import() -> tuple[str, ...]:
    """Return the parts of Penstock that this process has imported, and the modules that they will import.

    The program's process calls this.
    """
    parts = sorted(name for name in sys.modules if name.startswith(PARTS))
    return (*parts, *(library for part in parts for library in LIBRARIES.get(part, ())))


def preload(names: Iterable[str]) -> None:
    """Import modules, and ignore failures. A slot that needs a missing module raises a better error."""
    for name in names:
        with suppress(Exception):
            import_module(name)
