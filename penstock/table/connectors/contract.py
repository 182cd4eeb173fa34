"""The interface of connectors: a connector reads a declared table as a stream, writes a stream into one, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from penstock.base.options.parsers import parse_memory_size
from penstock.common.configuration import parse_duration
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ConfigurationError, ValidationException
from penstock.table.logical.nodes import Columns
from penstock.table.logical.rex import Rex


@dataclass
class Options:
    """The options of a table. Options that have been read are known; the others are refused at the end."""

    table: str
    given: Mapping[str, str]
    asked: set[str] = field(default_factory=lambda: {"connector"})
    prefixes: set[str] = field(default_factory=set)

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return an option's value; `default` if it is not set."""
        self.asked.add(name)
        return self.given.get(name, default)

    def require(self, name: str) -> str:
        """Return an option's value, or raise if it is not set."""
        value = self.text(name)
        if value is None:
            raise ValidationException(f"table {self.table}: the option '{name}' is missing")
        return value

    def whole(self, name: str, default: int | None = None) -> int | None:
        """Return an option that is a whole number."""
        value = self.text(name)
        try:
            return default if value is None else int(value)
        except ValueError:
            raise self._wrong(name, "a whole number") from None

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return an option that is a number."""
        value = self.text(name)
        try:
            return default if value is None else float(value)
        except ValueError:
            raise self._wrong(name, "a number") from None

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an option that is true or false."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in {"true", "false"}:
            raise self._wrong(name, "true or false")
        return value.lower() == "true"

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """Return an option that is one of some words, in lower case."""
        value = (self.text(name) or default).lower()
        if value not in allowed:
            raise self._wrong(name, f"one of {', '.join(allowed)}")
        return value

    def millis(self, name: str, default: int | None = None) -> int | None:
        """Return an option that is a duration, in milliseconds."""
        value = self.text(name)
        try:
            return default if value is None else parse_duration(value)
        except (ConfigurationError, ValueError):
            raise self._wrong(name, "a duration such as '10 s'") from None

    def size(self, name: str) -> int | None:
        """Return a number of bytes."""
        value = self.text(name)
        try:
            return None if value is None else parse_memory_size(value)
        except ValueError:
            raise self._wrong(name, "a size such as '128 mb'") from None

    def below(self, prefix: str) -> dict[str, str]:
        """Return all options whose names begin with a prefix, without the prefix."""
        self.prefixes.add(prefix)
        return {name.removeprefix(prefix): value for name, value in self.given.items() if name.startswith(prefix)}

    def _wrong(self, name: str, wanted: str) -> ValidationException:
        return ValidationException(f"table {self.table}: '{name}' is {wanted}, not '{self.given.get(name)}'")

    def refuse_unknown(self) -> None:
        """Refuse options that have no meaning here, and suggest the nearest known one."""
        known = self.asked
        for name in self.given:
            if name in known or any(name.startswith(prefix) for prefix in self.prefixes):
                continue
            close = get_close_matches(name, known, 1)
            meant = f"; did you mean '{close[0]}'?" if close else f"; known are: {', '.join(sorted(known))}"
            raise ValidationException(f"table {self.table}: there is no option '{name}'{meant}")


@dataclass(frozen=True)
class Declared:
    """A table in the form that a connector gets."""

    name: str
    options: Options
    columns: Columns
    """Columns that are read or written, including metadata."""
    metadata: tuple[tuple[int, str], ...] = ()
    key: tuple[int, ...] = ()
    """Positions of the columns of the primary key."""
    partition_keys: tuple[str, ...] = ()
    batch: bool = False
    pruning: Rex | None = None
    """A condition over the partition columns. Rows of partitions for which it is not true are not needed."""
    overwrite: bool = False
    """True if the written rows replace the existing ones."""

    def physical(self) -> Columns:
        """Return the columns that are part of the record."""
        hidden = dict(self.metadata)
        return tuple(column for index, column in enumerate(self.columns) if index not in hidden)


class Connector:
    """Reads and writes tables of one kind. Operations that a subclass does not offer are refused."""

    name = ""
    wants_rows = True
    """True if its sink gets Rows with kinds; False if it gets batches."""
    overwrites = False
    """True if it accepts INSERT OVERWRITE, in BATCH mode."""
    writes_metadata = False
    """True if metadata columns that are not VIRTUAL can be written."""
    sends_watermarks = False
    """True if the stream of its source has watermarks, for tables that declare SOURCE_WATERMARK()."""

    def changes(self, options: Mapping[str, str]) -> tuple[bool, bool]:
        """Return two booleans: whether a source sends changes besides inserts, and whether these lack UPDATE_BEFORE."""
        return False, False

    def source(self, env: StreamExecutionEnvironment, table: Declared) -> DataStream:
        """Return a stream of Rows with the columns' names, or of columns. Metadata are fields of the rows too."""
        raise ValidationException(f"table {table.name}: the connector '{self.name}' cannot be read from")

    def takes_changes(self, table: Declared) -> bool:
        """Return True if a sink accepts more than inserts."""
        return False

    def is_upsert_sink(self, table: Declared, changelog: bool) -> bool:
        """Return True if a sink holds the last row of each primary key. It then gets +I, +U and -D, and no -U."""
        return False

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        """Write a stream of Rows with kinds."""
        raise ValidationException(f"table {table.name}: the connector '{self.name}' cannot be written to")

    def lookup(self, table: Declared, keys: tuple[int, ...]) -> Any:
        """Return an object for lookup joins, with `open()`, `lookup(keys) -> list of rows` and `close()`."""
        raise ValidationException(f"table {table.name}: the connector '{self.name}' cannot be looked up in")
