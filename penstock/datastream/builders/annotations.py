"""Types of results that functions state in their return annotations."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import inspect
import itertools
import types
from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin, is_typeddict

from penstock.api.functions.element_functions import Function
from penstock.api.output_tag import OutputTag
from penstock.common.python_types import type_of_class
from penstock.common.typeinfo import PickledBytesTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row
from penstock.errors import InvalidArgument, TypeMismatch

_ONE = {"OUT", "T"}
_MANY = {"Outputs[OUT]", "TaggedOutputs[OUT]", "Iterable[OUT]", "Awaitable[Iterable[OUT]] | None"}
"""Annotations of the methods of function classes that return results: one of them, or any number."""
_KNOWN_MODULES = {"builtins", "collections", "collections.abc"}
"""Modules whose generic iterables have the type of their elements as the first parameter."""
_MOST_SAMPLES = 16


class Results(NamedTuple):
    """A function whose results an operator emits."""

    function: Any
    many: bool = False
    """True if a plain function returns an iterable of results. Function classes say it themselves."""


class _Statement(NamedTuple):
    """The annotated type of a function's results, and the text that names the function."""

    result: Any
    text: str


def annotated_type(results: Results) -> TypeInformation[Any] | None:
    """Return the type of the results that a function's return annotation states; None if it states none.

    A function class with several methods states a type if all their annotations agree.
    """
    kinds = [type_of_class(statement.result) for statement in _statements(*results)]
    if not kinds or kinds.count(kinds[0]) != len(kinds) or isinstance(kinds[0], PickledBytesTypeInfo):
        return None
    return kinds[0]


def check_annotation(operator: str, results: Results, declared: TypeInformation[Any] | None) -> None:
    """Raise if no result that a function's return annotation allows fits the declared type.

    Annotations that are merely imprecise are accepted: a float may be an int, and unknown types may be anything.
    """
    if declared is None:
        return
    for statement in _statements(*results):
        if not _can_fit(statement.result, declared):
            raise InvalidArgument(
                f"{operator}: {statement.text}, so its results never fit the declared type {declared.notation}: "
                "change one of the two, or leave one of them out",
                argument="output_type",
            )


# --- annotations of functions ---
def _statements(function: Any, many: bool) -> list[_Statement]:
    if isinstance(function, Function):
        made = [
            _statement(method, each, f"{type(function).__qualname__}.{name}")
            for name, each in _methods_with_results(type(function))
            if (method := _own_method(type(function), name)) is not None
        ]
        return [statement for statement in made if statement is not None]
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, type):
        stated = [] if many or type_of_class(function) is None else [_Statement(function, f"{function.__qualname__}()")]
        return [_Statement(one.result, f"{one.text} returns {_name(one.result)}") for one in stated]
    called = function if inspect.isroutine(function) else inspect.getattr_static(type(function), "__call__", None)
    plain = getattr(called, "__func__", called)
    if not isinstance(plain, types.FunctionType) or plain.__name__ == "<lambda>" or _is_ours(plain):
        return []
    statement = _statement(plain, many, getattr(function, "__qualname__", type(function).__qualname__))
    return [] if statement is None else [statement]


def _methods_with_results(kind: type) -> Iterator[tuple[str, bool]]:
    """Return the methods that give an operator its results, each with True if it returns any number of them."""
    seen = set()
    for base in kind.__mro__:
        if not (issubclass(base, Function) and _is_ours(base)):
            continue
        for name, member in vars(base).items():
            stated = getattr(member, "__annotations__", {}).get("return") if callable(member) else None
            if name not in seen and isinstance(stated, str) and stated in _ONE | _MANY:
                seen.add(name)
                yield name, stated in _MANY


def _own_method(kind: type, name: str) -> types.FunctionType | None:
    """Return a method if a program has written it; None if it is ours."""
    method = inspect.getattr_static(kind, name)
    method = getattr(method, "__func__", method)
    return method if isinstance(method, types.FunctionType) and not _is_ours(method) else None


def _is_ours(one: Any) -> bool:
    return str(getattr(one, "__module__", "")).startswith("penstock.")


def _statement(function: types.FunctionType, many: bool, name: str) -> _Statement | None:
    function = inspect.unwrap(function)
    annotation = _return_annotation(function)
    if annotation is None or annotation is type(None):
        return None
    result = _element(annotation) if many else annotation
    place = f"{Path(function.__code__.co_filename).name}, line {function.__code__.co_firstlineno}"
    return _Statement(result, f"the function {name} ({place}) is annotated '-> {_name(annotation)}'")


def _return_annotation(function: types.FunctionType) -> Any:
    """Return the annotation, or Any if there is none or it cannot be evaluated, as with the name of a local class."""
    try:
        annotation = function.__annotations__.get("return", Any)
        if isinstance(annotation, str):
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
            annotation = eval(annotation, function.__globals__, {name: cell.cell_contents for name, cell in cells})
    except Exception:
        return Any
    return annotation


def _element(annotation: Any) -> Any:
    """Return the type of the results in an annotation such as Iterator[int] | None, without those of side outputs."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        kinds = [one for one in args if one is not type(None)]
        return _element(kinds[0]) if len(kinds) == 1 else Any
    if origin is tuple and args[1:] != (...,):
        return Any
    if getattr(origin, "__module__", "") not in _KNOWN_MODULES or not issubclass(origin, collections.abc.Iterable):
        return Any
    return _without_side_outputs(args[0]) if args else Any


def _without_side_outputs(result: Any) -> Any:
    if get_origin(result) not in (Union, types.UnionType):
        return Any if _is_tagged(result) else result
    kinds = [one for one in get_args(result) if not _is_tagged(one)]
    return Union[tuple(kinds)] if kinds else Any  # noqa: UP007 - the number of parts is not known


def _is_tagged(result: Any) -> bool:
    args = get_args(result)
    return get_origin(result) is tuple and bool(args) and (get_origin(args[0]) or args[0]) is OutputTag


def _name(annotation: Any) -> str:
    return annotation.__qualname__ if type(annotation) is type else str(annotation).replace("typing.", "")


# --- contradictions ---
def _can_fit(result: Any, declared: TypeInformation[Any]) -> bool:
    if result is Row:
        return isinstance(declared, (RowTypeInfo, TupleTypeInfo)) or _fits(Row(), declared)
    return any(_fits(sample, declared) for sample in _samples(result))


def _fits(sample: Any, declared: TypeInformation[Any]) -> bool:
    try:
        declared.fit([sample])
    except TypeMismatch:
        return False
    except Exception:  # of a type that a program has written: what it refuses is not known
        return True
    return True


_SIMPLE: dict[Any, Sequence[Any]] = {
    str: ("a",),
    int: (1, True),
    float: (1.5, 1, True),
    bool: (True,),
    bytes: (b"a",),
    Decimal: (Decimal(1),),
    datetime.date: (datetime.date(2000, 1, 1), datetime.datetime(2000, 1, 1)),
    datetime.datetime: (datetime.datetime(2000, 1, 1),),
    datetime.time: (datetime.time(12),),
}
_UNKNOWN = (None,)
"""The samples of an unknown type: None fits every declared type."""


def _samples(kind: Any) -> Sequence[Any]:
    """Return values of a type, of every form that it can have."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return [sample for one in args if one is not type(None) for sample in _samples(one)] or _UNKNOWN
    if origin is not None:
        return _composite_samples(origin, args)
    if not isinstance(kind, type):
        return _UNKNOWN
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if issubclass(kind, Enum):
        return list(kind)[:1] or _UNKNOWN
    return _record_samples(kind)


def _composite_samples(origin: Any, args: tuple[Any, ...]) -> Sequence[Any]:
    if not args:
        return _UNKNOWN
    if origin is tuple and args[1:] != (...,):
        return list(itertools.islice(itertools.product(*map(_samples, args)), _MOST_SAMPLES))
    if origin is tuple:
        return [(sample,) for sample in _samples(args[0])]
    if origin is list:
        return [[sample] for sample in _samples(args[0])]
    if origin is dict:
        pairs = itertools.product(*map(_samples, args))
        return [{key: value} for key, value in itertools.islice(pairs, _MOST_SAMPLES)]
    return _UNKNOWN


def _record_samples(kind: type[Any]) -> Sequence[Any]:
    """Return a record without values of a dataclass, NamedTuple or TypedDict."""
    if is_typeddict(kind):
        return [dict.fromkeys(kind.__annotations__)]
    try:
        if dataclasses.is_dataclass(kind):
            record: Any = object.__new__(kind)
            for field in dataclasses.fields(kind):
                object.__setattr__(record, field.name, None)
            return [record]
    except (TypeError, AttributeError):  # a class that allows no empty records, or no such fields
        return _UNKNOWN
    if issubclass(kind, tuple) and (names := getattr(kind, "_fields", ())):
        return [tuple.__new__(kind, [None] * len(names))]
    return _UNKNOWN
