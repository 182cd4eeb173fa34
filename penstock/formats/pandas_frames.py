"""Columns of Arrow as columns of pandas, the same in every version of pandas.

pandas 3 has its own type for texts, in which NULL is NaN. Functions of users get Python strings and None instead, in
columns of the type object, as pandas 2 and PyFlink give them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.formats.format_libraries import pandas, pyarrow

if TYPE_CHECKING:
    import pandas as pd


def series_of(column: Any) -> pd.Series[Any]:
    """Convert an array to a Series."""
    series: pd.Series[Any] = column.to_pandas()
    return _texts(column) if _is_text(column.type) and not _holds_objects(series.dtype) else series


def data_frame_of(batch: Any) -> pd.DataFrame:
    """Convert a record batch or a table to a DataFrame."""
    frame: pd.DataFrame = batch.to_pandas()
    for place, kind in enumerate(batch.schema.types):
        if _is_text(kind) and not _holds_objects(frame.dtypes.iloc[place]):
            frame.isetitem(place, _texts(batch.column(place)))
    return frame


def _is_text(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _holds_objects(kind: Any) -> bool:
    return bool(pandas().api.types.is_object_dtype(kind))


def _texts(column: Any) -> pd.Series[Any]:
    values: pd.Series[Any] = pandas().Series(column.to_numpy(zero_copy_only=False), dtype=object)
    return values
