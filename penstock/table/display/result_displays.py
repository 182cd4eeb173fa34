"""Displays of a TableResult: of rows that are already known, and of the rows of a running query."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.base.display.html_parts import head, note, whole
from penstock.base.display.live_picture import in_kernel, show
from penstock.base.display.short_texts import count, escape
from penstock.common.job_client import JobClient
from penstock.common.types import Row
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.display.notebook_table import LiveTable
from penstock.table.display.row_grids import rows_as_html, schema_as_html
from penstock.table.display.row_printing import show_all
from penstock.table.result_kind import ResultKind

_MOST = 1000
"""Greatest number of known rows that are shown."""


class KnownRows:
    """Rows that are already known."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self._rest = iter(rows)

    def __iter__(self) -> Any:
        return self._rest

    def close(self) -> None:
        """Give no more rows."""
        self._rest = iter(())


class ShowsResult:
    """Displays a result. The rows of a query appear as they come, and can still be read afterwards."""

    _schema: ResolvedSchema
    _kind: int
    _job: JobClient | None
    _rows: Any
    _read: bool
    _live: LiveTable | None = None

    if TYPE_CHECKING:

        def live(self) -> LiveTable | None: ...

    def __repr__(self) -> str:
        if self._kind == ResultKind.SUCCESS:
            return "TableResult: OK"
        if isinstance(self._rows, KnownRows):
            text = io.StringIO()
            show_all(self._schema.get_column_names(), self._schema.types(), self._rows.rows[:_MOST], text)
            return text.getvalue().rstrip()
        columns = ", ".join(f"{column.name} {column.data_type.as_sql()}" for column in self._schema.get_columns())
        return f"TableResult ({columns}): {self._state()}"

    def _state(self) -> str:
        if self._job is None:
            return "no job"
        return f"job {self._job.get_job_id()} is {self._job.get_job_status().result().name}"

    def _repr_html_(self) -> str:
        if self._live is not None:
            return self._live.bundle()["text/html"]
        if self._kind == ResultKind.SUCCESS:
            return whole(f"<div>{escape('OK')}</div>")
        if isinstance(self._rows, KnownRows):
            rows = self._rows.rows
            cut = note(f"the first {count(_MOST, 'row')} of {len(rows):,}") if len(rows) > _MOST else ""
            job = "" if self._job is None else note(self._state())
            return whole(rows_as_html(self._schema, rows[:_MOST], "UTC"), cut, job)
        hint = "its rows have been read" if self._read else "live() shows its rows as they come"
        return whole(head("Query", self._state()), schema_as_html(self._schema), note(hint))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        if self._live is not None:
            return self._live.bundle()
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        """Show the result below the cell. IPython calls this for the value of a cell."""
        is_unread = not isinstance(self._rows, KnownRows) and not self._read and self._live is None
        if is_unread and in_kernel():
            self.live()
        else:
            show(self._repr_mimebundle_())
