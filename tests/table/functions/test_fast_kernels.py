"""Kernels over whole columns give what Python's decimals and the slow casts give, row by row."""

from __future__ import annotations

import datetime
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.table.functions import Moment, cast, compile_rex, resolve
from penstock.table.functions.library.cast_kernels import conversion
from penstock.table.functions.library.decimal_kernels import fit_decimal
from penstock.table.functions.library.text_forms import text_form
from penstock.table.logical.rex import InputRef, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, values_of

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
STRING = t.DataTypes.STRING()


def evaluated(rex: Rex, *columns: pa.Array) -> list[object]:
    batch = pa.RecordBatch.from_arrays(list(columns), [str(index) for index in range(len(columns))])
    return values_of(compile_rex(rex)(batch, Moment()), rex.type)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[t.DecimalType, list[Decimal | None]]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    limit = 10**precision - 1
    numbers = draw(st.lists(st.none() | st.integers(-limit, limit), min_size=4, max_size=4))
    values = [None if one is None else EXACT.scaleb(Decimal(one), -scale) for one in numbers]
    return t.DecimalType(precision, scale), values


@settings(max_examples=150, deadline=None)
@given(decimals(), decimals(), st.sampled_from("+-*/"))
def test_decimal_arithmetic(
    left: tuple[t.DecimalType, list[Decimal | None]], right: tuple[t.DecimalType, list[Decimal | None]], sign: str
) -> None:
    (one, ones), (other, others) = left, right
    if sign == "/":
        others = [value or None for value in others]
    rex = resolve(sign, [InputRef(one, 0), InputRef(other, 1)])
    assert isinstance(rex.type, t.DecimalType)
    compute = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide}[sign]
    wanted = [
        None if a is None or b is None else fit_decimal(compute(a, b), rex.type.precision, rex.type.scale)
        for a, b in zip(ones, others, strict=True)
    ]
    assert evaluated(rex, array_of(ones, one), array_of(others, other)) == wanted


@settings(max_examples=100, deadline=None)
@given(decimals(), decimals())
def test_decimals_as_other_decimals(
    source: tuple[t.DecimalType, list[Decimal | None]], aim: tuple[t.DecimalType, list[Decimal | None]]
) -> None:
    (kind, values), (target, _) = source, aim
    wanted = [None if value is None else fit_decimal(value, target.precision, target.scale) for value in values]
    assert evaluated(cast(InputRef(kind, 0), target), array_of(values, kind)) == wanted


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | st.floats(-1e9, 1e9).map(lambda value: round(value, 6)), min_size=1), st.integers(0, 6))
def test_rounding(values: list[float | None], places: int) -> None:
    number = InputRef(t.DoubleType(), 0)
    rex = resolve("ROUND", [number, Literal(t.IntType(False), places)])
    unit = Decimal(1).scaleb(-places)
    wanted = [
        None if value is None else float(Decimal(repr(value)).quantize(unit, ROUND_HALF_UP, EXACT)) for value in values
    ]
    assert evaluated(rex, pa.array(values, pa.float64())) == wanted


ROUNDINGS = st.sampled_from([("ROUND", ROUND_HALF_UP), ("TRUNCATE", ROUND_DOWN)])
LONG = st.floats(-1e9, 1e9) | st.sampled_from([536870912.704675, 21474.836479999999, -0.29, 1.005, 4503599627370.4975])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(LONG, min_size=1), st.integers(0, 6), st.sampled_from([("ROUND", ROUND_HALF_UP), ("TRUNCATE", ROUND_DOWN)])
)
def test_rounding_of_numbers_with_many_digits(values: list[float], places: int, function: tuple[str, str]) -> None:
    name, rounding = function
    rex = resolve(name, [InputRef(t.DoubleType(), 0), Literal(t.IntType(False), places)])
    unit = Decimal(1).scaleb(-places)
    wanted = [float(Decimal(repr(value)).quantize(unit, rounding, EXACT)) for value in values]
    assert evaluated(rex, pa.array(values, pa.float64())) == wanted


TEXTS = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.dates().map(str),
    st.datetimes(datetime.datetime(1, 1, 1)).map(lambda value: value.isoformat(" ")),
    st.sampled_from([" 12 ", "+5", "", "2024-02-30", "2024-02-30 10:11:12", "1e3", "x", "00012", "-0"]),
)
AIMS = st.sampled_from([t.IntType(), t.BigIntType(), t.TinyIntType(), t.DoubleType(), t.DateType(), t.TimestampType(3)])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | TEXTS, min_size=1, max_size=3), AIMS)
def test_texts_are_read_alike(texts: list[str | None], aim: t.DataType) -> None:
    def slowly(text: str | None) -> object:
        try:
            return None if text is None else conversion(STRING, aim)(text)
        except ValueError:
            return None

    found = evaluated(cast(InputRef(STRING, 0), aim, safe=True), pa.array(texts, pa.string()))
    assert found == [slowly(text) for text in texts]


MOMENTS = st.sampled_from([t.TimestampType(0), t.TimestampType(3), t.TimestampType(6), t.LocalZonedTimestampType(3)])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | st.datetimes(), min_size=1, max_size=4), MOMENTS, st.sampled_from(["UTC", "Asia/Tokyo"]))
def test_moments_are_written_alike(
    moments: list[datetime.datetime | None], kind: t.TimestampType | t.LocalZonedTimestampType, zone: str
) -> None:
    if isinstance(kind, t.LocalZonedTimestampType):
        safe = [None if one is None or one.year in (1, 9999) else one.replace(tzinfo=datetime.UTC) for one in moments]
        moments = [None if one is None or one.year < 1970 else one for one in safe]
    form = text_form(kind, zone)
    batch = pa.RecordBatch.from_arrays([array_of(moments, kind)], ["moment"])
    rex = cast(InputRef(kind, 0), STRING)
    found = compile_rex(rex)(batch, Moment(zone=zone)).to_pylist()
    assert found == [None if one is None else form(one) for one in moments]


def test_dates_in_a_pattern_are_cut_in_the_zone() -> None:
    kind = t.LocalZonedTimestampType(3)
    moments = [datetime.datetime(2024, 1, 1, hour, 30, tzinfo=datetime.UTC) for hour in (0, 14, 15, 23)]
    rex = resolve("DATE_FORMAT", [InputRef(kind, 0), Literal(t.CharType(10, False), "yyyy-MM-dd")])
    batch = pa.RecordBatch.from_arrays([array_of(moments, kind)], ["moment"])
    found = compile_rex(rex)(batch, Moment(zone="Asia/Tokyo")).to_pylist()
    assert found == ["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-02"]
