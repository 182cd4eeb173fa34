"""TableResult: the result of a statement. Its rows can be iterated, printed, or converted to a DataFrame."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, overload

from penstock.base.arguments import check_arguments
from penstock.base.display.live_picture import in_kernel
from penstock.base.type_variables import T, T_co
from penstock.common.job_client import JobClient
from penstock.common.types import Row, RowKind
from penstock.errors import TableException
from penstock.table.api.typed_rows import record_maker
from penstock.table.catalogs.resolved_schema import ResolvedSchema, TableSchema
from penstock.table.display import row_printing as printing
from penstock.table.display.notebook_table import HELD, LiveTable
from penstock.table.display.result_displays import KnownRows, ShowsResult
from penstock.table.display.shared_rows import Rows
from penstock.table.display.terminal_table import show_live
from penstock.table.result_kind import ResultKind
from penstock.table.types.data_types import DataType, DataTypes

if TYPE_CHECKING:
    import pandas

__all__ = ["CloseableIterator", "TableResult"]


class CloseableIterator(Generic[T_co]):
    """Iterator over the rows of a result, without field names as in PyFlink, or over records made from them.

    Closing it, or leaving its `with` block, ends a query that still runs.
    """

    def __init__(self, rows: Rows, convert: Callable[[Row], T_co]) -> None:
        self._source = rows
        self._rows = iter(rows)
        self._convert = convert

    def __iter__(self) -> CloseableIterator[T_co]:
        return self

    def __next__(self) -> T_co:
        return self._convert(next(self._rows))

    def next(self) -> T_co:
        """Return the next row. Raise StopIteration after the last one."""
        return next(self)

    def __enter__(self) -> CloseableIterator[T_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End a query that still runs."""
        self._source.close()


def without_names(value: Any) -> Any:
    """Return a row of a result, and the rows in it, without the names of fields."""
    if isinstance(value, Row):
        return Row.of_kind(value.get_row_kind(), *map(without_names, value))
    if isinstance(value, list):
        return [without_names(one) for one in value]
    if isinstance(value, dict):
        return {without_names(key): without_names(one) for key, one in value.items()}
    return value


@check_arguments
class TableResult(ShowsResult):
    """The result of a statement."""

    def __init__(
        self,
        schema: ResolvedSchema,
        rows: Rows,
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
        """Return the result of a statement that has no rows to show."""
        return TableResult.of(["result"], [DataTypes.STRING()], [("OK",)], ResultKind.SUCCESS)

    @staticmethod
    def of(
        names: Sequence[str],
        types: Sequence[DataType],
        rows: Iterable[Sequence[Any]],
        kind: int = ResultKind.SUCCESS_WITH_CONTENT,
    ) -> TableResult:
        """Return a result with known rows."""
        made = Row(*names)
        return TableResult(ResolvedSchema.physical(names, types), KnownRows([made(*row) for row in rows]), kind)

    def is_insert(self) -> bool:
        """Return True for the result of INSERT statements, whose rows are the numbers of written rows."""
        return self._inserts

    # --- PyFlink's ---
    def get_job_client(self) -> JobClient | None:
        """Return the job that computes the result; None for statements without a job."""
        return self._job

    def get_result_kind(self) -> int:
        """Return a constant of ResultKind."""
        return self._kind

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the columns of the result."""
        return self._schema

    def get_table_schema(self) -> TableSchema:
        """Return the columns of the result in the older form."""
        return TableSchema(self._schema.get_column_names(), self._schema.types())

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait until the job has ended. For a query, wait until its first row comes or it ends without rows.

        Args:
            timeout_ms: The longest time to wait, in milliseconds; None for no limit.
        """
        if self._wait is not None:
            self._wait(timeout_ms)
        elif self._job is not None:
            seconds = None if timeout_ms is None else timeout_ms / 1000
            self._job.get_job_execution_result().result(seconds)

    @overload
    def collect(self) -> CloseableIterator[Row]: ...

    @overload
    def collect(self, *, as_: type[T]) -> CloseableIterator[T]: ...

    def collect(self, *, as_: type[object] | None = None) -> CloseableIterator[Any]:
        """Return the rows. They can be read only once. Rows of a stream have the kind of their change.

        With `as_`, a dataclass, NamedTuple or TypedDict, return records of this class. Its fields must have the names
        of the columns, and types that fit them. The result must be one to which rows are only added.
        """
        convert = (
            without_names if as_ is None else record_maker(as_, self._schema.get_column_names(), self._schema.types())
        )
        if self._read:
            raise TableException("the rows of a result can be read only once; execute the query again")
        rows = self._rows if self._live is None else self._live.rows.take_over()
        self._read = True
        return CloseableIterator(rows, convert)

    def print(self) -> None:
        """Print the rows in a frame. Rows of a stream are printed as they come."""
        names, types = self._schema.get_column_names(), self._schema.types()
        with self.collect() as rows:
            if self._kind == ResultKind.SUCCESS:
                print(*(row[0] for row in rows), sep="\n")
            elif self._job is None or self._inserts:
                printing.show_all(names, types, rows, sys.stdout)
            else:
                printing.show(names, types, rows, self._streaming, sys.stdout, self.widest, self.zone)

    # --- beyond ---
    def live(self, rows: int = 20, seconds: float = 1.0) -> LiveTable | None:
        """Follow a query: show the rows that it has left so far, and show them anew as they change.

        In a notebook they appear below the cell, and the call returns at once; the query goes on until it ends or
        `stop()` of the returned object is called. In a terminal the call returns when the query ends or Ctrl-C is
        pressed, which ends the query. Without a terminal the rows are printed as they come.

        Args:
            rows: The greatest number of rows in a notebook: the newest ones.
            seconds: The time after which a notebook shows the rows anew.
        """
        if rows < 1 or not seconds > 0:
            raise ValueError(f"live needs at least 1 row and a time above 0 s, not {rows} after {seconds} s")
        if in_kernel() and self._job is not None and not self._inserts:
            if self._read or self._live is not None:
                raise TableException("the rows of a result can be read only once; execute the query again")
            job = self._job
            self._live = LiveTable(
                self._schema, self._rows, self.zone, lambda: job.get_job_status().result().name, rows, seconds
            )
            return self._live
        if self._streaming and sys.stdout.isatty():
            with self.collect() as changes:
                show_live(self._schema.get_column_names(), self._schema.types(), changes, HELD, self.zone)
        else:
            self.print()
        return None

    def to_pandas(self) -> pandas.DataFrame:
        """Apply all changes, and return the remaining rows as a pandas DataFrame."""
        from penstock.table.api.dataframes import to_pandas

        with self.collect() as rows:
            return to_pandas(self._schema, remaining(rows))


def remaining(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that remain after all changes: +I and +U add a row, -U and -D remove the last equal one."""
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
