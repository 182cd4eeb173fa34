"""Random row types, and rows that fit them."""

import datetime
from decimal import Decimal

from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.common.time import Instant

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1))
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())

SIMPLE = {
    Types.STRING(): TEXT,
    Types.CHAR(): st.characters(codec="utf-8"),
    Types.BOOLEAN(): st.booleans(),
    Types.BYTE(): st.integers(-128, 127),
    Types.SHORT(): st.integers(-(2**15), 2**15 - 1),
    Types.INT(): st.integers(-(2**31), 2**31 - 1),
    Types.LONG(): st.integers(-(2**63), 2**63 - 1),
    Types.BIG_INT(): st.integers(-(10**37), 10**37),
    Types.FLOAT(): st.floats(allow_nan=False, width=32),
    Types.DOUBLE(): st.floats(allow_nan=False),
    Types.BIG_DEC(): st.decimals(Decimal(-(10**15)), Decimal(10**15), places=6),
    Types.SQL_DATE(): MOMENTS.map(datetime.datetime.date),
    Types.SQL_TIME(): st.times(),
    Types.SQL_TIMESTAMP(): MOMENTS,
    Types.INSTANT(): st.builds(Instant, st.integers(-(10**9), 9 * 10**9), st.integers(0, 10**9 - 1)),
    BYTES: st.binary(max_size=6),
}
ORDERED = list(SIMPLE)
simple_types = st.sampled_from(ORDERED)


def row_types(parts, most=5):
    """Rows with such parts, with names that need care."""
    names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=5)
    return st.lists(parts, min_size=1, max_size=most).flatmap(
        lambda types: st.lists(names, min_size=len(types), max_size=len(types), unique=True).map(
            lambda names: Types.ROW_NAMED(names, types)
        )
    )


def nested_types(simple=simple_types):
    return st.recursive(
        simple,
        lambda parts: st.one_of(
            parts.map(Types.LIST),
            st.builds(Types.MAP, st.sampled_from([Types.STRING(), Types.INT()]), parts),
            row_types(parts, 3),
        ),
        max_leaves=4,
    )


def present(declared):
    """Values of a type, without None at the top."""
    if declared in SIMPLE:
        return SIMPLE[declared]
    if hasattr(declared, "elem_type"):
        return st.lists(values(declared.elem_type), max_size=3)
    if hasattr(declared, "key_type"):
        return st.dictionaries(present(declared.key_type), values(declared.value_type), max_size=3)
    return st.tuples(*map(values, declared.field_types)).map(lambda parts: named(declared.get_field_names(), parts))


def named(names, parts):
    row = Row(*parts)
    row.set_field_names(names)
    return row


def values(declared):
    return st.none() | present(declared)


def tables(types, most=12):
    """A row type, and rows of it."""
    return types.flatmap(lambda declared: st.tuples(st.just(declared), st.lists(present(declared), max_size=most)))
