"""CsvReader: files whose lines have fields, as tuples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from penstock.connectors.files.file_source import FileSource
from penstock.dataset.data_set import DataSet
from penstock.dataset.operators.record_operators import FlatMapElements
from penstock.dataset.plan.checks import check_type
from penstock.dataset.plan.element_kinds import TupleKind
from penstock.errors import InvalidArgument, UndecodableRecord
from penstock.formats.text_files import TextLineFormat

if TYPE_CHECKING:
    from penstock.dataset.execution_environment import ExecutionEnvironment


class CsvReader:
    """Says how lines become fields. `types` ends it with the types of the fields."""

    def __init__(self, env: ExecutionEnvironment, path: str) -> None:
        self._env, self._path = env, path
        self._lines = "\n"
        self._fields = ","
        self._charset = "UTF-8"
        self._quote: str | None = None
        self._comments: str | None = None
        self._included: list[bool] | None = None
        self._skips_first = False
        self._skips_invalid = False

    def line_delimiter(self, delimiter: str) -> Self:
        """Set the text between lines."""
        self._lines = _text("line_delimiter", delimiter)
        return self

    def field_delimiter(self, delimiter: str) -> Self:
        """Set the text between fields."""
        self._fields = _text("field_delimiter", delimiter)
        return self

    def parse_quoted_strings(self, quote_character: str) -> Self:
        """Remove the quotes around strings. Quoted strings may contain field delimiters."""
        if len(_text("parse_quoted_strings", quote_character)) != 1:
            raise InvalidArgument(
                f"the quote character of parse_quoted_strings must be one character, not {quote_character!r}"
            )
        self._quote = quote_character
        return self

    def ignore_comments(self, comment_prefix: str) -> Self:
        """Leave out lines that begin with a text."""
        self._comments = _text("ignore_comments", comment_prefix)
        return self

    def include_fields(self, *fields: str | bool) -> Self:
        """Say for each field whether it is read: include_fields("101") or include_fields(True, False, True)."""
        flags = list(fields[0]) if len(fields) == 1 and isinstance(fields[0], str) else list(fields)
        meanings = {"0": False, "F": False, "f": False, "1": True, "T": True, "t": True, True: True, False: False}
        if not flags or any(not isinstance(flag, (str, bool)) or flag not in meanings for flag in flags):
            raise InvalidArgument(f"include_fields takes one string of 0 and 1, or bools, not {fields!r}")
        self._included = [meanings[flag] for flag in flags]
        if not any(self._included):
            raise ValueError("include_fields must include at least one field")
        return self

    def ignore_first_line(self) -> Self:
        """Leave out the first line of each file."""
        self._skips_first = True
        return self

    def ignore_invalid_lines(self) -> Self:
        """Leave out lines that cannot be read, which are errors otherwise."""
        self._skips_invalid = True
        return self

    def set_charset(self, charset: str) -> Self:
        """Set the charset of the files."""
        self._charset = _text("set_charset", charset)
        return self

    def types(self, *kinds: type) -> DataSet:
        """Return the lines as tuples of int, float, str and bool."""
        if not kinds:
            raise InvalidArgument("types needs the type of at least one field")
        for kind in kinds:
            if kind not in _PARSERS:
                raise InvalidArgument(f"types takes int, float, str and bool, not {kind!r}")
        included = self._included or [True] * len(kinds)
        if sum(included) != len(kinds):
            raise ValueError(f"include_fields includes {sum(included)} fields, and there are {len(kinds)} types")
        form = TextLineFormat(self._charset, self._lines, self._skips_first)
        lines = self._env.read_source(FileSource.for_record_stream_format(form, self._path).build(), "Csv Source", str)
        parser = LineParser(kinds, included, self._fields, self._quote, self._comments, self._skips_invalid)
        return lines.add("Parse", FlatMapElements(parser), TupleKind(kinds))


class LineParser:
    """Turns a line into a list with one tuple, or into an empty list if it is left out."""

    def __init__(
        self,
        kinds: tuple[type, ...],
        included: list[bool],
        delimiter: str,
        quote: str | None,
        comments: str | None,
        skips_invalid: bool,
    ) -> None:
        feed = iter(kinds)
        self.fields = [next(feed) if flag else None for flag in included]
        """The type of each field of a line; None for one that is left out."""
        while self.fields[-1] is None:
            self.fields.pop()
        self.delimiter, self.quote, self.comments, self.skips_invalid = delimiter, quote, comments, skips_invalid

    def __call__(self, line: str) -> list[tuple[Any, ...]]:
        if self.comments is not None and line.startswith(self.comments):
            return []
        try:
            return [tuple(self._parse(line))]
        except UndecodableRecord:
            if self.skips_invalid:
                return []
            raise

    def _parse(self, line: str) -> list[Any]:
        values: list[Any] = []
        at: int | None = 0
        for number, kind in enumerate(self.fields, 1):
            if at is None:
                raise UndecodableRecord(f"the line has fewer than {len(self.fields)} fields: {line!r}")
            text, at = self._field(line, at, kind is None or kind is str)
            if kind is None:
                continue
            try:
                values.append(_PARSERS[kind](text))
            except ValueError:
                raise UndecodableRecord(
                    f"field {number} is not a valid {kind.__name__}: {text!r} in {line!r}"
                ) from None
        return values

    def _field(self, line: str, at: int, may_be_quoted: bool) -> tuple[str, int | None]:
        """Return the text of a field, and where the next one begins; None behind the last."""
        if may_be_quoted and self.quote is not None and line.startswith(self.quote, at):
            return self._cut_quoted(line, at)
        end = line.find(self.delimiter, at)
        return (line[at:], None) if end < 0 else (line[at:end], end + len(self.delimiter))

    def _cut_quoted(self, line: str, at: int) -> tuple[str, int | None]:
        assert self.quote is not None
        end = line.find(self.quote, at + 1)
        while end > 0 and line[end - 1] == "\\":
            end = line.find(self.quote, end + 1)
        if end < 0:
            raise UndecodableRecord(f"a quoted string does not end: {line[at:]!r}")
        behind = end + 1
        if behind == len(line):
            return line[at + 1 : end], None
        if not line.startswith(self.delimiter, behind):
            raise UndecodableRecord(f"text follows a quoted string: {line[at:]!r}")
        return line[at + 1 : end], behind + len(self.delimiter)


# --- fields ---
_INT = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(NaN|Infinity)")


def _parse_int(text: str) -> int:
    if _INT.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


def _parse_float(text: str) -> float:
    if _FLOAT.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def _parse_bool(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return lowered in ("true", "1")


_PARSERS: dict[type, Callable[[str], Any]] = {int: _parse_int, float: _parse_float, bool: _parse_bool, str: str}


def _text(method: str, value: Any) -> str:
    check_type(method, "its argument", value, str)
    if not value:
        raise InvalidArgument(f"{method} takes a string that is not empty")
    return str(value)
