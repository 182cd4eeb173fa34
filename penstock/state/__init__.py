"""Keyed state: key groups, tables and the state objects that functions hold; and the state processor.

The state processor reads and writes whole savepoints, on Spark where they are large. It stands above this package, so
its names are resolved when they are first used (PEP 562).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.savepoint_writer import SavepointWriter
    from penstock.spark.state_processor import SavepointReader

__all__ = ["SavepointReader", "SavepointWriter"]

_MODULE_OF = {
    "SavepointReader": "penstock.spark.state_processor",
    "SavepointWriter": "penstock.spark.savepoint_writer",
}

if not TYPE_CHECKING:  # a type checker that saw it would let any misspelt name pass

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value  # the next access does not come here
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
