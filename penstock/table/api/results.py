"""TableResult: what a statement came to. The rows of a query can be iterated, printed, or had as a DataFrame."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from penstock.base.arguments import check_arguments
from penstock.common.job_client import JobClient
from penstock.common.types import Row, RowKind
from penstock.errors import TableException
from penstock.table.api import row_printing as printing
from penstock.table.catalogs.resolved_schema import ResolvedSchema, TableSchema
from penstock.table.result_kind import ResultKind
from penstock.table.types.data_types import DataType, DataTypes

if TYPE_CHECKING:
    import pandas

__all__ = ["CloseableIterator", "TableResult"]


class _Rows(Protocol):
    def __iter__(self) -> Iterator[Row]: ...

    def close(self) -> None: ...


class _Held:
    """Rows that are known already."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def close(self) -> None:
        self._rows = iter(())


class CloseableIterator:
    """The rows of a result, without names, as PyFlink gives them.

    Closing it, or leaving its `with` block, ends a query that still runs.
    """

    def __init__(self, rows: _Rows) -> None:
        self._source = rows
        self._rows = iter(rows)

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Row:
        row: Row = without_names(next(self._rows))
        return row

    def next(self) -> Row:
        return next(self)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._source.close()


def without_names(value: Any) -> Any:
    """A row of a result, and the rows in it, by position alone."""
    if isinstance(value, Row):
        return Row.of_kind(value.get_row_kind(), *map(without_names, value))
    if isinstance(value, list):
        return [without_names(one) for one in value]
    if isinstance(value, dict):
        return {without_names(key): without_names(one) for key, one in value.items()}
    return value


@check_arguments
class TableResult:
    """What a statement came to."""

    def __init__(
        self,
        schema: ResolvedSchema,
        rows: _Rows,
        kind: int = ResultKind.SUCCESS_WITH_CONTENT,
        job: JobClient | None = None,
        streaming: bool = False,
        wait: Callable[[int | None], None] | None = None,
        inserts: bool = False,
        widest: int = printing.WIDEST,
        zone: str = "UTC",
    ) -> None:
        self._schema = schema
        self._rows = rows
        self._kind = kind
        self._job = job
        self._streaming = streaming
        self._wait = wait
        self._inserts = inserts
        self.widest = widest
        """Greatest width of a column when the rows are shown."""
        self.zone = zone
        """Time zone in which values of TIMESTAMP_LTZ are shown."""
        self._read = False

    # --- as the environment makes them ---
    @staticmethod
    def ok() -> TableResult:
        """A statement that has nothing to show."""
        return TableResult.of(["result"], [DataTypes.STRING()], [("OK",)], ResultKind.SUCCESS)

    @staticmethod
    def of(
        names: Sequence[str],
        types: Sequence[DataType],
        rows: Iterable[Sequence[Any]],
        kind: int = ResultKind.SUCCESS_WITH_CONTENT,
    ) -> TableResult:
        """Rows that are known."""
        made = Row(*names)
        return TableResult(ResolvedSchema.physical(names, types), _Held([made(*row) for row in rows]), kind)

    def is_insert(self) -> bool:
        """Whether it is the result of INSERT statements, whose rows only say how many rows were written."""
        return self._inserts

    # --- PyFlink's ---
    def get_job_client(self) -> JobClient | None:
        """The job that computes it; None for statements without one."""
        return self._job

    def get_result_kind(self) -> int:
        return self._kind

    def get_resolved_schema(self) -> ResolvedSchema:
        return self._schema

    def get_table_schema(self) -> TableSchema:
        return TableSchema(self._schema.get_column_names(), self._schema.types())

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait until the job has ended; for a query, until its first row is there or it has none."""
        if self._wait is not None:
            self._wait(timeout_ms)
        elif self._job is not None:
            seconds = None if timeout_ms is None else timeout_ms / 1000
            self._job.get_job_execution_result().result(seconds)

    def collect(self) -> CloseableIterator:
        """The rows, once. Those of a stream have the kind of their change."""
        if self._read:
            raise TableException("the rows of a result can be read only once; execute the query again")
        self._read = True
        return CloseableIterator(self._rows)

    def print(self) -> None:
        """Show the rows in a frame; those of a stream as they come."""
        names, types = self._schema.get_column_names(), self._schema.types()
        with self.collect() as rows:
            if self._kind == ResultKind.SUCCESS:
                print(*(row[0] for row in rows), sep="\n")
            elif self._job is None or self._inserts:
                printing.show_all(names, types, rows, sys.stdout)
            else:
                printing.show(names, types, rows, self._streaming, sys.stdout, self.widest, self.zone)

    # --- beyond ---
    def to_pandas(self) -> pandas.DataFrame:
        """What is left when all changes are done, as a pandas DataFrame."""
        from penstock.table.api.dataframes import to_pandas

        with self.collect() as rows:
            return to_pandas(self._schema, remaining(rows))


def remaining(rows: Iterable[Row]) -> list[Row]:
    """The rows that are left when +I and +U add a row, and -U and -D take the last equal one away."""
    places: dict[str, list[int]] = {}
    left: list[Row | None] = []
    for row in rows:
        kind, values = row.get_row_kind(), repr(list(row))
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            places.setdefault(values, []).append(len(left))
            left.append(row)
        elif places.get(values):
            left[places[values].pop()] = None
    kept = [row for row in left if row is not None]
    for row in kept:
        row.set_row_kind(RowKind.INSERT)
    return kept
