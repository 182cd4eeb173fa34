"""Lists and maps in accumulators, under the name of PyFlink's module."""

from penstock.table.expression.accumulator_views import DataView, ListView, MapView

__all__ = [
    "DataView",
    "ListView",
    "MapView",
]
