"""The ends of time, under the name of PyFlink's module."""

MAX_LONG_VALUE = 2**63 - 1
MIN_LONG_VALUE = -(2**63)

__all__ = ["MAX_LONG_VALUE", "MIN_LONG_VALUE"]
