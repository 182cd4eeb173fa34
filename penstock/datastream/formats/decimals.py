"""Decimals with a fixed number of digits, for the columns of files."""

from penstock.formats.decimals import (
    DECIMAL,
    DecimalTypeInfo,
)

__all__ = [
    "DECIMAL",
    "DecimalTypeInfo",
]
