"""Keyed state: key groups, tables and the state objects that functions hold; and the state processor.

The state processor reads and writes whole savepoints, on Spark if they are large. It is in a layer above this package,
so its names are resolved when they are first used (PEP 562).
"""

from typing import TYPE_CHECKING

from penstock.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.spark.state_processor.reader import SavepointReader
    from penstock.spark.state_processor.writer import SavepointWriter

__all__ = ["SavepointReader", "SavepointWriter"]

if not TYPE_CHECKING:  # a type checker that saw it would let any misspelt name pass
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.spark.state_processor.reader": "SavepointReader",
            "penstock.spark.state_processor.writer": "SavepointWriter",
        },
    )
