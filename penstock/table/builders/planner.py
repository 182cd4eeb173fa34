"""The planner: optimises queries, makes programs of them, and explains both."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.table.builders import aggregate_builders as aggregates
from penstock.table.builders import function_builders as functions
from penstock.table.builders import join_builders as joins
from penstock.table.builders import leaf_builders as scans
from penstock.table.builders import order_builders as orders
from penstock.table.builders import table_builders as tables
from penstock.table.builders.async_calls import AsyncCalls, async_options
from penstock.table.builders.builder import Build, Builder, Options
from penstock.table.builders.physical import Physical, explain
from penstock.table.logical.nodes import Insert, Relation
from penstock.table.logical.nodes import explain as explained_relation
from penstock.table.operators.io.row_conversions import ToRows
from penstock.table.options.job_options import SORT_LIMIT
from penstock.table.rules.optimiser import optimise
from penstock.table.types.data_types import RowType
from penstock.table.types.stream_types import type_information

CHANGELOG_MODE, PLAN_ADVICE, JSON_EXECUTION_PLAN = "CHANGELOG_MODE", "PLAN_ADVICE", "JSON_EXECUTION_PLAN"


class Planner:
    """Plans the queries of one program. Relations that several queries share run once."""

    def __init__(self, env: StreamExecutionEnvironment, config: Options, batch: bool) -> None:
        self._builder = Builder(env, config, batch, builders())
        self._env = env
        self._batch = batch
        self._async_calls = AsyncCalls(async_options(config))
        self._optimised: dict[int, tuple[Relation, Relation]] = {}

    def optimise(self, relation: Relation) -> Relation:
        """Return the optimised plan of a query."""
        known = self._optimised.get(id(relation))
        if known is None:
            limit = int(self._builder.config.get(SORT_LIMIT, "-1"))
            made = optimise(self._async_calls.bind_options(relation), self._batch, limit)
            known = self._optimised[id(relation)] = (relation, made)
        return known[1]

    def stream(self, relation: Relation) -> Physical:
        """Return a query as a stream of batches."""
        return self._builder.build(self.optimise(relation))

    def rows(self, relation: Relation, stamped: bool = False) -> DataStream:
        """Return a query as a stream of Rows with kinds of change. If `stamped`, timestamps are its event time."""
        physical = self.stream(relation)
        operator = ToRows(relation.columns, physical.changelog, stamped)
        declared = _row_type(relation)
        stream = self._builder.then(physical, relation, "Rows", operator)
        return DataStream(self._env, stream.refs, declared)

    def use_stream(self, relation: Relation, physical: Physical) -> None:
        """Use a stream for a relation of an optimised plan, instead of building it."""
        self._builder.know(relation, physical)

    def is_changelog(self, relation: Relation) -> bool:
        """Return True if a query sends more than inserts."""
        return self.stream(relation).changelog

    def insert(self, inserts: Sequence[Insert]) -> None:
        """Add the sinks of INSERTs to the program."""
        for insert in inserts:
            self.stream(insert)

    # --- explaining ---
    def explain(self, relations: Relation | Sequence[Relation], *details: object) -> str:
        """Return queries as text at every level: as they were written, after optimisation, and their operators."""
        whole = [relations] if isinstance(relations, Relation) else list(relations)
        physical = [self.stream(relation) for relation in whole]
        wanted = {getattr(detail, "name", str(detail)) for detail in details}
        optimised = "\n\n".join(explain(one, CHANGELOG_MODE in wanted) for one in physical)
        advised = " With Advice" if PLAN_ADVICE in wanted else ""
        sections = [
            ("== Abstract Syntax Tree ==", "\n\n".join(map(explained_relation, whole))),
            (f"== Optimized Physical Plan{advised} ==", optimised + ("\n\nNo available advice..." if advised else "")),
            ("== Optimized Execution Plan ==", "\n\n".join(explain(one, False) for one in physical)),
        ]
        if JSON_EXECUTION_PLAN in wanted:
            sections.append(("== Physical Execution Plan ==", self._execution_plan(whole, physical)))
        return "\n\n".join(f"{title}\n{text}" for title, text in sections) + "\n"

    def _execution_plan(self, whole: Sequence[Relation], physical: Sequence[Physical]) -> str:
        """Return the operators of the program as JSON. Queries without a sink get one that discards rows."""
        for relation, one in zip(whole, physical, strict=True):
            if not isinstance(relation, Insert):
                one.stream.discard()
        return self._env.get_execution_plan()


def _row_type(relation: Relation) -> TypeInformation:
    """Return the type of a query's rows, without names if names repeat."""
    if len(set(relation.names())) == len(relation.names()):
        return type_information(RowType([(column.name, column.type) for column in relation.columns]))
    return Types.ROW([type_information(kind) for kind in relation.types()])


def builders() -> dict[type, Build]:
    """Return the builder of each kind of relation."""
    modules = (scans, aggregates, joins, orders, functions, tables)
    return {kind: build for module in modules for kind, build in module.BUILDERS.items()}
