"""The state processor, which reads and writes whole savepoints, and `dispose_savepoint`."""

from typing import TYPE_CHECKING

from penstock.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.engine.checkpoint.store import dispose_savepoint
    from penstock.spark.state_processor.savepoint_reader import SavepointReader
    from penstock.spark.state_processor.savepoint_writer import SavepointWriter

__all__ = ["SavepointReader", "SavepointWriter", "dispose_savepoint"]

if not TYPE_CHECKING:  # a type checker that saw it would let any misspelt name pass
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.engine.checkpoint.store": "dispose_savepoint",
            "penstock.spark.state_processor.savepoint_reader": "SavepointReader",
            "penstock.spark.state_processor.savepoint_writer": "SavepointWriter",
        },
    )
