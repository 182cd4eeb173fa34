"""A table below a notebook's cell that changes with the rows of a query."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping

from penstock.base.display.html_parts import BLUE, GREEN, GREY, RED, failure, grid, head, note, whole
from penstock.base.display.live_picture import LivePicture
from penstock.base.display.short_texts import count, one_line, printable
from penstock.common.types import Row
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.display.materialised_rows import Materialised
from penstock.table.display.row_grids import headings
from penstock.table.display.row_printing import WIDEST, cut, frame, texts_of
from penstock.table.display.shared_rows import Rows, SharedRows

HELD = 1000
"""Greatest number of rows that are held to be shown. The oldest ones are forgotten."""
_COLOURS = {"RUNNING": GREEN, "FINISHED": BLUE, "FAILED": RED}


class LiveTable:
    """Shows the current rows of a query's result, below the cell that created it."""

    def __init__(
        self, schema: ResolvedSchema, rows: Rows, zone: str, status: Callable[[], str], newest: int, seconds: float
    ) -> None:
        self._schema = schema
        self._zone = zone
        self._status = status
        self._newest = newest
        self._held = Materialised(max(HELD, newest))
        self._lock = threading.Lock()
        self.rows = SharedRows(rows, self._see)
        self.picture = LivePicture(self.bundle, lambda: self.rows.is_over, seconds)

    def _see(self, row: Row) -> None:
        texts = texts_of(row, self._schema.types(), self._zone)
        with self._lock:
            self._held.apply(texts, row.get_row_kind())

    def bundle(self) -> Mapping[str, str]:
        """Return the rows of this moment by MIME type."""
        is_over, error = self.rows.is_over, self.rows.error
        with self._lock:
            shown, rows, changes = self._held.newest(self._newest), len(self._held), self._held.changes
        names, types = self._schema.get_column_names(), self._schema.types()
        status = self._status() if error is None else "FAILED"
        facts = [count(rows, "row"), count(changes, "change")]
        title = head("Query", *facts, badge=status, colour=_COLOURS.get(status, GREY))
        more = note(f"the newest {self._newest} rows") if rows > self._newest else ""
        problem = "" if error is None else failure(str(error))
        text = io.StringIO()
        frame(names, [[text and cut(one_line(text), WIDEST) for text in row] for row in shown], text)
        about = f"query is {status}: {', '.join(facts)}" + ("" if is_over else " so far")
        return {
            "text/html": whole(title, problem, grid(headings(names, types, self._zone), shown), more),
            "text/plain": f"{about}\n{printable(text.getvalue())}".rstrip(),
        }

    def stop(self) -> None:
        """End the query. The rows that came stay below the cell."""
        self.rows.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the picture shows the end of the query. Return True if it does."""
        return self.picture.wait(timeout)

    def _ipython_display_(self) -> None:
        """Do nothing: the table has displayed itself already."""
