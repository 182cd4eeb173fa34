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
    """A table and the table into which it is written."""

    def __init__(self, insert: Insert, t_env: TableEnvironment) -> None:
        self._insert = insert
        self.t_env = t_env

    def execute(self) -> TableResult:
        """Start the job that writes the rows."""
        return self.t_env.execution.inserts([self._insert])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the plan as text."""
        return self.t_env.execution.explain([self._insert], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan."""
        print(self.explain(*extra_details))

    def get_sink_identifier(self) -> ObjectIdentifier | None:
        """Return the name of the written table; None if it has no name."""
        path = self.t_env.catalogs.qualify(self._insert.path)
        return None if path[2].startswith("*anonymous") else ObjectIdentifier(*path)


@check_arguments
class StatementSet:
    """Several inserts that are optimised together and run as one job. Their common parts are computed once."""

    def __init__(self, t_env: TableEnvironment) -> None:
        self.t_env = t_env
        self._inserts: list[Insert] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an INSERT statement, and return this set."""
        self._inserts.append(self.t_env.statements.insert(stmt))
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> StatementSet:
        """Add a table and its target, and return this set."""
        self._inserts.append(self.t_env.make_insert(table.relation, target_path_or_descriptor, overwrite))
        return self

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Add a pipeline, and return this set."""
        self._inserts.append(table_pipeline._insert)
        return self

    def execute(self) -> TableResult:
        """Start all inserts as one job, and remove them from this set."""
        if not self._inserts:
            raise TableException("there is nothing to execute; add an insert first")
        inserts, self._inserts = self._inserts, []
        return self.t_env.execution.inserts(inserts)

    def attach_as_datastream(self) -> None:
        """Move the inserts to the program of the stream environment. Its `execute` runs them with the rest."""
        inserts, self._inserts = self._inserts, []
        self.t_env.execution.attach(inserts)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the plan of all inserts as text."""
        return self.t_env.execution.explain(self._inserts, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan of all inserts."""
        print(self.explain(*extra_details))
