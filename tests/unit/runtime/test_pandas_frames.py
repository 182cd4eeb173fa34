"""pandas' columns are the same in every version of pandas, and what functions return becomes columns again."""

import pandas as pd
import pyarrow as pa
import pytest

from penstock.common import Row, Types
from penstock.formats.pandas_frames import data_frame_of, series_of
from tests.unit.runtime.columnar_programs import READING, BatchSource

TEXTS = ["a", None, ""]
texts_of_every_kind = pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])


@texts_of_every_kind
def test_texts_are_python_strings_and_null_is_none(kind):
    series = series_of(pa.array(TEXTS, kind))
    assert series.dtype == object
    assert list(series) == TEXTS


@texts_of_every_kind
def test_tables_in_pieces_become_data_frames(kind):
    table = pa.table({"n": pa.chunked_array([[1], [2, 3]]), "text": pa.chunked_array([TEXTS[:1], TEXTS[1:]], kind)})
    frame = data_frame_of(table)
    assert list(frame.columns) == ["n", "text"]
    assert frame.text.dtype == object
    assert list(frame.text) == TEXTS
    assert list(frame.n) == [1, 2, 3]


def test_columns_without_rows():
    frame = data_frame_of(pa.table({"text": pa.array([], pa.string())}))
    assert frame.text.dtype == object
    assert len(frame) == 0


def test_columns_of_one_name_stay_apart():
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([None], pa.string())], names=["x", "x"])
    assert data_frame_of(table).values.tolist() == [["a", None]]


def test_a_function_of_batches_gets_none_for_a_missing_text_and_may_return_it(run):
    texts = Types.ROW_NAMED(["text"], [Types.STRING()])

    def classes(frame):
        assert frame.text.dtype == object
        kinds = ["none" if text is None else text for text in frame.text]
        return pd.DataFrame({"text": pd.Series(kinds).where(pd.Series(kinds) != "s2", None)})

    def without_first(row):
        return Row(text=None if row.sensor == "s0" else row.sensor)

    def program(env):
        batches = env._source("Batches", BatchSource(4), READING)
        return batches.map(without_first, texts).map_batches(classes, texts, as_pandas=True)

    assert [row.text for row in run(program)] == ["none", None, "s4", "s1"]
