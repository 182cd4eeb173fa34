"""Checks the arguments of public methods against their annotations: `check_arguments` for classes and functions.

A checker is made when a method is called for the first time. It accepts what the annotation says, converts what has an
obvious meaning (the name of an enum's member, a Python type where a type is declared, a tuple for a list), and refuses
everything else with an InvalidArgument that names the method, the argument, what was given and what is allowed.

Only methods that build or configure a program are checked, never one that is called for each record: a method that
overrides one of a class that is not checked keeps a promise to the engine, and is left as it is.
"""

from __future__ import annotations

import ast
import collections.abc
import enum
import functools
import importlib
import inspect
import numbers
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, TypeVar, Union, get_args, get_origin

from penstock.errors import InvalidArgument

__all__ = ["check_arguments", "invalid_argument", "is_function"]

T = TypeVar("T")
REFUSED: Any = object()
"""The result of a conversion for a value that is not allowed."""

_short = Repr()
_short.maxstring = _short.maxother = 80


def check_arguments(target: T) -> T:
    """Check the arguments of a function, or of the public methods and the constructor of a class, in each call."""
    if not isinstance(target, type):
        return typing.cast(T, _wrap_function(typing.cast(Any, target)))
    target._checks_arguments = True  # type: ignore[attr-defined]
    for name, member in list(vars(target).items()):
        if name == "__init__" or not (name.startswith("_") or _is_promised(target, name)):
            _wrap_member(target, name, member)
    return target


def _is_promised(owner: type, name: str) -> bool:
    """Return True if an unchecked base class has the method too. The engine then calls it, perhaps for each record."""
    return any(name in vars(base) and "_checks_arguments" not in vars(base) for base in owner.__mro__[1:])


def _wrap_member(owner: type, name: str, member: Any) -> None:
    function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
    if not isinstance(function, types.FunctionType) or getattr(function, "__isabstractmethod__", False):
        return
    if hasattr(function, "_checks_arguments"):
        return
    code = function.__code__
    receiver = 0 if isinstance(member, staticmethod) else 1
    if code.co_argcount + code.co_kwonlyargcount <= receiver and not code.co_flags & _VARIABLE:
        return
    wrapped = _wrap_function(function, owner, receiver)
    setattr(owner, name, type(member)(wrapped) if function is not member else wrapped)


_VARIABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _wrap_function(function: Callable[..., Any], owner: type | None = None, receiver: int = 0) -> Callable[..., Any]:
    check: _Arguments | None = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal check
        if check is None:
            check = _Arguments(function, owner, receiver)
        args, kwargs = check(args, kwargs)
        return function(*args, **kwargs)

    call._checks_arguments = True  # type: ignore[attr-defined]
    return call


class _Arguments:
    """The checkers of one function's parameters."""

    def __init__(self, function: Callable[..., Any], owner: type | None, receiver: int) -> None:
        self._function = function
        self._owner = owner
        self._receiver = receiver
        names = _Names(owner or function)
        hints = function.__annotations__
        self._positional: list[tuple[str, Check | None, Any]] = []
        self._by_name: dict[str, tuple[str, Check | None, Any]] = {}
        self._more: Check | None = None
        self._more_name = self._rest_name = ""
        self._rest: Check | None = None
        for parameter in inspect.signature(function).parameters.values():
            hint = hints.get(parameter.name, Any)
            check = _check_of(names.evaluate(hint)) if hint is not Any else None
            entry = (parameter.name, check, parameter.default)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._more_name, self._more = parameter.name, check
            elif parameter.kind is parameter.VAR_KEYWORD:
                self._rest_name, self._rest = parameter.name, check
            else:
                if parameter.kind is not parameter.KEYWORD_ONLY:
                    self._positional.append(entry)
                if parameter.kind is not parameter.POSITIONAL_ONLY:
                    self._by_name[parameter.name] = entry

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments, converted where they have to be."""
        try:
            known = [_fit(*entry, value) for entry, value in zip(self._positional, args, strict=False)]
            more = args[len(known) :]
            if more and self._more is not None:
                more = tuple(_fit(self._more_name, self._more, REFUSED, value) for value in more)
            for name, value in kwargs.items():
                entry = self._by_name.get(name)
                if entry is not None:
                    kwargs[name] = _fit(*entry, value)
                elif self._rest is not None:
                    kwargs[name] = _fit(name, self._rest, REFUSED, value)
        except _Refused as refused:
            name, check, value = refused.args
            raise invalid_argument(self._method(args), name, value, check.text, check.classes) from None
        return (*known, *more), kwargs

    def _method(self, args: tuple[Any, ...]) -> str:
        """Return the name of the method, with the class of the object on which it was called."""
        owner, name = self._owner, self._function.__name__
        if owner is None:
            return self._function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__init__")
        if self._receiver and args:
            called = args[0] if isinstance(args[0], type) else type(args[0])
            owner = called if issubclass(called, owner) else owner
        return owner.__qualname__ if name == "__init__" else f"{owner.__qualname__}.{name}"


class _Refused(Exception):
    """An argument that is not allowed: its name, its check, its value."""


def _fit(name: str, check: Check | None, default: Any, value: Any) -> Any:
    if check is None or value is default or check.accepts(value):
        return value
    fitted = check.convert(value)
    if fitted is REFUSED:
        raise _Refused(name, check, value)
    return fitted


def invalid_argument(
    method: str, argument: str, given: Any, allowed: str, classes: tuple[type, ...] = ()
) -> InvalidArgument:
    """Return the error for an argument that is not `allowed`: objects of `classes`, among others."""
    hint = f"; write {given.__name__}()" if isinstance(given, type) and issubclass(given, classes) else ""
    shown = f"{'******' if 'password' in argument else _short.repr(given)} ({type(given).__name__})"
    message = f"{method}: the argument {argument} must be {allowed}, not {shown}{hint}"
    return InvalidArgument(message, method=method, argument=argument)


def _refuse(value: Any) -> Any:
    return REFUSED


@dataclass(frozen=True)
class Check:
    """The values that a parameter allows."""

    text: str
    """The allowed values in words, for the error."""
    accepts: Callable[[Any], bool]
    """Function that returns True if a value can be used as it is."""
    convert: Callable[[Any], Any] = _refuse
    """Function that converts a value that is not accepted. It returns REFUSED if it cannot."""
    classes: tuple[type, ...] = ()
    """The classes whose objects are accepted."""

    def fit(self, value: Any) -> Any:
        """Return the value as it is or converted; REFUSED if it is not allowed."""
        return value if self.accepts(value) else self.convert(value)


# --- from annotations to checks ---
class _Names(dict[str, Any]):
    """The names that annotations of a module use, with the names imported only for type checkers."""

    def __init__(self, defined: Any) -> None:
        """Prepare the names for `defined`, the class or function that has the annotations."""
        super().__init__()
        self._module = sys.modules[defined.__module__]
        scope: Any = self._module
        for part in defined.__qualname__.split("."):
            scope = getattr(scope, part, None)
            if isinstance(scope, type):
                self.update(vars(scope))
        self._typing: dict[str, tuple[str, str | None]] | None = None

    def evaluate(self, hint: Any) -> Any:
        """Return the type that an annotation means."""
        return eval(hint, {}, self) if isinstance(hint, str) else hint

    def __missing__(self, name: str) -> Any:
        if name in vars(self._module):
            return vars(self._module)[name]
        if self._typing is None:
            self._typing = _imports_for_types(inspect.getsource(self._module))
        if name not in self._typing:
            raise KeyError(name)
        module, attribute = self._typing[name]
        if module.partition(".")[0] == __name__.partition(".")[0]:
            loaded = importlib.import_module(module)
            return loaded if attribute is None else getattr(loaded, attribute)
        return Elsewhere(module, attribute or "")


def _imports_for_types(source: str) -> dict[str, tuple[str, str | None]]:
    """Return module and attribute of each name that is imported under `if TYPE_CHECKING`."""
    found: dict[str, tuple[str, str | None]] = {}
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom):
                    found |= {alias.asname or alias.name: (str(line.module), alias.name) for alias in line.names}
                elif isinstance(line, ast.Import):
                    found |= {alias.asname or alias.name: (alias.name, None) for alias in line.names}
    return found


@dataclass(frozen=True)
class Elsewhere:
    """A class of a module that has not been imported.

    The check does not import it: without the module, there are no objects of the class.
    """

    module: str
    attribute: str

    def __getattr__(self, name: str) -> Elsewhere:
        if name.startswith("__"):
            raise AttributeError(name)
        return Elsewhere(self.module, f"{self.attribute}.{name}".lstrip("."))

    def __call__(self) -> None:
        """Do nothing. This method exists because members of a Union must be callable."""

    def __getitem__(self, item: Any) -> Elsewhere:
        return self

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007 - it is made here

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007 - it is made here

    def holds(self, value: Any) -> bool:
        """Return True if a value is an object of this class."""
        if self.module not in sys.modules:
            return False
        kind = operator.attrgetter(self.attribute)(sys.modules[self.module])
        return not isinstance(kind, type) or isinstance(value, kind)


def _check_of(hint: Any) -> Check | None:
    """Return the check of a type, or None if every value is allowed."""
    origin, args = get_origin(hint), get_args(hint)
    check: Check | None
    if hint in _ANYTHING or isinstance(hint, (typing.ParamSpec, str)):
        check = None
    elif isinstance(hint, TypeVar):
        check = _check_of(hint.__bound__)
    elif isinstance(hint, Elsewhere):
        check = Check(f"{_article(hint.attribute)} of {hint.module.partition('.')[0]}", hint.holds)
    elif origin in (Union, types.UnionType):
        check = _union([_check_of(arg) for arg in args])
    elif origin is typing.Literal:
        check = Check(_one_of(args), lambda value: any(type(value) is type(arg) and value == arg for arg in args))
    elif origin is type:
        check = _check_of_subclass(get_origin(args[0]) or args[0])
    elif origin in _CONTAINERS:
        check = _CONTAINERS[origin](origin, *args)
    else:
        check = _check_of_class(origin or hint)
    return check


_ANYTHING = (Any, object, None, inspect.Parameter.empty, typing.Self)


def _union(checks: Sequence[Check | None]) -> Check | None:
    """Return a check that accepts a value if any part does. Otherwise the first successful conversion counts."""
    known = [check for check in checks if check is not None]
    if len(known) < len(checks):
        return None

    def convert(value: Any) -> Any:
        return next((fitted for check in known if (fitted := check.convert(value)) is not REFUSED), REFUSED)

    texts = list(dict.fromkeys(check.text for check in known if check is not _NONE))
    texts += [_NONE.text] if _NONE in known else []
    text = " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
    classes = tuple(kind for check in known for kind in check.classes)
    return Check(text, lambda value: any(check.accepts(value) for check in known), convert, classes)


def _check_of_class(kind: Any) -> Check | None:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if not isinstance(kind, type) or (getattr(kind, "_is_protocol", False) and not _is_checkable(kind)):
        return None

    def accepts(value: Any) -> bool:
        return isinstance(value, kind)

    def convert(value: Any) -> Any:
        """Use the static method with which a class takes other values for its objects."""
        made = kind._of_argument(value)  # type: ignore[attr-defined]
        return made if isinstance(made, kind) else REFUSED

    text = _article(kind.__name__)
    if issubclass(kind, enum.Enum):
        members = kind.__members__
        allowed = f"{text} or its name as a string, {_one_of(members)}"
        return Check(allowed, accepts, lambda v: members.get(v, REFUSED) if isinstance(v, str) else REFUSED)
    if getattr(kind, "_is_protocol", False):
        text = f"an object with {' and '.join(f'{name}()' for name in vars(kind) if not name.startswith('_'))}"
    text += vars(kind).get("_also_allowed", "")
    return Check(text, accepts, convert if "_of_argument" in vars(kind) else _refuse, (kind,))


def _is_checkable(protocol: type) -> bool:
    return bool(getattr(protocol, "_is_runtime_protocol", False))


def _check_of_subclass(kind: Any) -> Check:
    if not isinstance(kind, type):
        return Check("a class", lambda value: isinstance(value, type))
    text = f"the class {kind.__name__} or one derived from it"
    return Check(text, lambda value: isinstance(value, type) and issubclass(value, kind))


# --- containers ---
def _collection(kind: type, *args: Any) -> Check:
    """Return the check of a list, sequence or other collection and its elements.

    A string does not count as a collection.
    """
    element = _check_of(args[0]) if args else None
    text = _article(kind.__name__) + (f" of which each element is {element.text}" if element else "")
    lasting = issubclass(kind, collections.abc.Collection)

    def is_collection(value: Any) -> bool:
        return isinstance(value, kind) and not (isinstance(value, (str, bytes)) and (element or lasting))

    def accepts(value: Any) -> bool:
        if element is None or not is_collection(value):
            return is_collection(value)
        return not isinstance(value, Iterator) and all(map(element.accepts, value))

    def convert(value: Any) -> Any:
        if not is_collection(value) and not (issubclass(kind, Sequence) and isinstance(value, (list, tuple))):
            return REFUSED
        fitted = list(value) if element is None else [element.fit(one) for one in value]
        return REFUSED if any(one is REFUSED for one in fitted) else _as(kind, fitted)

    return Check(text, accepts, convert)


def _as(kind: type, elements: list[Any]) -> Any:
    return kind(elements) if kind in (tuple, set, frozenset) else elements


def _mapping(kind: type, *args: Any) -> Check:
    key, value = (_check_of(arg) for arg in args) if args else (None, None)
    parts = [f"each {name} is {check.text}" for name, check in (("key", key), ("value", value)) if check]
    text = _article(kind.__name__) + (f" of which {' and '.join(parts)}" if parts else "")

    def fit(entries: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        return [(key.fit(k) if key else k, value.fit(v) if value else v) for k, v in entries.items()]

    def accepts(entries: Any) -> bool:
        return (
            isinstance(entries, Mapping)
            and isinstance(entries, kind)
            and all((key is None or key.accepts(k)) and (value is None or value.accepts(v)) for k, v in entries.items())
        )

    def convert(entries: Any) -> Any:
        if not isinstance(entries, kind):
            return REFUSED
        fitted = fit(typing.cast(Mapping[Any, Any], entries))
        return REFUSED if any(REFUSED in pair for pair in fitted) else dict(fitted)

    return Check(text, accepts, convert)


def _tuple(kind: type, *args: Any) -> Check:
    if not args or args[-1] is Ellipsis:
        return _collection(tuple, *args[:1])
    checks = [_check_of(arg) for arg in args]

    def accepts(value: Any) -> bool:
        return (
            isinstance(value, tuple)
            and len(value) == len(checks)
            and all(check is None or check.accepts(one) for check, one in zip(checks, value, strict=True))
        )

    texts = ", ".join(check.text if check else "any value" for check in checks)
    return Check(f"a tuple of {len(checks)}: {texts}", accepts)


_CONTAINERS: dict[Any, Callable[..., Check]] = {
    **dict.fromkeys((list, set, frozenset), _collection),
    **dict.fromkeys((Sequence, Iterable, collections.abc.Collection, collections.abc.Set), _collection),
    **dict.fromkeys((dict, Mapping, collections.abc.MutableMapping), _mapping),
    tuple: _tuple,
}


# --- simple types ---
def is_function(value: Any) -> bool:
    """Return True if a value can be called and does not hold a function, nor is the class of such an object."""
    return callable(value) and not getattr(value, "_holds_function", False)


def _as_int(value: Any) -> Any:
    """Accept objects that stand for a whole number, such as NumPy's."""
    whole = not isinstance(value, bool) and hasattr(type(value), "__index__")
    return operator.index(value) if whole else REFUSED


def _as_float(value: Any) -> Any:
    return float(value) if not isinstance(value, bool) and isinstance(value, numbers.Real) else REFUSED


def _as_bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else REFUSED


_NONE = Check("None", lambda value: value is None)
_SIMPLE: dict[Any, Check] = {
    type(None): _NONE,
    bool: Check("True or False", lambda value: isinstance(value, bool)),
    int: Check("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool), _as_int),
    float: Check("a number", lambda v: isinstance(v, (int, float)) and not isinstance(v, bool), _as_float),
    str: Check("a string", lambda value: isinstance(value, str)),
    bytes: Check("bytes", lambda value: isinstance(value, bytes), _as_bytes),
    Callable: Check("a function", is_function),
}


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def _one_of(values: Iterable[Any]) -> str:
    shown = [repr(value) for value in values]
    return shown[0] if len(shown) == 1 else f"one of {', '.join(shown)}"
