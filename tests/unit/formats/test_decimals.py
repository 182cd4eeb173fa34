"""DECIMAL(precision, scale); what Flink makes of each value was recorded from it."""

import io
import pickle
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc, parquet

from penstock.common import Row, Types
from penstock.datastream.formats.decimals import DECIMAL
from penstock.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.errors import TypeMismatch
from penstock.formats.decimal_values import stream_type_of
from tests.unit.formats.reading import whole, written


@pytest.mark.parametrize(
    ("declared", "value", "rounded"),
    [
        (DECIMAL(2, 0), "1.5", "2"),
        (DECIMAL(2, 0), "2.5", "3"),
        (DECIMAL(2, 0), "-1.5", "-2"),
        (DECIMAL(2, 0), "-0.4", "0"),
        (DECIMAL(2, 0), "99.4", "99"),
        (DECIMAL(2, 0), "99.5", "None"),
        (DECIMAL(2, 0), "1e1", "10"),
        (DECIMAL(10, 2), "1.5", "1.50"),
        (DECIMAL(10, 2), "1E-3", "0.00"),
        (DECIMAL(5, 5), "0.05", "0.05000"),
        (DECIMAL(5, 5), "1.5", "None"),
        (DECIMAL(38, 18), "0", "0E-18"),
        (DECIMAL(38, 18), "12345678901234567890123456789012345678", "None"),
        (DECIMAL(38, 0), "12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        (DECIMAL(38, 0), "1e38", "None"),
        (DECIMAL(38, 0), "1e999999", "None"),
        (DECIMAL(38, 38), "1e-999999", "0E-38"),
    ],
)
def test_values_are_rounded_or_none(declared, value, rounded):
    assert str(declared.fit([Decimal(value)])[0]) == rounded
    assert declared.fit([None, Decimal(value)])[0] is None


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=Decimal("-1e40"), max_value=Decimal("1e40"))


@given(st.integers(1, 38), st.data(), DECIMALS)
def test_a_rounded_value_is_near_and_stays_as_it_is(precision, data, value):
    declared = DECIMAL(precision, data.draw(st.integers(0, precision)))
    (once,) = declared.fit([value])
    limit = Decimal(10) ** (declared.precision - declared.scale)
    with localcontext(prec=200, rounding=ROUND_HALF_UP):
        nearest = value.quantize(Decimal(1).scaleb(-declared.scale))
        if abs(nearest) >= limit:
            assert once is None
        else:
            assert once == nearest and len(once.as_tuple().digits) <= max(declared.precision, declared.scale + 1)
    again = [once]
    assert declared.fit(again) == again


def test_a_chunk_that_fits_is_not_copied():
    chunk = [Decimal("1.50"), Decimal("-2.00")]
    assert DECIMAL(10, 2).fit(chunk) is chunk


def test_what_is_no_decimal_is_refused():
    for value in (1.5, "1.5", Decimal("NaN"), Decimal("-Infinity")):
        with pytest.raises(TypeMismatch, match="DECIMAL"):
            DECIMAL(10, 2).fit([value])
    assert DECIMAL(10, 2).fit([7]) == [Decimal("7.00")]
    with pytest.raises(ValueError, match="between 1 and 38, but is 39"):
        DECIMAL(39, 2)
    with pytest.raises(ValueError, match="between 0 and its precision 3, but is 4"):
        DECIMAL(3, 4)


def test_a_decimal_is_a_type():
    declared = pickle.loads(pickle.dumps(DECIMAL(10, 2)))
    assert declared == DECIMAL(10, 2) != DECIMAL(10, 3)
    assert repr(DECIMAL()) == "DECIMAL(10, 0)"
    nested = [DECIMAL(), Types.LIST(DECIMAL(2, 1)), Types.MAP(Types.STRING(), DECIMAL()), Types.TUPLE([DECIMAL()])]
    plain = [Types.BIG_DEC(), Types.LIST(Types.BIG_DEC()), Types.MAP(Types.STRING(), Types.BIG_DEC())]
    names = ["a", "b", "c", "d"]
    expected = Types.ROW_NAMED(names, [*plain, Types.TUPLE([Types.BIG_DEC()])])
    assert stream_type_of(Types.ROW_NAMED(names, nested)) == expected


@pytest.mark.parametrize(
    ("writers", "format", "table"),
    [
        (ParquetBulkWriters, ParquetColumnarRowInputFormat, lambda data: parquet.read_table(io.BytesIO(data))),
        (OrcBulkWriters, OrcColumnarRowInputFormat, lambda data: orc.ORCFile(io.BytesIO(data)).read()),
    ],
)
def test_columns_of_decimals(writers, format, table):
    declared = Types.ROW_NAMED(["d", "n"], [DECIMAL(2, 0), Types.LIST(DECIMAL(5, 2))])
    rows = [(Decimal("1.5"), [Decimal("1.005"), None]), (Decimal(100), [])]
    data = written(writers.for_row_type(declared), rows)
    assert table(data).schema.field("d").type == pa.decimal128(2, 0)
    assert whole(format(declared), data) == [Row(d=Decimal(2), n=[Decimal("1.01"), None]), Row(d=None, n=[])]
    narrower = Types.ROW_NAMED(["n"], [Types.LIST(DECIMAL(3, 1))])
    assert whole(format(narrower), data) == [Row(n=[Decimal("1.0"), None]), Row(n=[])]
    assert format(narrower).get_produced_type() == Types.ROW_NAMED(["n"], [Types.LIST(Types.BIG_DEC())])
