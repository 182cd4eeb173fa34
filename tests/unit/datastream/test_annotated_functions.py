"""Return annotations of functions state the type of a stream, and must not contradict a declared type."""

from __future__ import annotations

# The annotations that tests give as texts are evaluated with these names.
# ruff: noqa: F401, UP035
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import partial, wraps
from typing import Any, Dict, Generic, List, Literal, NamedTuple, Tuple, TypedDict, TypeVar

import numpy as np
import pytest

from penstock.cep import CEP, Pattern
from penstock.common import Duration, Row, Types
from penstock.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    CoMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.window import CountTumblingWindowAssigner, TumblingEventTimeWindows
from penstock.errors import InvalidArgument, TypeMismatch
from penstock.testing import in_process

T = TypeVar("T")


@dataclass
class Order:
    customer: str
    amount: int


class Colour(Enum):
    RED = 1


class Pair(NamedTuple):
    word: str
    count: int


class Sale(TypedDict):
    word: str
    count: int


@pytest.fixture
def numbers():
    return StreamExecutionEnvironment().set_parallelism(1).from_elements(1, 2, 3).map(lambda value: value)


def function_with(annotation: Any) -> Callable[[Any], Any]:
    def function(value):
        return value

    function.__annotations__["return"] = annotation
    return function


# --- the stated type ---
STATED = {
    "int": Types.LONG(),
    "str | None": Types.STRING(),
    "tuple[str, int]": Types.TUPLE([Types.STRING(), Types.LONG()]),
    "list[float]": Types.LIST(Types.DOUBLE()),
    "dict[str, bool]": Types.MAP(Types.STRING(), Types.BOOLEAN()),
    "Order": Types.DATACLASS(Order),
    "Colour": Types.ENUM(Colour),
    "Decimal": Types.BIG_DEC(),
}


@pytest.mark.parametrize("annotation", STATED)
def test_the_annotation_of_a_function_is_the_type_of_its_stream(numbers, annotation):
    assert numbers.map(function_with(annotation)).get_type() == STATED[annotation]
    assert numbers.map(function_with(eval(annotation))).get_type() == STATED[annotation]


@pytest.mark.parametrize(
    "annotation", ["Any", "object", "T", "int | str", "Unknown", "Row", "np.int64", "None", "list", "List", "Tuple"]
)
def test_an_annotation_that_says_nothing_definite_states_no_type(numbers, annotation):
    assert numbers.map(function_with(annotation)).get_type() is None


def test_the_name_of_a_local_class_is_found_if_the_function_uses_it_and_else_states_nothing(numbers):
    @dataclass
    class Local:
        value: int

    def used(value) -> Local:
        return Local(value)

    def unused(value) -> Local:
        return value

    assert numbers.map(used).get_type() == Types.DATACLASS(Local)
    assert numbers.map(unused).get_type() is None


def test_classes_partial_functions_and_callable_objects_state_a_type(numbers):
    def add(one: int, other: int) -> int:
        return one + other

    class Doubled:
        def __call__(self, value: int) -> int:
            return 2 * value

        def method(self, value: int) -> str:
            return str(value)

    assert numbers.map(str).get_type() == Types.STRING()
    assert numbers.map(partial(add, 1)).get_type() == Types.LONG()
    assert numbers.map(Doubled()).get_type() == Types.LONG()
    assert numbers.map(Doubled().method).get_type() == Types.STRING()
    assert numbers.map(lambda value: value).get_type() is None
    assert numbers.map(abs).get_type() is None


@pytest.mark.parametrize(
    "annotation",
    ["Iterator[int]", "Iterable[int] | None", "list[int]", "Generator[int, None, None]", "tuple[int, ...]"],
)
def test_flat_map_takes_the_type_of_the_elements(numbers, annotation):
    assert numbers.flat_map(function_with(annotation)).get_type() == Types.LONG()


@pytest.mark.parametrize("annotation", ["int", "None", "list", "Iterator[int | str]", "str", "tuple[int, int]"])
def test_flat_map_without_the_type_of_elements_states_nothing(numbers, annotation):
    assert numbers.flat_map(function_with(annotation)).get_type() is None


class Upper(MapFunction):
    def map(self, value: Any) -> str:
        return str(value)


class Inherits(Upper):
    pass


class Open(MapFunction[T, T], Generic[T]):
    def map(self, value: T) -> T:
        return value


class Counts(KeyedProcessFunction):
    def process_element(self, value, ctx) -> Iterator[int | tuple[OutputTag[str], str]]:
        yield value


class Timed(Counts):
    def on_timer(self, timestamp, ctx) -> Iterator[str]:
        yield ""


class Quiet(Counts):
    def on_timer(self, timestamp, ctx) -> None:
        pass


class Untyped(Counts):
    def on_timer(self, timestamp, ctx):
        yield ""


class Both(CoMapFunction):
    def map1(self, value: int) -> str:
        return str(value)

    def map2(self, value: int) -> str:
        return str(value)


class Mean(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        return [*accumulator, value]

    def get_result(self, accumulator: list[int]) -> float:
        return sum(accumulator) / len(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [*acc_a, *acc_b]


class Sizes(ProcessWindowFunction):
    def process(self, key: int, context: ProcessWindowFunction.Context, elements: Iterable[int]) -> Iterable[Decimal]:
        yield Decimal(0)


class Ask(AsyncFunction):
    async def async_invoke(self, value: int) -> list[str]:
        return [str(value)]


class Parity(KeySelector):
    def get_key(self, value: int) -> bool:
        return value % 2 == 0


class Texts(ReduceFunction):
    def reduce(self, value1: str, value2: str) -> str:
        return value1 + value2


def test_methods_of_function_classes_state_a_type(numbers):
    keyed = numbers.key_by(lambda value: value)
    windowed = keyed.window(CountTumblingWindowAssigner(2))
    hours = Duration.of_hours(1)
    assert numbers.map(Upper()).get_type() == Types.STRING()
    assert numbers.map(Inherits()).get_type() == Types.STRING()
    assert numbers.map(Open()).get_type() is None
    assert keyed.process(Counts()).get_type() == Types.LONG()
    assert keyed.process(Quiet()).get_type() == Types.LONG()
    assert keyed.process(Timed()).get_type() is None
    assert keyed.process(Untyped()).get_type() is None
    assert numbers.connect(numbers).map(Both()).get_type() == Types.STRING()
    assert windowed.aggregate(Mean()).get_type() == Types.DOUBLE()
    assert windowed.aggregate(Mean(), Sizes()).get_type() == Types.BIG_DEC()
    assert windowed.process(Sizes()).get_type() == Types.BIG_DEC()
    assert windowed.reduce(Texts()).get_type() == Types.STRING()
    assert keyed.reduce(Texts()).get_type() == Types.STRING()
    assert AsyncDataStream.ordered_wait(numbers, Ask(), hours).get_type() == Types.STRING()
    assert numbers.key_by(Parity()).get_key_type() == Types.BOOLEAN()
    assert numbers.key_by(function_with(str)).get_key_type() == Types.STRING()


def test_joins_and_patterns_state_a_type(numbers):
    def matched(match: dict[str, list[int]]) -> str:
        return ""

    def several(match: dict[str, list[int]]) -> Iterator[str]:
        yield ""

    def joined(left: int, right: int) -> str:
        return ""

    hour = TumblingEventTimeWindows.of(Duration.of_hours(1))
    pairs = numbers.join(numbers).where(abs).equal_to(abs).window(hour)
    groups = numbers.co_group(numbers).where(abs).equal_to(abs).window(hour)
    matches = CEP.pattern(numbers, Pattern.begin("a"))
    assert pairs.apply(joined).get_type() == Types.STRING()
    assert groups.apply(several).get_type() == Types.STRING()
    assert matches.select(matched).get_type() == Types.STRING()
    assert matches.flat_select(several).get_type() == Types.STRING()


def test_operators_that_keep_records_keep_the_stated_type(numbers):
    texts = numbers.map(Upper())
    keyed = texts.key_by(lambda value: value)
    for kept in (
        texts.filter(bool),
        texts.rebalance(),
        texts.union(numbers.map(Upper())),
        keyed,
        keyed.reduce(max),
        keyed.max(0),
        keyed.window(CountTumblingWindowAssigner(2)).reduce(max),
        keyed.window(CountTumblingWindowAssigner(2)).max(0),
    ):
        assert kept.get_type() == Types.STRING()
    assert texts.union(numbers).get_type() is None
    assert "DataStream of String" in repr(texts)


def test_values_are_neither_checked_nor_converted_nor_printed_in_another_form(capsys):
    def imprecise(value) -> float:
        return value

    with in_process():
        env = StreamExecutionEnvironment().set_parallelism(1)
        stream = env.from_elements(1, True, "a").map(imprecise)
        stream.rebalance().print()
        env.execute()
        assert sorted(capsys.readouterr().out.split()) == ["1", "True", "a"]


# --- contradictions ---
CONTRADICTIONS = [
    ("int", Types.STRING()),
    ("str", Types.LONG()),
    ("str | None", Types.LONG()),
    ("bytes", Types.STRING()),
    ("list[int]", Types.LIST(Types.STRING())),
    ("tuple[int, str]", Types.TUPLE([Types.LONG(), Types.LONG()])),
    ("tuple[int, str]", Types.TUPLE([Types.LONG()])),
    ("tuple[int, str]", Types.ROW([Types.STRING(), Types.STRING()])),
    ("dict[str, int]", Types.MAP(Types.STRING(), Types.STRING())),
    ("Order", Types.STRING()),
    ("Order", Types.ROW_NAMED(["other"], [Types.STRING()])),
    ("Colour", Types.LONG()),
    ("Pair", Types.TUPLE([Types.STRING()])),
    ("Row", Types.LONG()),
]
AGREEMENTS = [
    ("int", Types.INT()),
    ("int", Types.DOUBLE()),
    ("int", Types.BOOLEAN()),
    ("float", Types.INT()),
    ("bool", Types.INT()),
    ("str", Types.CHAR()),
    ("int", Types.BIG_DEC()),
    ("Sequence[str]", Types.STRING()),
    ("int | str", Types.STRING()),
    ("Any", Types.STRING()),
    ("object", Types.STRING()),
    ("T", Types.STRING()),
    ("Unknown", Types.STRING()),
    ("np.int64", Types.LONG()),
    ("np.float64", Types.DOUBLE()),
    ("list", Types.LIST(Types.LONG())),
    ("List", Types.LIST(Types.LONG())),
    ("Tuple", Types.TUPLE([Types.STRING(), Types.INT()])),
    ("Tuple[str, int]", Types.TUPLE([Types.STRING(), Types.INT()])),
    ("Dict", Types.MAP(Types.STRING(), Types.INT())),
    ("Literal['a']", Types.STRING()),
    ("Callable[[int], str]", Types.STRING()),
    ("list[Any]", Types.LIST(Types.LONG())),
    ("tuple[Any, int]", Types.TUPLE([Types.STRING(), Types.INT()])),
    ("tuple[int, ...]", Types.LIST(Types.INT())),
    ("tuple[str, int]", Types.ROW([Types.STRING(), Types.INT()])),
    ("list[int]", Types.TUPLE([Types.INT()])),
    ("Order", Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.INT()])),
    ("Pair", Types.TUPLE([Types.STRING(), Types.INT()])),
    ("Sale", Types.MAP(Types.STRING(), Types.PICKLED_BYTE_ARRAY())),
    ("Row", Types.ROW([Types.STRING()])),
    ("int", Types.PICKLED_BYTE_ARRAY()),
    ("None", Types.STRING()),
]


@pytest.mark.parametrize(("annotation", "declared"), CONTRADICTIONS)
def test_a_contradiction_is_an_error_that_names_both(numbers, annotation, declared):
    function = function_with(annotation)
    with pytest.raises(InvalidArgument) as caught:
        numbers.map(function, declared)
    message = str(caught.value)
    assert message.startswith("Map: the function function_with.<locals>.function (test_annotated_functions.py, line ")
    assert "is annotated '-> " in message
    assert f"the declared type {declared.notation}" in message
    with pytest.raises(InvalidArgument, match=r"^Parse: "):
        numbers.map(function).name("Parse").returns(declared)
    with pytest.raises(InvalidArgument, match=r"^the key of 'Map': "):
        numbers.key_by(function, declared)


@pytest.mark.parametrize(("annotation", "declared"), AGREEMENTS)
def test_an_imprecise_annotation_is_no_contradiction(numbers, annotation, declared):
    function = function_with(annotation)
    assert numbers.map(function, declared).get_type() == declared
    assert numbers.map(function).returns(declared).get_type() == declared
    assert numbers.key_by(function, declared).get_key_type() == declared


def test_contradictions_in_methods_of_function_classes(numbers):
    keyed = numbers.key_by(lambda value: value)
    windowed = keyed.window(CountTumblingWindowAssigner(2))
    hour, text, number = Duration.of_hours(1), Types.STRING(), Types.LONG()
    for method, build in {
        "Upper.map": lambda: numbers.map(Upper(), number),
        "Counts.process_element": lambda: keyed.process(Counts(), text),
        "Timed.on_timer": lambda: keyed.process(Timed(), number),
        "Both.map1": lambda: numbers.connect(numbers).map(Both(), number),
        "Mean.get_result": lambda: windowed.aggregate(Mean(), output_type=text),
        "Sizes.process": lambda: windowed.aggregate(Mean(), Sizes(), output_type=text),
        "Ask.async_invoke": lambda: AsyncDataStream.ordered_wait(numbers, Ask(), hour, output_type=number),
        "Parity.get_key": lambda: numbers.key_by(Parity(), text),
        "Texts.reduce": lambda: numbers.map(abs, number).key_by(abs).reduce(Texts()),
    }.items():
        with pytest.raises(InvalidArgument, match=rf"the function {method} \(test_annotated_functions.py, line "):
            build()


def test_a_decorator_with_another_module_does_not_hide_the_annotation(numbers):
    def logged(function):
        @wraps(function)
        def call(*arguments):
            return function(*arguments)

        return call

    @logged
    def length(value: str) -> Sequence[int]:
        return [len(value)]

    assert numbers.map(length).get_type() == Types.LIST(Types.LONG())


def test_an_annotation_does_not_change_how_values_are_checked():
    """Records are checked against declared types alone, so a stated type costs nothing for each record."""

    def text(value) -> str:
        return value

    with in_process():
        env = StreamExecutionEnvironment().set_parallelism(1)
        with env.from_elements(1).map(text).rebalance().execute_and_collect() as results:
            assert list(results) == [1]
        env.from_elements(1).map(text, Types.STRING()).rebalance().discard()
        with pytest.raises(TypeMismatch):
            env.execute()
