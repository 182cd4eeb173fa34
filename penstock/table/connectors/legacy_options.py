"""Options of tables from before Flink 1.11, such as 'connector.type'. Flink still reads them for CSV files."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import ValidationException

KIND = "connector.type"
SURPLUS = "csv.ignore-surplus-fields"
"""Option that ignores fields behind the last column, as the old format does."""
_NAMES = {
    KIND: "connector",
    "connector.path": "path",
    "format.type": "format",
    "format.field-delimiter": "csv.field-delimiter",
    "format.quote-character": "csv.quote-character",
    "format.ignore-parse-errors": "csv.ignore-parse-errors",
}
"""Today's names of the options."""
_FIXED = {
    "connector.property-version": ("1",),
    "format.property-version": ("1",),
    "format.derive-schema": ("true",),
    "format.ignore-first-line": ("false",),
    "format.line-delimiter": ("\n", "\\n"),
    "update-mode": ("append",),
}
"""Options that have no effect, with the values that are allowed for them."""


def current_options(table: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options under today's names. Options with today's names stay unchanged."""
    if KIND not in options or "connector" in options:
        return options
    given = (options[KIND], options.get("format.type", ""))
    if given != ("filesystem", "csv"):
        raise ValidationException(
            f"table {table}: '{KIND}' = '{given[0]}' with 'format.type' = '{given[1]}' is no longer supported; of "
            "the options from before Flink 1.11, only those of 'filesystem' with 'csv' are. Use 'connector' = "
            f"'{given[0]}'"
        )
    renamed = filter(None, (_rename(table, *option) for option in options.items()))
    return {SURPLUS: "true", **dict(renamed)}


def _rename(table: str, name: str, value: str) -> tuple[str, str] | None:
    if name in _NAMES:
        return _NAMES[name], value
    if name not in _FIXED:
        known = ", ".join(sorted([*_NAMES, *_FIXED]))
        raise ValidationException(f"table {table}: there is no option '{name}' besides '{KIND}'; allowed are {known}")
    if value not in _FIXED[name]:
        allowed = " or ".join(repr(one) for one in _FIXED[name])
        raise ValidationException(f"table {table}: '{name}' is {allowed} here, not {value!r}")
    return None
