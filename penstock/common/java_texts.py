"""Numbers as Java writes them."""

from __future__ import annotations

import math
from decimal import Decimal


def double_text(value: float) -> str:
    """Return a double in Java's form: at least one digit after the point, exponents below 10^-3 and from 10^7 on.

    >>> double_text(1e7), double_text(0.25), double_text(1.5e-5)
    ('1.0E7', '0.25', '1.5E-5')
    """
    return java_text(value, repr(value))


def java_text(value: float, shortest: str) -> str:
    """Return a number in Java's form, given the shortest text that tells it from its neighbours."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + exponent  # the position of the point after the first digit
    minus = "-" if sign else ""
    if -3 < point <= 7:
        whole = figures[:point].ljust(point, "0") if point > 0 else "0"
        fraction = figures[point:] if point > 0 else "0" * -point + figures
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{figures[0]}.{figures[1:] or '0'}E{point - 1}"
