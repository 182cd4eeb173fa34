"""Decimals with a fixed number of digits, for the columns of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from operator import is_
from typing import Any, TypeVar

from penstock.base.arguments import check_arguments
from penstock.common.basic_types import BigDecimalTypeInfo
from penstock.common.composite_types import ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import Types

__all__ = ["DECIMAL", "DecimalTypeInfo"]

MOST_DIGITS = 38
_EXACT = Context(prec=3 * MOST_DIGITS, rounding=ROUND_HALF_UP)

AnyType = TypeVar("AnyType", bound=TypeInformation)


@check_arguments
def DECIMAL(precision: int = 10, scale: int = 0) -> DecimalTypeInfo:  # noqa: N802
    """Return the type of decimals with at most `precision` digits, `scale` of them after the point.

    It is PyFlink's `DataTypes.DECIMAL`.
    """
    if not 1 <= precision <= MOST_DIGITS:
        raise ValueError(f"the precision of a decimal must be between 1 and {MOST_DIGITS}, but is {precision}")
    if not 0 <= scale <= precision:
        raise ValueError(f"the scale of a decimal must be between 0 and its precision {precision}, but is {scale}")
    return DecimalTypeInfo(f"DECIMAL({precision}, {scale})", Decimal, precision, scale)


@dataclass(frozen=True, repr=False)
class DecimalTypeInfo(BigDecimalTypeInfo):
    """A Decimal with exactly `scale` digits after the point, made by `DECIMAL`.

    As in Flink, other decimals are rounded, half away from zero. A number that has too many digits then becomes None.
    """

    precision: int
    scale: int

    def round_value(self, value: Decimal) -> Decimal | None:
        """Return the value in the form of this type; None if it has too many digits.

        Raise ValueError for NaN and infinities.
        """
        if not value.is_finite():
            raise ValueError(f"{value} is not a number")
        if value and value.adjusted() >= MOST_DIGITS:
            return None
        if value.as_tuple().exponent != -self.scale or not value:
            value = _EXACT.plus(value.quantize(Decimal(1).scaleb(-self.scale), context=_EXACT))  # `plus` leaves no -0
        return None if value and value.adjusted() >= self.precision - self.scale else value

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        rounded = [self.round_value(value) for value in super()._fit_all(column)]
        return column if all(map(is_, rounded, column)) else rounded


def without_zeros(value: Decimal) -> str:
    """Write a decimal as Flink does in CSV: without zeros at its end, even those before the point (1E+2)."""
    return str(value.normalize(_EXACT))


def stream_type_of(declared: AnyType) -> AnyType:
    """Return the type of a stream of values that were read as a type.

    As in PyFlink, every decimal is a BIG_DEC there.
    """
    return _plain(declared)  # type: ignore[return-value]


def _plain(declared: TypeInformation) -> TypeInformation:
    if isinstance(declared, DecimalTypeInfo):
        return Types.BIG_DEC()
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        return replace(declared, field_types=tuple(map(_plain, declared.field_types)))
    if isinstance(declared, ListTypeInfo):
        return replace(declared, elem_type=_plain(declared.elem_type))
    if isinstance(declared, MapTypeInfo):
        return replace(declared, key_type=_plain(declared.key_type), value_type=_plain(declared.value_type))
    return declared
