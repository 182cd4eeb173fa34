"""StatementSet and TablePipeline: inserts that run as one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.arguments import check_arguments
from penstock.errors import TableException
from penstock.table.api.results import TableResult
from penstock.table.catalogs.memory_catalog import ObjectIdentifier
from penstock.table.catalogs.table_descriptors import TableDescriptor
from penstock.table.explain_detail import ExplainDetail
from penstock.table.logical.nodes import Insert

if TYPE_CHECKING:
    from penstock.table.api.table_api import Table
    from penstock.table.environments.environment import TableEnvironment

__all__ = ["StatementSet", "TablePipeline"]


@check_arguments
class TablePipeline:
    """A table with the place where it will be written."""

    def __init__(self, insert: Insert, t_env: TableEnvironment) -> None:
        self._insert = insert
        self._t_env = t_env

    def execute(self) -> TableResult:
        return self._t_env._run_inserts([self._insert])

    def explain(self, *extra_details: ExplainDetail) -> str:
        return self._t_env._explained([self._insert], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        print(self.explain(*extra_details))

    def get_sink_identifier(self) -> ObjectIdentifier | None:
        """The table that is written; None if it has no name."""
        path = self._t_env._catalogs.qualified(self._insert.path)
        return None if path[2].startswith("*anonymous") else ObjectIdentifier(*path)


@check_arguments
class StatementSet:
    """Several inserts that are optimised together and run as one job: what they share is computed once."""

    def __init__(self, t_env: TableEnvironment) -> None:
        self._t_env = t_env
        self._inserts: list[Insert] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an INSERT statement."""
        self._inserts.append(self._t_env._insert_of(stmt))
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> StatementSet:
        """Add a table that goes into another."""
        self._inserts.append(self._t_env._inserted(table._relation, target_path_or_descriptor, overwrite))
        return self

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        self._inserts.append(table_pipeline._insert)
        return self

    def execute(self) -> TableResult:
        """Run all of them, and forget them."""
        if not self._inserts:
            raise TableException("there is nothing to execute; add an insert first")
        inserts, self._inserts = self._inserts, []
        return self._t_env._run_inserts(inserts)

    def attach_as_datastream(self) -> None:
        """Add them to the program of the stream environment; its `execute` runs them with the rest."""
        inserts, self._inserts = self._inserts, []
        self._t_env._attach(inserts)

    def explain(self, *extra_details: ExplainDetail) -> str:
        return self._t_env._explained(self._inserts, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        print(self.explain(*extra_details))
