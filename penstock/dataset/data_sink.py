"""Sinks of DataSet programs: text files, of which each task writes one and which appear when the job has ended."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from penstock.api.functions.source_functions import SinkFunction
from penstock.common.java_texts import double_text
from penstock.common.types import Row
from penstock.connectors.files.access import Files, naming
from penstock.connectors.files.parts import FileCommitter, Names, Pending, Written
from penstock.connectors.source_api import Committer, Sink, SinkWriter, WriterContext
from penstock.dataset.plan.checks import check_count
from penstock.dataset.plan.enums import WriteMode
from penstock.dataset.plan.steps import Lowering
from penstock.engine.operators.sinks.committing import CommittingSink
from penstock.errors import AlreadyThere, TypeMismatch
from penstock.graph.transformations import Transformation

if TYPE_CHECKING:
    from penstock.dataset.data_set import DataSet


class DataSink:
    """The end of a data set: it writes a file, or a folder with a file for each task."""

    def __init__(self, data: DataSet, sink: TextFileSink, write_mode: WriteMode) -> None:
        self._data, self._sink, self._mode = data, sink, write_mode
        self._parallelism: int | None = None
        self._name = "Text File Sink"

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of tasks. With 1 there is one file, else a folder with the files 1, 2 and so on."""
        check_count("set_parallelism", "parallelism", parallelism)
        self._parallelism = parallelism
        return self

    def name(self, name: str) -> Self:
        """Set the name in plans, logs and errors."""
        self._name = name
        return self

    def lower(self, lowering: Lowering, parallelism: int) -> Transformation:
        """Return the transformation that writes. `parallelism` holds if the program has set none."""
        tasks = self._parallelism or parallelism
        sink = TextFileSink(self._sink.path, self._sink.text_of, self._sink.ending, tasks > 1)
        refs = lowering.lower(self._data.refs)
        return Transformation(self._name, CommittingSink(sink), [refs], kind="committing sink", parallelism=tasks)

    def prepare(self) -> None:
        """Remove what is at the path, or raise an error if it may not be replaced."""
        path = self._sink.path
        folder, files = Files(posixpath.dirname(path) or "."), Files(path)
        name = posixpath.basename(path)
        is_folder = files.is_folder()
        if not is_folder and folder.size(name) is None:
            return
        if self._mode is WriteMode.NO_OVERWRITE:
            raise AlreadyThere(f"{path} exists already: use WriteMode.OVERWRITE to replace it")
        if not is_folder:
            folder.delete(name)
            return
        for old in files.names():
            files.delete(old)
        files.delete_empty_folder("")


@dataclass(frozen=True)
class TextFileSink(Sink):
    """Writes the text of each element, with an ending behind it."""

    path: str
    text_of: Callable[[Any], str]
    ending: str
    is_folder: bool = True

    def create_writer(self, context: WriterContext, restored: list[Any]) -> TextFileWriter:
        return TextFileWriter(self, context)

    def create_committer(self) -> Committer:
        return FileCommitter()


class TextFileWriter(SinkWriter):
    """Writes one hidden file, which gets its name when the job has ended."""

    def __init__(self, sink: TextFileSink, context: WriterContext) -> None:
        self._sink = sink
        number = context.runtime.get_index_of_this_subtask() + 1
        final = posixpath.join(sink.path, str(number)) if sink.is_folder else sink.path
        self._folder = Files(posixpath.dirname(final) or ".")
        self._names = Names(context, "text", "")
        hidden = self._names.hidden(self._names.next())
        self._final, self._hidden = self._folder.url(posixpath.basename(final)), self._folder.url(hidden)
        self._file: Any = None
        self._size = 0
        self._has_ended = False

    def begun(self) -> list[Any]:
        return [Written(self._folder.url(), self._names.writer)]

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self.write_all([value], None, context)

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        text_of, ending = self._sink.text_of, self._sink.ending
        data = "".join([text_of(value) + ending for value in values]).encode()
        with naming(self._final):
            self._open().write(data)
        self._size += len(data)
        return True

    def _open(self) -> Any:
        """Return the file, which is there from the first element or the end on."""
        if self._file is None:
            self._file = self._folder.open_new(self._folder.name(self._hidden))
        return self._file

    def flush(self, end_of_input: bool) -> None:
        self._has_ended = self._has_ended or end_of_input

    def prepare_commit(self) -> list[Any]:
        """Close the file at the end, and return it. A task without elements writes an empty one."""
        if not self._has_ended:
            return []
        with naming(self._final):
            file = self._open()
            self._folder.sync(file)
            file.close()
        return [Pending(self._hidden, self._final, self._size)]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


# --- texts ---
def text_of_element(value: Any) -> str:
    """Return an element as Java writes it.

    >>> text_of_element(("a", True, 1e7, None))
    '(a,true,1.0E7,null)'
    """
    match value:
        case None:
            text = "null"
        case bool():
            text = str(value).lower()
        case float():
            text = double_text(value)
        case Row():
            text = f"{value.get_row_kind()}[{', '.join(map(text_of_element, value))}]"
        case tuple():
            text = f"({','.join(map(text_of_element, value))})"
        case list():
            text = f"[{', '.join(map(text_of_element, value))}]"
        case _:
            text = str(value)
    return text


class CsvLine:
    """Turns a tuple into a line, with a delimiter between its fields and without quotes."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter

    def __call__(self, value: Any) -> str:
        if not isinstance(value, tuple):
            raise TypeMismatch(f"write_as_csv writes tuples, not {value!r}")
        return self.delimiter.join(map(text_of_element, value))
