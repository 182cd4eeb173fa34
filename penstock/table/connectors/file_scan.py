"""The files of a table for reading: a selection of files, with columns that are not in the records."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.types import Row, RowKind, make_row
from penstock.connectors.files.access import Files
from penstock.connectors.files.file_source import FileEnumerator, FileSource, FileSplit, FileSplitReader
from penstock.connectors.source_api import ReaderContext, SourceReader, SplitEnumerator, SplitReader, SplitsInTurn
from penstock.table import functions
from penstock.table.connectors.file_partitions import Partitions
from penstock.table.functions.library.java_regex import compile_regex
from penstock.table.logical.rex import Rex
from penstock.table.operators.base.query_batches import make_batch
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, arrow_schema

METADATA: dict[str, t.DataType] = {
    "file.path": t.DataTypes.STRING(),
    "file.name": t.DataTypes.STRING(),
    "file.size": t.BigIntType(),
    "file.modification-time": t.LocalZonedTimestampType(3),
}
_METADATA: dict[str, Callable[[Files], Any]] = {
    "file.path": lambda file: file.root,
    "file.name": lambda file: posixpath.basename(file.root),
    "file.size": lambda file: file.fs.size(file.root),
    "file.modification-time": lambda file: file.fs.modified(file.root),
}


@dataclass(frozen=True)
class Chosen:
    """The files of a folder that belong to a query."""

    pattern: str | None = None
    """Regular expression for the whole path."""
    partitions: Partitions | None = None
    condition: Rex | None = None
    """Condition over the columns of the partitions."""

    def of(self, urls: list[str]) -> list[str]:
        if self.pattern is not None:
            matches = compile_regex(self.pattern).fullmatch
            urls = [url for url in urls if matches(Files(url).root)]
        return urls if self.condition is None else self._in_partitions(urls)

    def _in_partitions(self, urls: list[str]) -> list[str]:
        """Return the files for which the condition is true."""
        assert self.partitions is not None and self.condition is not None
        texts = {url: self.partitions.texts(url) for url in urls}
        examples = {text: url for url, text in texts.items()}
        columns = list(zip(*(self.partitions.values(url) for url in examples.values()), strict=True))
        if not columns:
            return []
        keys = self.partitions.keys
        arrays = [array_of(values, key.type) for values, key in zip(columns, keys, strict=True)]
        batch = make_batch(arrays, arrow_schema(keys), len(examples))
        true = functions.compile_rex(self.condition)(batch, functions.Moment()).to_pylist()
        wanted = {text for text, one in zip(examples, true, strict=True) if one}
        return [url for url in urls if texts[url] in wanted]


@dataclass(frozen=True)
class TableFiles(FileSource):
    """The rows of a table's files, with the columns that come from the path and from the file itself."""

    chosen: Chosen = Chosen()
    stored: tuple[str, ...] = ()
    """Names of the columns in the record."""
    partitions: Partitions | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    """Names of columns, with the metadata of the file that they hold."""

    def create_enumerator(self) -> SplitEnumerator:
        enumerator = super().create_enumerator()
        assert isinstance(enumerator, FileEnumerator)
        enumerator.choose = self.chosen.of
        enumerator.takes_empty_folders = True
        return enumerator

    def create_reader(self, context: ReaderContext) -> SourceReader:
        if self.partitions is None and not self.metadata:
            return super().create_reader(context)
        return SplitsInTurn(lambda split: WithColumns(FileSplitReader(split, self.format, context), self, split))

    def names(self) -> tuple[str, ...]:
        keys = () if self.partitions is None else tuple(key.name for key in self.partitions.keys)
        return (*self.stored, *keys, *(name for name, _ in self.metadata))

    def values(self, url: str) -> tuple[Any, ...]:
        """Return the values that all rows of a file have besides the columns of the record."""
        keys = () if self.partitions is None else self.partitions.values(url)
        file = Files(url)
        return (*keys, *(_METADATA[key](file) for _, key in self.metadata))


class WithColumns(SplitReader):
    """Adds the same values to each row of a file."""

    def __init__(self, reader: FileSplitReader, table: TableFiles, split: FileSplit) -> None:
        self._reader = reader
        self._names, self._values = table.names(), table.values(split.path)

    @property
    def finished(self) -> bool:  # type: ignore[override]
        return self._reader.finished

    def read(self, most: int) -> list[Any]:
        names, values = self._names, self._values
        return [make_row(names, (*_fields(row), *values), _kind(row)) for row in self._reader.read(most)]

    def position(self) -> Any:
        return self._reader.position()

    def close(self) -> None:
        self._reader.close()


def _fields(row: Any) -> Sequence[Any]:
    return tuple(row) if isinstance(row, Row) else (row,)


def _kind(row: Any) -> RowKind:
    return row.get_row_kind() if isinstance(row, Row) else RowKind.INSERT
