"""The contract of a type: it checks, converts and prints whole chunks of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from reprlib import Repr
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, cast, overload, runtime_checkable

from penstock.base.type_variables import T
from penstock.errors import TypeMismatch

__all__ = ["DeclaredType", "TypeInformation", "declared_type", "field_types_of", "fit_columns", "mismatch"]

_short = Repr()
_short.maxstring = _short.maxother = 60
_short.maxtuple = _short.maxlist = _short.maxdict = 4

_MISFIT = (TypeError, ValueError, OverflowError)


class TypeInformation(Generic[T]):
    """A declared type, whose values are of the Python type T.

    Plain data: types with the same parts are equal, and every type can be pickled.

    A subclass says in `_fit_all` how a chunk without None is checked, in `_text` how a value that is not None is
    printed, in `notation` how a program writes it, and in `__repr__` what PyFlink calls it. `None` fits every type.
    """

    _also_allowed: ClassVar[str] = " such as Types.INT(), or a Python type with one meaning, such as list[int]"

    @staticmethod
    def _of_argument(value: Any) -> TypeInformation[Any] | None:
        from penstock.common.python_types import type_of_class

        return type_of_class(value)

    @property
    def notation(self) -> str:
        """Text of the type as a program writes it, such as TUPLE(STRING, INT). Errors and savepoints use it."""
        return repr(self)

    def fit(self, values: list[Any]) -> list[Any]:
        """Check a chunk of values, and convert them to the form that they would have after Flink's serialisers.

        Return the same list if nothing had to change. Raise TypeMismatch for the first value that does not fit.
        """
        return cast(list[Any], self.fit_column(values))

    def fit_column(self, column: Sequence[Any]) -> Sequence[Any]:
        """Check any sequence, like `fit`. Composite types use this for their columns."""
        try:
            return self._fit_all(column)
        except _MISFIT:
            return self._fit_around_none(column)

    def text(self, value: Any) -> str:
        """Return the value as Flink prints it."""
        return "null" if value is None else self._text(value)

    def create_serializer(self, config: Any = None) -> Any:
        """Return a serialiser of this type, for classes whose constructors require one, as in Java."""
        from penstock.common.serializer import DeclaredTypeSerializer

        return DeclaredTypeSerializer(self)

    def need_conversion(self) -> bool:
        """Return False, because records always stay Python objects."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """Return the object unchanged, because records stay Python objects."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Return the object unchanged, because records stay Python objects."""
        return obj

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        """Check and convert a column, like `fit_column`. None may be a misfit.

        A misfit may raise TypeError, ValueError or OverflowError.

        None and misfits may raise TypeError, ValueError or OverflowError.
        """
        raise NotImplementedError

    def _text(self, value: Any) -> str:
        return str(value)

    def _fit_around_none(self, column: Sequence[Any]) -> Sequence[Any]:
        present = [value for value in column if value is not None]
        if len(present) == len(column):
            raise self._blame(column)
        fitted = self.fit_column(present)
        if fitted is present:
            return column
        following = iter(fitted)
        return [None if value is None else next(following) for value in column]

    def _blame(self, column: Sequence[Any]) -> TypeMismatch:
        for value in column:
            try:
                self._fit_all([value])
            except _MISFIT:
                return mismatch(value, self)
            except TypeMismatch as error:
                return error
        raise AssertionError(f"{self.notation} rejected a chunk, but accepted each of its values")


if TYPE_CHECKING:
    DeclaredType: TypeAlias = TypeInformation[T] | type[T]
else:
    DeclaredType = TypeInformation
"""Anything that a program may give as a declared type. A call converts a Python type into type information."""


@overload
def declared_type(given: DeclaredType[T]) -> TypeInformation[T]: ...
@overload
def declared_type(given: DeclaredType[T] | None) -> TypeInformation[T] | None: ...
def declared_type(given: Any) -> Any:
    """Return the argument of a checked call, which is type information by now."""
    return given


def mismatch(value: Any, declared: TypeInformation | str) -> TypeMismatch:
    """Return the error for a value that does not fit a declared type."""
    wanted = declared if isinstance(declared, str) else declared.notation
    return TypeMismatch(f"{_short.repr(value)} ({type(value).__name__}) does not fit {wanted}")


def fit_columns(
    columns: Sequence[Sequence[Any]], types: Sequence[TypeInformation], owner: TypeInformation
) -> list[Sequence[Any]] | None:
    """Fit each column to its type. Return None if nothing had to change."""
    if len(columns) != len(types):
        raise ValueError("wrong number of fields")
    fitted = []
    changed = False
    for index, (column, declared) in enumerate(zip(columns, types, strict=True)):
        try:
            result = declared.fit_column(column)
        except TypeMismatch as error:
            raise TypeMismatch(f"{error}, in field {index} of {owner.notation}") from None
        changed = changed or result is not column
        fitted.append(result)
    return fitted if changed else None


@runtime_checkable
class TableType(Protocol):
    """A type of tables, such as DataTypes.INT(), that stands for a type of streams."""

    def to_type_information(self) -> TypeInformation[Any]: ...


def as_type_information(declared: Any) -> Any:
    """Return the stream type of a table type, such as DataTypes.INT(), and any other object unchanged."""
    convert = getattr(declared, "to_type_information", None)
    return declared if convert is None else convert()


def field_types_of(field_types: Iterable[Any]) -> tuple[TypeInformation, ...]:
    """Return the parts of a composite type. Each part must be a type."""
    types = tuple(field_types)
    for part in types:
        if not isinstance(part, TypeInformation):
            raise TypeError(f"expected type information such as Types.INT(), not {part!r}")
    return types
