"""Saved state under a changed program: what is described, what is converted, what is refused and in which words."""

import enum
import json
import pickle
import sys
import textwrap
import types
from typing import Any

import pytest

from penstock.common import Row, Time
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.types import RowKind
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.engine.state.evolution import migration
from penstock.engine.state.state_schema import schema_of, schema_text
from penstock.errors import StateMigrationException

INT, LONG, STRING, DOUBLE = Types.INT(), Types.LONG(), Types.STRING(), Types.DOUBLE()


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def value(info=None):
    return ValueStateDescriptor("s", info)


def named(**fields):
    return Types.ROW_NAMED(list(fields), list(fields.values()))


def expiring(descriptor):
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return descriptor


def saved(descriptor):
    """A schema as it comes back from a checkpoint's metadata."""
    return json.loads(json.dumps(schema_of(descriptor)))


def between(before, after):
    return migration(saved(value(before)), value(after))


def refused(before, after):
    with pytest.raises(StateMigrationException) as error:
        migration(saved(before), after)
    message = str(error.value)
    assert message.startswith("state 's' was saved as ")
    return message


class Shop:
    """A module whose source changes between two runs of a program."""

    def __init__(self, monkeypatch):
        self.module = types.ModuleType("shop")
        monkeypatch.setitem(sys.modules, "shop", self.module)

    def becomes(self, source):
        exec("from dataclasses import *\nfrom enum import *\nfrom typing import *\n", vars(self.module))
        exec(textwrap.dedent(source), vars(self.module))
        return self.module

    def type(self, name="Order"):
        return Types.DATACLASS(getattr(self.module, name))

    def restored(self, before, after, make, declared=None):
        """What `make` makes in the shop of before, saved and then migrated into the shop of after."""
        self.becomes(before)
        declare = declared or (lambda: value(self.type()))
        schema, stored = saved(declare()), pickle.dumps(make(self.module))
        self.becomes(after)
        convert = migration(schema, declare())
        loaded = pickle.loads(stored)
        return loaded if convert is None else convert(loaded)

    def refused(self, before, after, declared=None):
        self.becomes(before)
        declare = declared or (lambda: value(self.type()))
        schema = saved(declare())
        self.becomes(after)
        with pytest.raises(StateMigrationException) as error:
            migration(schema, declare())
        return str(error.value)


@pytest.fixture
def shop(monkeypatch):
    return Shop(monkeypatch)


class TestSchemaText:
    @pytest.mark.parametrize(
        ("descriptor", "text"),
        [
            (value(), "value<pickled>"),
            (value(INT), "value<INT>"),
            (ListStateDescriptor("s", STRING), "list<STRING>"),
            (
                expiring(MapStateDescriptor("s", STRING, named(name=STRING, n=LONG))),
                "map<STRING, ROW<name STRING, n LONG>> with TTL",
            ),
            (MapStateDescriptor("s"), "map<pickled, pickled>"),
            (ReducingStateDescriptor("s", max, DOUBLE), "reducing<DOUBLE>"),
            (AggregatingStateDescriptor("s", Total()), "aggregating<pickled>"),
            (value(Types.TUPLE([INT, Types.LIST(STRING)])), "value<TUPLE<INT, LIST<STRING>>>"),
            (value(Types.TUPLE([])), "value<TUPLE<>>"),
            (value(Types.ROW([INT, STRING])), "value<ROW<INT, STRING>>"),
            (value(Types.MAP(STRING, Types.PRIMITIVE_ARRAY(Types.BYTE()))), "value<MAP<STRING, BYTE_ARRAY>>"),
            (value(Types.SQL_TIMESTAMP()), "value<SQL_TIMESTAMP>"),
            (value(Types.ENUM(RowKind)), "value<penstock.common.types.RowKind>"),
        ],
    )
    def test_is_one_line(self, descriptor, text):
        assert schema_text(schema_of(descriptor)) == text

    def test_a_dataclass_goes_by_its_name(self, shop):
        shop.becomes("@dataclass\nclass Order:\n    id: int")
        assert schema_text(schema_of(value(Types.LIST(shop.type())))) == "value<LIST<shop.Order>>"

    def test_a_type_of_the_users_own(self):
        class Plain(TypeInformation):
            pass

        assert schema_text(schema_of(value(Plain()))).endswith(".Plain>")
        assert migration(saved(value(Plain())), value(Plain())) is None


class TestSchema:
    def test_is_json_with_all_that_a_dataclass_declares(self, shop):
        shop.becomes("""
            class Color(Enum):
                RED = 1
                BLUE = "b"
                PAIR = (1, "x")
            @dataclass
            class Item:
                name: str
            @dataclass
            class Order:
                id: int
                color: Color
                items: list[Item] = field(default_factory=list)
                note: Optional[str] = None
        """)
        assert saved(value(shop.type())) == {
            "kind": "value",
            "value": {"type": "DATACLASS", "class": "shop.Order"},
            "ttl": False,
            "classes": {
                "shop.Color": {"class": "enum", "members": {"RED": "1", "BLUE": "'b'", "PAIR": "(1, 'x')"}},
                "shop.Item": {
                    "class": "dataclass",
                    "slots": False,
                    "fields": [{"name": "name", "type": "str", "default": False}],
                },
                "shop.Order": {
                    "class": "dataclass",
                    "slots": False,
                    "fields": [
                        {"name": "id", "type": "int", "default": False},
                        {"name": "color", "type": "shop.Color", "default": False},
                        {"name": "items", "type": "list[shop.Item]", "default": True},
                        {"name": "note", "type": "str | None", "default": True},
                    ],
                },
            },
        }

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Optional[int]", "int | None"),
            ("Union[None, str, int]", "int | str | None"),
            ("List[int]", "list[int]"),
            ("Dict[str, Tuple[int, ...]]", "dict[str, tuple[int, ...]]"),
            ("'int'", "int"),
            ("'Order'", "Order"),
            ("Optional['Order']", "'Order | None'"),
            ("Annotated[int, 5]", "int"),
            ("Callable[[int], str]", "'Callable[[int], str]'"),
        ],
    )
    def test_a_type_has_one_spelling(self, shop, one, other):
        schemas = []
        for annotation in (one, other):
            future = "" if annotation != "Order" else "from __future__ import annotations\n"
            shop.becomes(f"{future}@dataclass\nclass Order:\n    x: {annotation}")
            schemas.append(schema_of(value(shop.type())))
        assert schemas[0] == schemas[1]

    @pytest.mark.parametrize(
        ("annotation", "text"),
        [
            ("'Missing  |  None'", "Missing | None"),
            ("list['Missing']", "list[Missing]"),
            ("List['Missing']", "list[Missing]"),
            *([("Missing", "Missing")] if sys.version_info >= (3, 14) else []),
            ("Any", "Any"),
            ("None", "None"),
            ("Literal['a', 1]", "Literal['a', 1]"),
            ("tuple[()]", "tuple"),
            ("__import__('pathlib').Path", "pathlib.Path"),
            ("__import__('decimal').Decimal", "decimal.Decimal"),
            ("__import__('datetime').datetime | None", "datetime.datetime | None"),
            ("Sequence[int]", "collections.abc.Sequence[int]"),
            ("NewType('Id', int)", "shop.Id"),
        ],
    )
    def test_names_of_annotations(self, shop, annotation, text):
        module = shop.becomes(f"@dataclass\nclass Order:\n    x: {annotation}")
        described = schema_of(value(Types.DATACLASS(module.Order)))["classes"]["shop.Order"]
        assert described["fields"][0]["type"] == text

    def test_a_class_that_holds_itself_is_described_once(self, shop):
        shop.becomes("@dataclass\nclass Order:\n    before: Optional['Order'] = None")
        assert list(schema_of(value(shop.type()))["classes"]) == ["shop.Order"]

    def test_a_generic_dataclass_is_found_in_an_annotation(self, shop):
        shop.becomes("""
            T = TypeVar("T")
            @dataclass
            class Box(Generic[T]):
                content: T
            @dataclass
            class Order:
                box: Box[int]
        """)
        assert list(schema_of(value(shop.type()))["classes"]) == ["shop.Box", "shop.Order"]

    def test_inherited_fields_are_resolved_where_they_were_written(self, shop, monkeypatch):
        base = types.ModuleType("base")
        monkeypatch.setitem(sys.modules, "base", base)
        exec(
            "from dataclasses import *\n@dataclass\nclass A:\n    n: int\n@dataclass\nclass B:\n    a: 'A'", vars(base)
        )
        shop.becomes("import base\n@dataclass\nclass Order(base.B):\n    id: int")
        described = schema_of(value(shop.type()))["classes"]
        assert described["shop.Order"]["fields"][0]["type"] == "base.A"
        assert "base.A" in described

    def test_only_a_time_to_live_that_is_on_counts(self):
        disabled = value(INT)
        disabled.enable_time_to_live(
            StateTtlConfig.new_builder(Time.hours(1)).set_update_type(StateTtlConfig.UpdateType.Disabled).build()
        )
        assert schema_of(disabled) == schema_of(value(INT))
        assert schema_of(expiring(value(INT)))["ttl"] is True

    def test_the_order_of_enum_members_does_not_count(self):
        class Color(enum.Enum):
            RED = 1
            BLUE = 2

        first = schema_of(value(Types.ENUM(Color)))

        class Color(enum.Enum):
            BLUE = 2
            RED = 1

        assert schema_of(value(Types.ENUM(Color))) == first


class TestNumbers:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("BYTE", "SHORT"),
            ("SHORT", "INT"),
            ("INT", "LONG"),
            ("LONG", "BIG_INT"),
            ("BYTE", "BIG_INT"),
            ("FLOAT", "DOUBLE"),
        ],
    )
    def test_wider_ones_hold_the_same_objects(self, before, after):
        assert between(getattr(Types, before)(), getattr(Types, after)()) is None

    @pytest.mark.parametrize(
        ("before", "after"),
        [("BYTE", "FLOAT"), ("SHORT", "FLOAT"), ("BYTE", "DOUBLE"), ("SHORT", "DOUBLE"), ("INT", "DOUBLE")],
    )
    def test_whole_numbers_become_floats_where_that_is_exact(self, before, after):
        convert = between(getattr(Types, before)(), getattr(Types, after)())
        assert repr(convert(7)) == "7.0"
        assert convert(None) is None

    def test_a_number_larger_than_was_declared_is_not_rounded_in_silence(self):
        with pytest.raises(
            StateMigrationException,
            match=r"9007199254740993 cannot become DOUBLE without a "
            "change of the value",
        ):
            between(INT, DOUBLE)(2**53 + 1)

    def test_what_is_no_number_is_refused(self):
        with pytest.raises(StateMigrationException, match=r"'1' \(str\) does not fit DOUBLE"):
            between(INT, DOUBLE)("1")

    @pytest.mark.parametrize(
        ("before", "after", "reason"),
        [
            (LONG, INT, "the value: LONG may become BIG_INT or undeclared, not INT"),
            (LONG, DOUBLE, "the value: LONG may become BIG_INT or undeclared, not DOUBLE"),
            (INT, Types.FLOAT(), "the value: INT may become LONG, BIG_INT, DOUBLE or undeclared, not FLOAT"),
            (DOUBLE, Types.FLOAT(), "the value: DOUBLE may only become undeclared, not FLOAT"),
            (STRING, INT, "the value: STRING may only become undeclared, not INT"),
            (Types.BOOLEAN(), INT, "the value: BOOLEAN may only become undeclared, not INT"),
            (Types.TUPLE([INT]), named(a=INT), "the value: TUPLE<INT> may only become undeclared, not ROW<a INT>"),
            (Types.LIST(INT), Types.BASIC_ARRAY(INT), "LIST<INT> may only become undeclared, not BASIC_ARRAY<INT>"),
        ],
    )
    def test_narrower_and_other_types_are_refused(self, before, after, reason):
        message = refused(value(before), value(after))
        assert reason in message
        assert schema_text(schema_of(value(before))) in message
        assert f"is now declared as {schema_text(schema_of(value(after)))}: " in message

    def test_bytes_do_not_become_a_list_of_numbers(self):
        before, after = Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.PRIMITIVE_ARRAY(Types.SHORT())
        assert "BYTE_ARRAY may only become undeclared" in refused(value(before), value(after))
        assert between(before, before) is None


class TestRows:
    def test_fields_are_added_removed_and_put_in_order(self):
        convert = between(named(a=INT, b=STRING, c=INT), named(c=DOUBLE, new=STRING, a=INT))
        migrated = convert(Row(a=1, b="x", c=2))
        assert migrated.get_field_names() == ["c", "new", "a"]
        assert repr(migrated) == "Row(c=2.0, new=None, a=1)"

    def test_a_row_keeps_its_kind(self):
        convert = between(named(a=INT), named(a=INT, b=INT))
        assert convert(Row.of_kind(RowKind.DELETE, a=1)) == Row.of_kind(RowKind.DELETE, a=1, b=None)

    @pytest.mark.parametrize("stored", [(1, "x"), [1, "x"], Row(1, "x"), {"b": "x", "a": 1}, Row(b="x", a=1)])
    def test_whatever_a_row_was_stored_as(self, stored):
        assert between(named(a=INT, b=STRING), named(b=STRING))(stored) == Row(b="x")

    @pytest.mark.parametrize("stored", [(1,), Row(a=1), {"a": 1, "c": 2}, "ab", 7])
    def test_what_is_no_such_row_is_refused(self, stored):
        with pytest.raises(StateMigrationException, match=r"state 's'.*: the value: "):
            between(named(a=INT, b=STRING), named(b=STRING))(stored)

    def test_a_wider_field_needs_no_work(self):
        assert between(named(a=INT), named(a=LONG)) is None

    def test_a_refusal_says_where(self):
        before, after = named(o=Types.LIST(named(n=LONG))), named(o=Types.LIST(named(n=INT)))
        message = refused(value(before), value(after))
        assert "field 'n' of elements of field 'o' of the value: LONG may become" in message

    def test_rows_without_names_keep_their_number_of_fields(self):
        message = refused(value(Types.ROW([INT])), value(Types.ROW([INT, INT])))
        assert "1 fields cannot become 2" in message
        assert "Rows with field names may gain and lose fields" in message

    @pytest.mark.parametrize(
        ("before", "after"), [(Types.ROW([INT]), named(f0=INT)), (named(f0=INT), Types.ROW([INT]))]
    )
    def test_rows_neither_gain_nor_lose_names(self, before, after):
        assert "cannot gain or lose all field names" in refused(value(before), value(after))

    def test_rows_without_names_keep_the_names_they_have(self):
        convert = between(Types.ROW([INT, STRING]), Types.ROW([DOUBLE, STRING]))
        assert repr(convert(Row(x=1, y="a"))) == "Row(x=1.0, y='a')"
        assert repr(convert((1, "a"))) == "Row(f0=1.0, f1='a')"
        assert between(Types.ROW([INT]), Types.ROW([LONG])) is None


class TestComposites:
    def test_parts_are_converted_in_place_of_each_other(self):
        convert = between(
            Types.TUPLE([STRING, Types.MAP(STRING, Types.LIST(INT))]),
            Types.TUPLE([STRING, Types.MAP(STRING, Types.LIST(DOUBLE))]),
        )
        assert repr(convert(("a", {"k": [1, None]}))) == "('a', {'k': [1.0, None]})"
        assert convert(("a", None)) == ("a", None)
        assert convert(None) is None

    def test_tuples_keep_their_number_of_fields(self):
        assert "2 fields cannot become 1" in refused(value(Types.TUPLE([INT, INT])), value(Types.TUPLE([INT])))

    @pytest.mark.parametrize("stored", [(1, 2), "x", 5])
    def test_what_is_no_such_tuple_is_refused(self, stored):
        with pytest.raises(StateMigrationException, match="the value"):
            between(Types.TUPLE([INT]), Types.TUPLE([DOUBLE]))(stored)

    @pytest.mark.parametrize("info", [Types.LIST, lambda of: Types.MAP(STRING, of)])
    def test_what_is_no_such_collection_is_refused(self, info):
        with pytest.raises(StateMigrationException, match="a str was saved where"):
            between(info(INT), info(DOUBLE))("abc")

    @pytest.mark.parametrize("after", [LONG, STRING])
    def test_keys_stay(self, after):
        message = refused(value(Types.MAP(INT, INT)), value(Types.MAP(after, INT)))
        assert (
            f"keys of the value: the type of a map's keys must stay, and INT cannot become {after.notation}" in message
        )
        message = refused(MapStateDescriptor("s", INT, INT), MapStateDescriptor("s", after, INT))
        assert "its keys: the type of a map's keys must stay" in message


class TestKinds:
    def test_each_stays_what_it_is(self):
        message = refused(value(INT), ListStateDescriptor("s", INT))
        assert (
            "was saved as value<INT> and is now declared as list<INT>: value state cannot become list state" in message
        )
        assert "Declare it as before, or give the new state another name" in message

    @pytest.mark.parametrize(
        "make",
        [
            value,
            lambda info: ReducingStateDescriptor("s", max, info),
            lambda info: AggregatingStateDescriptor("s", Total(), info),
        ],
    )
    def test_single_values(self, make):
        assert repr(migration(saved(make(INT)), make(DOUBLE))(1)) == "1.0"
        assert migration(saved(expiring(make(INT))), expiring(make(DOUBLE)))((1, 99)) == (1.0, 99)

    def test_lists(self):
        before, after = ListStateDescriptor("s", INT), ListStateDescriptor("s", DOUBLE)
        assert repr(migration(saved(before), after)([1, 2])) == "[1.0, 2.0]"
        convert = migration(saved(expiring(before)), expiring(after))
        assert repr(convert([(1, 9), (2, 8)])) == "[(1.0, 9), (2.0, 8)]"

    def test_maps(self):
        before, after = MapStateDescriptor("s", STRING, INT), MapStateDescriptor("s", STRING, DOUBLE)
        assert repr(migration(saved(before), after)({"a": 1})) == "{'a': 1.0}"
        convert = migration(saved(expiring(before)), expiring(after))
        assert repr(convert({"a": (1, 9), "b": (None, 8)})) == "{'a': (1.0, 9), 'b': (None, 8)}"

    def test_a_time_to_live_is_not_switched_on_or_off(self):
        on = refused(value(INT), expiring(value(INT)))
        assert "value<INT> and is now declared as value<INT> with TTL" in on
        assert "it was saved without a time to live and is declared with one" in on
        assert "Declare it without a time to live as before, or give the new state another name" in on
        off = refused(expiring(value(INT)), value(INT))
        assert "it was saved with a time to live and is declared without one" in off

    def test_how_long_the_time_to_live_is_may_change(self):
        longer = value(INT)
        longer.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(9)).build())
        assert migration(saved(expiring(value(INT))), longer) is None

    def test_refusals_name_the_part(self):
        assert "its elements: LONG" in refused(ListStateDescriptor("s", LONG), ListStateDescriptor("s", INT))
        message = refused(MapStateDescriptor("s", STRING, LONG), MapStateDescriptor("s", STRING, INT))
        assert "its values: LONG" in message
        make = AggregatingStateDescriptor
        assert "the accumulator: LONG" in refused(make("s", Total(), LONG), make("s", Total(), INT))


class TestUndeclared:
    def test_what_was_declared_may_become_undeclared(self):
        assert between(named(a=INT), None) is None
        assert between(named(a=INT), Types.PICKLED_BYTE_ARRAY()) is None
        assert between(Types.LIST(INT), Types.LIST(Types.PICKLED_BYTE_ARRAY())) is None
        assert migration(saved(MapStateDescriptor("s", STRING, INT)), MapStateDescriptor("s")) is None

    def test_what_was_undeclared_may_be_declared_if_it_fits(self):
        convert = between(None, named(a=INT, b=DOUBLE))
        assert repr(convert((1, 2))) == "Row(a=1, b=2.0)"
        with pytest.raises(
            StateMigrationException, match=r"the value: 'x' \(str\) does not fit INT, in field 0 of ROW"
        ):
            convert(("x", 2))

    def test_within_a_type(self):
        convert = between(named(a=Types.PICKLED_BYTE_ARRAY()), named(a=INT))
        assert convert(Row(a=1)) == Row(a=1)
        with pytest.raises(StateMigrationException, match=r"field 'a' of the value: 'x'"):
            convert(Row(a="x"))

    def test_keys_must_fit_as_they_are(self):
        convert = migration(saved(MapStateDescriptor("s")), MapStateDescriptor("s", named(a=INT), INT))
        assert convert({Row(a=1): 2}) == {Row(a=1): 2}
        with pytest.raises(
            StateMigrationException, match=r"its keys: \(1,\) cannot become ROW\(a INT\) without a change of the value"
        ):
            convert({(1,): 2})
        with pytest.raises(StateMigrationException, match=r"its keys: 'x' \(str\) does not fit"):
            convert({"x": 2})

    def test_expiring_lists_are_checked_one_by_one(self):
        convert = migration(saved(expiring(ListStateDescriptor("s"))), expiring(ListStateDescriptor("s", INT)))
        assert convert([(1, 9)]) == [(1, 9)]
        with pytest.raises(StateMigrationException):
            convert([(1, 9), ("x", 9)])

    def test_instances_of_an_older_class_are_completed(self, shop):
        shop.becomes("@dataclass\nclass Order:\n    id: int")
        schema, stored = saved(value()), pickle.dumps([shop.module.Order(1)])
        shop.becomes("@dataclass\nclass Order:\n    id: int\n    tags: list = field(default_factory=list)")
        assert migration(schema, value(Types.LIST(shop.type())))(pickle.loads(stored)) == [shop.module.Order(1, [])]

    @pytest.mark.parametrize("options", ["slots=True", "slots=True, frozen=True"])
    def test_instances_with_slots_keep_what_they_hold(self, shop, options):
        shop.becomes(f"@dataclass({options})\nclass Order:\n    id: int = 5")
        schema, stored = saved(value()), pickle.dumps(shop.module.Order(1))
        shop.becomes(f"@dataclass({options})\nclass Order:\n    id: int = 5\n    note: str = 'new'")
        restored = migration(schema, value(shop.type()))(pickle.loads(stored))
        assert restored == shop.module.Order(1, "new")

    def test_instances_that_cannot_be_completed_are_refused(self, shop):
        shop.becomes("@dataclass\nclass Order:\n    id: int")
        schema, stored = saved(value()), pickle.dumps(shop.module.Order(1))
        shop.becomes("@dataclass\nclass Order:\n    id: int\n    tags: list")
        with pytest.raises(StateMigrationException, match=r"a saved shop\.Order has no field 'tags'"):
            migration(schema, value(shop.type()))(pickle.loads(stored))


ORDER = "@dataclass\nclass Order:\n    id: int\n    note: str = 'old'"


class TestDataclasses:
    @pytest.mark.parametrize("options", ["", "(frozen=True)", "(eq=False)", "(kw_only=True)"])
    def test_fields_are_added_and_removed(self, shop, options):
        restored = shop.restored(
            ORDER.replace("@dataclass", f"@dataclass{options}"),
            f"""
            @dataclass{options}
            class Order:
                tags: list[str] = field(default_factory=list)
                price: float = 1.5
                id: int = 0
            """,
            lambda module: module.Order(id=7, note="x"),
        )
        assert vars(restored) == {"id": 7, "price": 1.5, "tags": []}

    def test_each_instance_has_its_own_default(self, shop):
        first, second = shop.restored(
            "@dataclass\nclass Order:\n    id: int",
            "@dataclass\nclass Order:\n    id: int\n    tags: list = field(default_factory=list)",
            lambda module: [module.Order(1), module.Order(2)],
            lambda: ListStateDescriptor("s", shop.type()),
        )
        assert first.tags == second.tags == []
        assert first.tags is not second.tags

    def test_what_is_no_field_stays(self, shop):
        restored = shop.restored(
            ORDER + "\n    def __post_init__(self):\n        self.extra = 5",
            "@dataclass\nclass Order:\n    id: int",
            lambda module: module.Order(1),
        )
        assert vars(restored) == {"id": 1, "extra": 5}

    def test_order_defaults_and_freezing_do_not_matter(self, shop):
        shop.becomes(ORDER)
        schema = saved(value(shop.type()))
        shop.becomes("@dataclass(frozen=True)\nclass Order:\n    note: str\n    id: int = 5")
        assert migration(schema, value(shop.type())) is None

    def test_a_new_field_needs_a_default(self, shop):
        message = shop.refused(ORDER, "@dataclass\nclass Order:\n    id: int\n    price: float\n    note: str = 'old'")
        assert "was saved as value<shop.Order> and is now declared as value<shop.Order>" in message
        assert "the field 'price' of shop.Order is new and has no default" in message
        assert "Give it a default or a default_factory" in message

    @pytest.mark.parametrize("options", ["slots=True", "slots=True, frozen=True"])
    def test_with_slots_the_fields_stay(self, shop, options):
        before = f"@dataclass({options})\nclass Order:\n    id: int\n    note: str = 'old'"
        for after in (
            before + "\n    price: float = 1.5",
            f"@dataclass({options})\nclass Order:\n    id: int",
            f"@dataclass({options})\nclass Order:\n    note: str\n    id: int",
        ):
            message = shop.refused(before, after)
            assert "the fields of shop.Order were id, note in slots, and are now " in message
        restored = shop.restored(before, before.replace("'old'", "'new'"), lambda module: module.Order(1, "x"))
        assert (restored.id, restored.note) == (1, "x")

    @pytest.mark.parametrize("frozen", [False, True])
    def test_slots_are_neither_gained_nor_lost(self, shop, frozen):
        with_slots = ORDER.replace("@dataclass", f"@dataclass(slots=True, frozen={frozen})")
        assert "are now id, note in slots" in shop.refused(ORDER, with_slots)
        assert "were id, note in slots, and are now id, note." in shop.refused(with_slots, ORDER)

    def test_instances_are_found_wherever_they_are(self, shop):
        def make(module):
            order = module.Order(1)
            row = Row(o=module.Order(2))
            return ([order, (module.Order(3),)], {"k": row, "set": {module.Order(4)}}, module.Holder(module.Order(5)))

        parts = "\n@dataclass(slots=True, frozen=True)\nclass Holder:\n    order: object"
        any_type = Types.PICKLED_BYTE_ARRAY()
        restored = shop.restored(
            "@dataclass(frozen=True)\nclass Order:\n    id: int" + parts,
            "@dataclass(frozen=True)\nclass Order:\n    id: int\n    price: float = 1.5" + parts,
            make,
            lambda: value(Types.TUPLE([Types.LIST(any_type), Types.MAP(STRING, any_type), shop.type("Holder")])),
        )
        # Holder says nothing about what it holds, and so Order is not described.
        assert "price" not in vars(restored[0][0])

        restored = shop.restored(
            "@dataclass(frozen=True)\nclass Order:\n    id: int" + parts.replace("object", "Order"),
            "@dataclass(frozen=True)\nclass Order:\n    id: int\n    price: float = 1.5"
            + parts.replace("object", "Order"),
            make,
            lambda: value(Types.TUPLE([Types.LIST(any_type), Types.MAP(STRING, any_type), shop.type("Holder")])),
        )
        first, (third,) = restored[0]
        (fourth,) = restored[1]["set"]
        orders = [first, restored[1]["k"].o, third, fourth, restored[2].order]
        assert [vars(order) for order in orders] == [{"id": n, "price": 1.5} for n in range(1, 6)]
        assert fourth in restored[1]["set"]

    def test_in_a_set_a_new_field_needs_a_plain_default(self, shop):
        source = "@dataclass(frozen=True)\nclass Order:\n    id: int"
        with pytest.raises(AttributeError):  # pickle hashes the instance before it can be completed
            shop.restored(
                source,
                source + "\n    tags: tuple = field(default_factory=tuple)",
                lambda module: {module.Order(1)},
            )

    def test_a_circle_ends(self, shop):
        def make(module):
            order = module.Order()
            order.next = order
            return order

        source = "@dataclass\nclass Order:\n    next: Optional['Order'] = None"
        restored = shop.restored(source, source + "\n    n: int = 3", make)
        assert (restored.n, restored.next) == (3, restored)

    def test_instances_of_subclasses_are_completed_too(self, shop):
        special = "\n@dataclass\nclass Special(Order):\n    extra: int = 0\n    note: str = 'special'"
        restored = shop.restored(
            "@dataclass\nclass Order:\n    id: int\n    gone: int = 0\n    extra: int = 0"
            + special.partition("    note")[0],
            "@dataclass\nclass Order:\n    id: int\n    note: str = ''" + special,
            lambda module: module.Special(1, 2, 3),
        )
        assert vars(restored) == {"id": 1, "extra": 3, "note": "special"}

    def test_rows_with_instances(self, shop):
        restored = shop.restored(
            ORDER,
            ORDER + "\n    price: float = 1.5",
            lambda module: {"k": (Row(order=module.Order(1)), 99)},
            lambda: expiring(MapStateDescriptor("s", STRING, named(order=shop.type()))),
        )
        assert restored == {"k": (Row(order=shop.module.Order(1, "old", 1.5)), 99)}

    def test_in_keys_they_stay(self, shop):
        after = ORDER + "\n    price: float = 1.5"
        for declare in (
            lambda: MapStateDescriptor("s", shop.type(), INT),
            lambda: value(Types.LIST(Types.MAP(Types.TUPLE([shop.type()]), INT))),
        ):
            message = shop.refused(ORDER, after, declare)
            assert "the fields of shop.Order changed, and it is in the keys of a map" in message

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("int", "int | None"),
            ("int | None", "int | str | None"),
            ("int", "float"),
            ("int | None", "float | None"),
            ("dict[str, int | None]", "dict[str, int | None] | None"),
            ("str", "Any"),
            ("str", "object"),
        ],
    )
    def test_annotations_may_become_wider(self, shop, before, after):
        source = "@dataclass\nclass Order:\n    x: {}"
        shop.becomes(source.format(before))
        schema = saved(value(shop.type()))
        shop.becomes(source.format(after))
        assert migration(schema, value(shop.type())) is None

    @pytest.mark.parametrize(
        ("before", "after"),
        [("int | None", "int"), ("float", "int"), ("int", "str"), ("int", "dict[str, float | int]"), ("Any", "int")],
    )
    def test_other_annotations_are_refused(self, shop, before, after):
        source = "@dataclass\nclass Order:\n    x: {}"
        message = shop.refused(source.format(before), source.format(after))
        assert f"the field 'x' of shop.Order was {before} and is now " in message
        assert "An annotation may become wider" in message

    def test_names_that_cannot_be_resolved_are_compared_without_modules(self, shop):
        source = "@dataclass\nclass Item:\n    n: int\n@dataclass\nclass Order:\n    items: 'list[Item] | None'"
        shop.becomes(source)
        schema, order = saved(value(shop.type())), shop.type()
        del shop.module.Item
        assert migration(schema, value(order)) is None

    def test_what_a_main_script_imports_from_typing_is_known_in_the_slots(self, shop):
        shop.becomes("@dataclass\nclass Order:\n    before: 'Optional[Order]' = None")
        schema = schema_of(value(shop.type()))
        del shop.module.Optional
        assert schema_of(value(shop.type())) == schema

    def test_another_class_is_refused(self, shop):
        shop.becomes(ORDER + "\n@dataclass\nclass Other:\n    id: int")
        message = refused(value(shop.type()), value(shop.type("Other")))
        assert "the value: shop.Order cannot become shop.Other. The name and the module of a class must not" in message

    def test_what_was_saved_with_its_class_cannot_change(self, shop):
        shop.becomes(ORDER)
        schema, stored = saved(value(shop.type())), shop.module.Order(1)
        shop.becomes(ORDER + "\n    price: float = 1.5")
        with pytest.raises(StateMigrationException, match=r"shop\.Order was saved together with its class"):
            migration(schema, value(shop.type()))(stored)

    def test_a_class_no_longer_mentioned_does_not_matter(self, shop):
        restored = shop.restored(
            "@dataclass\nclass Item:\n    n: int\n@dataclass\nclass Order:\n    id: int\n    item: Item",
            "@dataclass\nclass Item:\n    other: str\n@dataclass\nclass Order:\n    id: int",
            lambda module: module.Order(1, module.Item(2)),
        )
        assert vars(restored) == {"id": 1}

    def test_types_and_classes_may_change_together(self, shop):
        shop.becomes(ORDER)
        schema, stored = saved(value(Types.TUPLE([INT, shop.type()]))), pickle.dumps((1, shop.module.Order(2)))
        shop.becomes(ORDER + "\n    price: float = 1.5")
        convert = migration(schema, value(Types.TUPLE([DOUBLE, shop.type()])))
        assert repr(convert(pickle.loads(stored))) == "(1.0, Order(id=2, note='old', price=1.5))"


class TestEnums:
    SOURCE = "class Color(Enum):\n    RED = 1\n    BLUE = 2"

    def declare(self, shop) -> Any:
        return value(Types.ENUM(shop.module.Color))

    def test_members_may_be_added_and_aliased(self, shop):
        restored = shop.restored(
            self.SOURCE,
            "class Color(Enum):\n    CRIMSON = 1\n    RED = 1\n    GREEN = 3\n    BLUE = 2",
            lambda module: module.Color.RED,
            lambda: self.declare(shop),
        )
        assert restored is shop.module.Color.CRIMSON

    @pytest.mark.parametrize(
        ("after", "lost"),
        [
            ("class Color(Enum):\n    RED = 1", "BLUE = 2"),
            ("class Color(Enum):\n    BLUE = auto()\n    RED = auto()", "RED = 1, BLUE = 2"),
            ("class Color(Enum):\n    RED = 1\n    NAVY = 2", "BLUE = 2"),
        ],
    )
    def test_those_that_were_saved_stay(self, shop, after, lost):
        message = shop.refused(self.SOURCE, after, lambda: self.declare(shop))
        assert f"the enum shop.Color no longer has {lost}. Members may be added" in message

    def test_in_the_field_of_a_dataclass(self, shop):
        order = "\n@dataclass\nclass Order:\n    color: Color"
        message = shop.refused(self.SOURCE + order, "class Color(Enum):\n    RED = 1" + order)
        assert "the enum shop.Color no longer has BLUE = 2" in message

    def test_new_members_do_not_change_keys(self, shop):
        restored = shop.restored(
            self.SOURCE,
            self.SOURCE + "\n    GREEN = 3",
            lambda module: {module.Color.RED: 1},
            lambda: MapStateDescriptor("s", Types.ENUM(shop.module.Color), INT),
        )
        assert restored == {shop.module.Color.RED: 1}

    def test_an_enum_does_not_become_a_dataclass(self, shop):
        order = "\n@dataclass\nclass Order:\n    color: Color"
        after = "@dataclass\nclass Color:\n    RED: int" + order
        assert "shop.Color was saved as a class of the kind enum" in shop.refused(self.SOURCE + order, after)
