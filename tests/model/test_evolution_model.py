"""Schema evolution for random types and values: what is allowed loses nothing, and what comes out fits."""

import itertools
import json
import pickle
import sys
import types
from dataclasses import field, make_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, Time
from penstock.common.composite_types import ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.typeinfo import Types
from penstock.common.types import RowKind
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.engine.state.evolution import migration
from penstock.engine.state.state_schema import schema_of, schema_text
from penstock.errors import StateMigrationException

NAMES = ["a", "b", "c", "d"]
RANGES = {"BYTE": 7, "SHORT": 15, "INT": 31, "LONG": 63, "BIG_INT": 80}
EXTREMES = {name: [-(2**bits), 2**bits - 1] for name, bits in RANGES.items()} | {
    "FLOAT": [0.5, 3.0e38, Types.FLOAT().fit([0.1])[0]],
    "DOUBLE": [0.1, 1e300],
}
WIDER = {
    "BYTE": ["BYTE", "SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE"],
    "SHORT": ["SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE"],
    "INT": ["INT", "LONG", "BIG_INT", "DOUBLE"],
    "LONG": ["LONG", "BIG_INT"],
    "FLOAT": ["FLOAT", "DOUBLE"],
}
LEAVES = {
    **{getattr(Types, name)(): st.integers(-(2**bits), 2**bits - 1) for name, bits in RANGES.items()},
    Types.FLOAT(): st.floats(width=32, allow_nan=False),
    Types.DOUBLE(): st.floats(allow_nan=False),
    Types.STRING(): st.text(max_size=3),
    Types.BOOLEAN(): st.booleans(),
    Types.BIG_DEC(): st.decimals(allow_nan=False),
    Types.SQL_DATE(): st.dates(),
    Types.ENUM(RowKind): st.sampled_from(RowKind),
    Types.PRIMITIVE_ARRAY(Types.BYTE()): st.binary(max_size=3),
    Types.PICKLED_BYTE_ARRAY(): st.sampled_from([None, 1, "x", (1, "y"), [0.5]]),
}
KEYS = [Types.STRING(), Types.INT(), Types.LONG(), Types.BOOLEAN()]


def rows_of(inner):
    return st.lists(st.tuples(st.sampled_from(NAMES), inner), max_size=3, unique_by=lambda pair: pair[0]).map(
        lambda fields: Types.ROW_NAMED([name for name, _ in fields], [info for _, info in fields])
    )


def composites_of(inner):
    several = st.lists(inner, max_size=3)
    return st.one_of(
        rows_of(inner),
        several.map(Types.ROW),
        several.map(Types.TUPLE),
        inner.map(Types.LIST),
        inner.map(Types.OBJECT_ARRAY),
        st.builds(Types.MAP, st.sampled_from(KEYS), inner),
    )


TYPES = st.recursive(st.sampled_from(list(LEAVES)), composites_of, max_leaves=6)


def values_of(info):
    """Values of a type in their proper form; each may be None."""
    if isinstance(info, RowTypeInfo):
        fields = st.tuples(*map(values_of, info.field_types))
        made = st.builds(row, st.just(info), fields, st.sampled_from(RowKind))
    elif isinstance(info, TupleTypeInfo):
        made = st.tuples(*map(values_of, info.field_types))
    elif isinstance(info, MapTypeInfo):
        made = st.dictionaries(LEAVES[info.key_type], values_of(info.value_type), max_size=2)
    elif isinstance(info, ListTypeInfo) and info not in LEAVES:
        made = st.lists(values_of(info.elem_type), max_size=2)
    else:
        made = LEAVES[info]
    return made | st.none()


def row(info, fields, kind):
    made = Row.of_kind(kind, *fields)
    made.set_field_names(info.get_field_names())
    return made


@st.composite
def grown(draw, info, losing=False):
    """A type that may follow another one: numbers grow, named rows gain fields, move them and, if asked, lose some."""
    again = lambda part: draw(grown(part, losing))  # noqa: E731
    if isinstance(info, RowTypeInfo) and info.field_names is not None:
        return draw(grown_row(info, losing))
    if isinstance(info, RowTypeInfo):
        return Types.ROW(map(again, info.field_types))
    if isinstance(info, TupleTypeInfo):
        return Types.TUPLE(map(again, info.field_types))
    if isinstance(info, MapTypeInfo):
        return Types.MAP(info.key_type, again(info.value_type))
    if isinstance(info, ListTypeInfo) and info not in LEAVES:
        return type(info)(again(info.elem_type))
    wider = WIDER.get(repr(info))
    return info if wider is None else getattr(Types, draw(st.sampled_from(wider)))()


@st.composite
def grown_row(draw, info, losing):
    fields = dict(zip(info.field_names, info.field_types, strict=True))
    kept = draw(st.lists(st.sampled_from(list(fields)), unique=True)) if losing and fields else list(fields)
    grown_fields = {name: draw(grown(fields[name], losing)) for name in kept}
    fresh = f"new{len(fields)}_{draw(st.integers(0, 9))}"
    if draw(st.booleans()) and fresh not in fields:
        grown_fields[fresh] = draw(TYPES)
    names = draw(st.permutations(list(grown_fields)))
    return Types.ROW_NAMED(names, [grown_fields[name] for name in names])


def value(info):
    return ValueStateDescriptor("s", info)


def saved(descriptor):
    return json.loads(json.dumps(schema_of(descriptor)))


def migrated(before, after, stored):
    """A value that went through a checkpoint and a migration."""
    convert = migration(saved(value(before)), value(after))
    restored = pickle.loads(pickle.dumps(stored))
    return restored if convert is None else convert(restored)


@st.composite
def evolutions(draw, losing):
    before = draw(TYPES)
    return before, draw(grown(before, losing)), draw(values_of(before))


class TestTypes:
    @given(TYPES, st.booleans())
    def test_an_unchanged_declaration_needs_nothing(self, info, expires):
        for make in (
            value,
            lambda of: ListStateDescriptor("s", of),
            lambda of: MapStateDescriptor("s", Types.STRING(), of),
            lambda of: ReducingStateDescriptor("s", max, of),
        ):
            descriptor, again = make(info), make(pickle.loads(pickle.dumps(info)))
            for each in (descriptor, again) if expires else ():
                each.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
            assert schema_of(again) == saved(descriptor)
            assert migration(saved(descriptor), again) is None
            assert "\n" not in schema_text(schema_of(descriptor))

    @given(TYPES, TYPES)
    def test_types_that_differ_have_schemas_that_differ(self, one, other):
        # By their text: a row without fields has no names either way.
        assert (schema_of(value(one)) == schema_of(value(other))) == (repr(one) == repr(other))

    @given(evolutions(losing=True))
    def test_what_was_migrated_fits(self, evolution):
        before, after, stored = evolution
        result = migrated(before, after, stored)
        assert repr(after.fit([result])) == repr([result])

    @given(evolutions(losing=False), st.data())
    def test_growth_in_two_steps_is_growth_in_one(self, evolution, data):
        before, between, stored = evolution
        after = data.draw(grown(between))
        twice = migrated(between, after, migrated(before, between, stored))
        assert repr(twice) == repr(migrated(before, after, stored))

    @given(evolutions(losing=False))
    def test_growth_loses_nothing(self, evolution):
        before, after, stored = evolution
        assert contains(migrated(before, after, stored), stored)

    @given(TYPES, TYPES, st.data())
    def test_any_two_types(self, before, after, data):
        """A change is refused with the error made for it, or leads to values that fit."""
        stored = data.draw(values_of(before))
        try:
            result = migrated(before, after, stored)
        except StateMigrationException as error:
            assert str(error).startswith("state 's' was saved as value<")
        else:
            after.fit([result])

    @given(TYPES, st.data())
    def test_through_undeclared_and_back(self, info, data):
        stored = data.draw(values_of(info))
        undeclared = migrated(info, None, stored)
        assert repr(migrated(None, info, undeclared)) == repr(stored)

    @given(evolutions(losing=True), st.integers(0, 9))
    def test_every_kind_and_form_goes_value_by_value(self, evolution, time):
        before, after, stored = evolution
        expected = repr(migrated(before, after, stored))
        forms = {
            "value": (lambda info: ValueStateDescriptor("s", info), lambda v: v),
            "list": (lambda info: ListStateDescriptor("s", info), lambda v: [v]),
            "map": (lambda info: MapStateDescriptor("s", Types.STRING(), info), lambda v: {"k": v}),
        }
        for (make, form), expires in itertools.product(forms.values(), [False, True]):
            old, new = make(before), make(after)
            for each in (old, new) if expires else ():
                each.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
            convert = migration(saved(old), new) or (lambda held: held)
            one = (stored, time) if expires else stored
            assert repr(convert(form(one))) == repr(form(Placeholder(f"({expected}, {time})" if expires else expected)))


class Placeholder:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def contains(grown_value, original):
    """Whether everything in a value is still there, equal, in one that grew out of it."""
    if isinstance(original, Row):
        if len(grown_value) == len(original) and grown_value.get_field_names() == original.get_field_names():
            return all(map(contains, grown_value, original))
        return all(contains(grown_value[name], original[name]) for name in original.get_field_names())
    if isinstance(original, dict):
        return grown_value.keys() == original.keys() and all(contains(grown_value[k], original[k]) for k in original)
    if isinstance(original, list | tuple):
        return len(grown_value) == len(original) and all(map(contains, grown_value, original))
    return grown_value == original


@pytest.mark.parametrize(("before", "after"), list(itertools.product(EXTREMES, EXTREMES)))
def test_a_number_may_become_what_holds_all_its_values_exactly(before, after):
    try:
        fitted = getattr(Types, after)().fit(EXTREMES[before])
        exact = before == after or fitted == EXTREMES[before]
    except Exception:
        exact = False
    try:
        migration(saved(value(getattr(Types, before)())), value(getattr(Types, after)()))
        allowed = True
    except StateMigrationException:
        allowed = False
    assert allowed == exact


@pytest.mark.parametrize(("before", "after"), list(itertools.product(EXTREMES, EXTREMES)))
def test_widening_composes(before, after):
    through = any(after in WIDER.get(between, [between]) for between in WIDER.get(before, [before]))
    assert through == (after in WIDER.get(before, [before]))


# --- dataclasses ---
FIELD_KINDS = {
    "required": lambda: (int,),
    "plain": lambda: (int, -1),
    "made": lambda: (int, field(default_factory=list)),
}
FIELDS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(list(FIELD_KINDS)), min_size=1)
OPTIONS = st.fixed_dictionaries({"frozen": st.booleans(), "kw_only": st.just(True)})


def version(fields, options):
    """A dataclass as one version of a program defines it, at the place where pickle looks for it."""
    made = make_dataclass("Thing", [(name, *FIELD_KINDS[kind]()) for name, kind in fields.items()], **options)
    made.__module__ = "evolving"
    module = sys.modules.setdefault("evolving", types.ModuleType("evolving"))
    module.Thing = made
    return made


CONTAINERS = {
    "bare": (Types.DATACLASS, lambda thing: thing),
    "list": (lambda c: Types.LIST(Types.DATACLASS(c)), lambda thing: [thing, thing]),
    "map": (lambda c: Types.MAP(Types.STRING(), Types.DATACLASS(c)), lambda thing: {"k": thing}),
    "row": (lambda c: Types.ROW_NAMED(["t"], [Types.DATACLASS(c)]), lambda thing: Row(t=thing)),
    "tuple": (
        lambda c: Types.TUPLE([Types.INT(), Types.LIST(Types.TUPLE([Types.DATACLASS(c)]))]),
        lambda thing: (1, [(thing,)]),
    ),
}


@given(FIELDS, FIELDS, OPTIONS, OPTIONS, st.sampled_from(list(CONTAINERS)), st.data())
def test_dataclasses_through_a_pickle(before, after, old_options, new_options, container, data):
    declare, wrap = CONTAINERS[container]
    old = version(before, old_options)
    arguments = {name: data.draw(st.integers(0, 99)) for name in before}
    schema, stored = saved(value(declare(old))), pickle.dumps(wrap(old(**arguments)))
    new = version(after, new_options)
    if any(kind == "required" for name, kind in after.items() if name not in before):
        with pytest.raises(StateMigrationException, match="is new and has no default"):
            migration(schema, value(declare(new)))
        return
    convert = migration(schema, value(declare(new)))
    assert (convert is None) == (before.keys() == after.keys())
    restored = pickle.loads(stored) if convert is None else convert(pickle.loads(stored))
    expected = wrap(new(**{name: arguments[name] for name in after if name in before}))
    assert restored == expected
    assert repr(restored) == repr(expected)
    if container == "bare":
        assert vars(restored) == vars(expected)
    declare(new).fit([restored])


@given(FIELDS, FIELDS, st.booleans())
def test_dataclasses_with_slots_stay_as_they_are(before, after, frozen):
    options = {"slots": True, "kw_only": True, "frozen": frozen}
    old = version(before, options)
    arguments = dict.fromkeys(before, 5)
    schema, stored = saved(value(Types.DATACLASS(old))), pickle.dumps(old(**arguments))
    new = version(after, options)
    if list(before) == list(after):
        assert migration(schema, value(Types.DATACLASS(new))) is None
        assert pickle.loads(stored) == new(**arguments)
    else:
        with pytest.raises(StateMigrationException, match="A dataclass with slots must keep its fields"):
            migration(schema, value(Types.DATACLASS(new)))
