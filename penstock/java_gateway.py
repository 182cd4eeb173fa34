"""PyFlink's way into its Java process. There is none here: nothing of Flink runs in a JVM."""

from __future__ import annotations

from typing import Any

from penstock.base.absent_names import absent_object

__all__ = ["get_gateway"]

ADVICE = (
    "Penstock has no Java gateway. Set options with Configuration and env.configure(...), write sources, sinks "
    "and functions in Python, and use connectors that are Python packages"
)


def get_gateway() -> Any:
    """Return an object that can be passed around. Its use raises an error that names the alternative."""
    return absent_object("the Java gateway", ADVICE)
