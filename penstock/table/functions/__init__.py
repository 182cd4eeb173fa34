"""The functions of SQL: their types, casts, and kernels over columns."""

from penstock.table.functions.evaluation import compile_rex, constant, fold_constants
from penstock.table.functions.library import (
    arithmetic,
    comparison,
    construction,
    differences,
    json_functions,
    mathematics,
    patterns,
    temporal,
)
from penstock.table.functions.library import cast_kernels as casts
from penstock.table.functions.library import clock_functions as clock
from penstock.table.functions.library import collection_functions as collections
from penstock.table.functions.library import common_text_functions as strings
from penstock.table.functions.library import other_text_functions as text_functions
from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.aggregate_types import (
    aggregate_names,
    is_aggregate,
    is_table_function,
    resolve_aggregate,
)
from penstock.table.functions.typing.cast_types import cast, castable, explicit_cast
from penstock.table.functions.typing.coercion import common_type, implicitly
from penstock.table.functions.typing.registry import BadValue, resolve
from penstock.table.functions.typing.registry import names as scalar_names
from penstock.table.functions.user_functions import close_functions, open_functions

for _module in (
    arithmetic,
    mathematics,
    comparison,
    casts,
    strings,
    text_functions,
    patterns,
    construction,
    collections,
    json_functions,
    clock,
    temporal,
    differences,
):
    _module.register_all()


_INTERNAL = frozenset({"AT", "FIELD", "ITEM", "NEGATE", "POSITIVE", "SINGLE_VALUE", "SUM0"})
"""Functions for which queries have signs."""


def names() -> list[str]:
    """Return the names of all functions that SHOW FUNCTIONS lists."""
    return sorted(name.lower() for name in {*scalar_names(), *aggregate_names()} - _INTERNAL)


__all__ = [
    "BadValue",
    "Moment",
    "cast",
    "castable",
    "close_functions",
    "common_type",
    "compile_rex",
    "constant",
    "explicit_cast",
    "fold_constants",
    "implicitly",
    "is_aggregate",
    "is_table_function",
    "names",
    "open_functions",
    "resolve",
    "resolve_aggregate",
]
