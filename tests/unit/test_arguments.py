"""`check_arguments`: what annotations allow, what is converted, and what the error says."""

from __future__ import annotations

import enum
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence  # noqa: F401 - named in annotations
from typing import TYPE_CHECKING, Any, Literal, TypeVar  # noqa: F401 - named in annotations

import pytest

from penstock.base.arguments import check_arguments
from penstock.errors import InvalidArgument, ProgramError

if TYPE_CHECKING:
    import decimal  # noqa: F401 - named in annotations

    import colorsys_that_nobody_imports as elsewhere  # noqa: F401 - named in annotations

T = TypeVar("T")
B = TypeVar("B", bound=int)


class Mode(enum.Enum):
    FAST = 1
    Slow = 2


class Length:
    _also_allowed = " or a number of metres"

    def __init__(self, metres):
        self.metres = metres

    @staticmethod
    def _of_argument(value):
        return Length(value) if isinstance(value, int) else None


class Longer(Length):
    pass


class Index:
    """A whole number of another library."""

    def __index__(self):
        return 7


def given(annotation, value):
    """Return what a function with this annotation receives."""

    def function(argument):
        return argument

    function.__annotations__ = {"argument": annotation}
    return check_arguments(function)(value)


LENGTH = Length(1)
ALLOWED = [
    ("int", 1, 1),
    ("int", Index(), 7),
    ("float", 1, 1),
    ("float", 1.5, 1.5),
    ("str", "a", "a"),
    ("bool", True, True),
    ("bytes", bytearray(b"a"), b"a"),
    ("int | None", None, None),
    ("Any", LENGTH, LENGTH),
    ("object", LENGTH, LENGTH),
    ("T", LENGTH, LENGTH),
    ("B", 3, 3),
    ("Mode", Mode.FAST, Mode.FAST),
    ("Mode", "Slow", Mode.Slow),
    ("str | Mode", "Slow", "Slow"),
    ("Length", LENGTH, LENGTH),
    ("Literal['a', 'b']", "b", "b"),
    ("Callable[[int], int]", len, len),
    ("Callable[..., Any]", int, int),
    ("type[Length]", Longer, Longer),
    ("list[int]", [1, 2], [1, 2]),
    ("list[int]", (1, Index()), [1, 7]),
    ("Sequence[Mode]", ["FAST", Mode.Slow], [Mode.FAST, Mode.Slow]),
    ("Iterable[int]", {5}, {5}),
    ("Iterable[Any]", "ab", "ab"),
    ("tuple[str, ...]", ("a", "b"), ("a", "b")),
    ("tuple[str, int]", ("a", 1), ("a", 1)),
    ("dict[str, Mode]", {"a": "FAST"}, {"a": Mode.FAST}),
    ("Mapping[str, int]", {"a": 1}, {"a": 1}),
    ("Length | decimal.Decimal", LENGTH, LENGTH),
    ("elsewhere.Colour | None", None, None),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), ALLOWED)
def test_what_an_annotation_allows(annotation, value, expected):
    found = given(annotation, value)
    assert (found, type(found)) == (expected, type(expected))


def test_an_iterator_is_read_only_where_its_elements_are_checked():
    numbers = iter([1, 2])
    assert given("Iterable[Any]", numbers) is numbers
    assert given("Iterable[int]", numbers) == [1, 2]


def test_what_a_class_takes_for_its_objects():
    assert given("Length", 5).metres == 5
    assert given("list[Length]", [5, LENGTH])[1] is LENGTH


REFUSED = [
    ("int", True, "a whole number, not True (bool)"),
    ("int", "1", "a whole number, not '1' (str)"),
    ("int", 1.0, "a whole number, not 1.0 (float)"),
    ("float", False, "a number, not False (bool)"),
    ("str", b"a", "a string, not b'a' (bytes)"),
    ("str", None, "a string, not None (NoneType)"),
    ("bool", 1, "True or False, not 1 (int)"),
    ("bytes", "a", "bytes, not 'a' (str)"),
    ("int | str | None", 1.5, "a whole number, a string or None, not 1.5 (float)"),
    ("B", "x", "a whole number, not 'x' (str)"),
    ("Mode", "SLOW", "a Mode or its name as a string, one of 'FAST', 'Slow', not 'SLOW' (str)"),
    ("Mode", 1, "a Mode or its name as a string, one of 'FAST', 'Slow', not 1 (int)"),
    ("Length", "x", "a Length or a number of metres, not 'x' (str)"),
    ("Longer", Longer, "(type); write Longer()"),
    ("Literal['a', 'b']", "c", "one of 'a', 'b', not 'c' (str)"),
    ("Literal[1]", True, "1, not True (bool)"),
    ("Callable[[int], int]", 3, "a function, not 3 (int)"),
    ("type[Length]", LENGTH, "the class Length or one derived from it, not"),
    ("list[int]", ["1"], "a list of which each element is a whole number, not ['1'] (list)"),
    ("Sequence[str]", "ab", "a Sequence of which each element is a string, not 'ab' (str)"),
    ("Iterable[str]", "ab", "an Iterable of which each element is a string, not 'ab' (str)"),
    ("tuple[str, int]", ("a", "b"), "a tuple of 2: a string, a whole number, not ('a', 'b') (tuple)"),
    ("tuple[str, int]", ("a",), "a tuple of 2: a string, a whole number, not ('a',) (tuple)"),
    ("dict[str, int]", {"a": "b"}, "a dict of which each key is a string and each value is a whole number, not"),
    ("Mapping[str, Any]", [("a", 1)], "a Mapping of which each key is a string, not"),
    ("decimal.Decimal", 1, "a Decimal of decimal, not 1 (int)"),
    ("elsewhere.Colour", 1, "a Colour of colorsys_that_nobody_imports, not 1 (int)"),
]


@pytest.mark.parametrize(("annotation", "value", "message"), REFUSED)
def test_what_an_annotation_refuses(annotation, value, message):
    with pytest.raises(InvalidArgument) as caught:
        given(annotation, value)
    assert f"function: the argument argument must be {message}" in str(caught.value) or message.endswith("()")
    assert message in str(caught.value)
    assert (caught.value.method, caught.value.argument) == ("function", "argument")


def test_the_error_is_a_type_error_and_survives_pickling():
    with pytest.raises(InvalidArgument) as caught:
        given("int", "x")
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, TypeError)
    assert isinstance(error, ProgramError)
    assert (str(error), error.argument) == (str(caught.value), "argument")


class Contract:
    """Not checked: the engine calls it for each record."""

    def act(self, value: int) -> int:
        raise NotImplementedError


@check_arguments
class Builder(Contract):
    def __init__(self, name: str, mode: Mode = Mode.FAST) -> None:
        self.name, self.mode = name, mode

    def set(self, *numbers: int, flag: bool = False, **more: str) -> Any:
        return numbers, flag, more

    @staticmethod
    def of(name: str) -> Builder:
        return Builder(name)

    @classmethod
    def by(cls, mode: Mode) -> Builder:
        return cls("by", mode)

    def act(self, value: int) -> int:
        return value

    def _private(self, value: int) -> int:
        return value


class Derived(Builder):
    pass


def test_a_class_checks_its_constructor_and_its_public_methods():
    assert Builder("a", "Slow").mode is Mode.Slow
    assert Derived.by("Slow").mode is Mode.Slow
    assert Builder("a").set(1, Index(), flag=True, x="y") == ((1, 7), True, {"x": "y"})
    wrong = {
        "Builder: the argument name": lambda: Builder(3),
        "Derived: the argument mode": lambda: Derived("a", mode="slow"),
        "Builder.of: the argument name": lambda: Derived.of(1),
        "Derived.by: the argument mode": lambda: Derived.by(1),
        "Derived.set: the argument numbers": lambda: Derived("a").set(1, "2"),
        "Builder.set: the argument flag": lambda: Builder("a").set(flag=1),
        "Builder.set: the argument x": lambda: Builder("a").set(x=1),
    }
    for message, call in wrong.items():
        with pytest.raises(InvalidArgument, match=f"^{message} must be"):
            call()


def test_promises_to_the_engine_and_private_methods_are_left_alone():
    builder = Builder("a")
    assert (builder.act("x"), builder._private("x")) == ("x", "x")


def test_a_wrong_number_of_arguments_is_pythons_own_error():
    for call in (lambda: Builder(), lambda: Builder("a", Mode.FAST, 3), lambda: Builder("a", wrong=1)):
        with pytest.raises(TypeError, match=r"__init__\(\)") as caught:
            call()
        assert not isinstance(caught.value, InvalidArgument)


def test_passwords_are_not_shown():
    @check_arguments
    def log_in(password: str) -> None:
        pass

    with pytest.raises(InvalidArgument, match=r"the argument password must be a string, not \*{6} \(bytes\)"):
        log_in(b"secret")


def test_a_module_that_is_not_imported_stays_so():
    with warnings.catch_warnings():
        given("elsewhere.Colour | None", None)
    assert "colorsys_that_nobody_imports" not in sys.modules
