"""Displays of a Table. `repr` never runs a query; a notebook runs it only if an option asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.base.display.html_parts import failure, head, note, whole
from penstock.base.display.short_texts import count
from penstock.errors import PenstockError
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.display.first_rows import FirstRows, rows_without_job
from penstock.table.display.row_grids import schema_as_html
from penstock.table.logical.nodes import Relation

if TYPE_CHECKING:
    from penstock.table.environments.environment import TableEnvironment

_HOW = "The query has not run. show() prints the first rows; with the option table.display.eager they appear here."
_ENDLESS = "The table never ends: execute() follows it."


class ShowsTable:
    """Displays a Table: its schema, and its first rows if this is switched on."""

    relation: Relation
    t_env: TableEnvironment

    def get_resolved_schema(self) -> ResolvedSchema:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"Table {self.get_resolved_schema()}"

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        """Return the table for a notebook. IPython calls this for the value of a cell."""
        schema = self.get_resolved_schema()
        title = head("Table", count(schema.get_column_count(), "column"))
        try:
            rows, hint = self._rows_to_show(schema)
        except PenstockError as error:
            html = whole(title, failure(str(error)), schema_as_html(schema))
            return {"text/html": html, "text/plain": f"{self!r}\n{error}"}
        if rows is None:
            return {"text/html": whole(title, schema_as_html(schema), note(hint)), "text/plain": repr(self)}
        return {"text/html": whole(title, rows.as_html()), "text/plain": rows.as_text().rstrip()}

    def _rows_to_show(self, schema: ResolvedSchema) -> tuple[FirstRows | None, str]:
        """Return the rows that are known or wanted, or None and a hint."""
        execution, relation = self.t_env.execution, self.relation
        most = execution.rows_to_show()
        known = rows_without_job(relation, schema, most, execution.zone)
        if known is not None:
            return known, ""
        if not execution.shows_eagerly():
            return None, _HOW
        if execution.endless_sources(relation):
            return None, _ENDLESS
        return execution.first_rows(self.t_env._table(relation), most), ""
