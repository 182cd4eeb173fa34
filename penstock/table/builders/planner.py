"""The planner: optimises queries, makes programs of them, and explains both."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.table.builders import (
    aggregate_builders,
    io_builders,
    join_builders,
    match_builders,
    order_builders,
)
from penstock.table.builders.async_calls import AsyncCalls, async_options
from penstock.table.builders.builder import Build, Builder
from penstock.table.logical.nodes import Insert, Relation
from penstock.table.logical.nodes import explain as explained_relation
from penstock.table.operators.io.row_conversions import ToRows
from penstock.table.options.job_options import SORT_LIMIT
from penstock.table.physical.io_nodes import SparkSQL
from penstock.table.physical.physical_node import explain
from penstock.table.rules.implementation import (
    choose_aggregates,
    choose_io,
    choose_joins,
    choose_match,
    choose_over,
    choose_ranks,
    choose_sinks,
    choose_windows,
)
from penstock.table.rules.implementation.chooser import Chooser, Rule
from penstock.table.rules.implementation.query_settings import Options, QuerySettings
from penstock.table.rules.optimiser import optimise
from penstock.table.types.data_types import RowType
from penstock.table.types.stream_types import type_information

CHANGELOG_MODE, PLAN_ADVICE, JSON_EXECUTION_PLAN = "CHANGELOG_MODE", "PLAN_ADVICE", "JSON_EXECUTION_PLAN"


class Planner:
    """Plans the queries of one program. Relations that several queries share run once."""

    def __init__(self, env: StreamExecutionEnvironment, config: Options, batch: bool) -> None:
        self._chooser = Chooser(QuerySettings(config, batch, env.get_parallelism() > 1), rules())
        self._builder = Builder(env, self._chooser, builders())
        self._env = env
        self._config = config
        self._batch = batch
        self._async_calls = AsyncCalls(async_options(config))
        self._optimised: dict[int, tuple[Relation, Relation]] = {}

    def optimise(self, relation: Relation) -> Relation:
        """Return the optimised plan of a query."""
        known = self._optimised.get(id(relation))
        if known is None:
            limit = int(self._config.get(SORT_LIMIT, "-1"))
            made = optimise(self._async_calls.bind_options(relation), self._batch, limit)
            known = self._optimised[id(relation)] = (relation, made)
        return known[1]

    def stream(self, relation: Relation) -> DataStream:
        """Return a query as a stream of batches."""
        return self._builder.build(self.optimise(relation))

    def rows(self, relation: Relation, stamped: bool = False) -> DataStream:
        """Return a query as a stream of Rows with kinds of change. If `stamped`, timestamps are its event time."""
        operator = ToRows(relation.columns, self.is_changelog(relation), stamped)
        stream = self._builder.then(self.stream(relation), relation, "Rows", operator)
        return DataStream(self._env, stream.refs, _row_type(relation))

    def use_stream(self, relation: Relation, stream: DataStream) -> None:
        """Use a stream that Spark SQL computes for a relation of an optimised plan, instead of choosing operators."""
        self._chooser.use(relation, SparkSQL(relation, (), False, stream))

    def is_changelog(self, relation: Relation) -> bool:
        """Return True if a query sends more than inserts."""
        return self._chooser.choose(self.optimise(relation)).changelog

    def insert(self, inserts: Sequence[Insert]) -> None:
        """Add the sinks of INSERTs to the program."""
        for insert in inserts:
            self.stream(insert)

    # --- explaining ---
    def explain(self, relations: Relation | Sequence[Relation], *details: object) -> str:
        """Return queries as text at every level: as they were written, after optimisation, and their operators."""
        whole = [relations] if isinstance(relations, Relation) else list(relations)
        physical = [self._chooser.choose(self.optimise(relation)) for relation in whole]
        streams = [self._builder.build_node(node) for node in physical]  # what cannot be built is refused
        wanted = {getattr(detail, "name", str(detail)) for detail in details}
        optimised = "\n\n".join(explain(one, CHANGELOG_MODE in wanted) for one in physical)
        advised = " With Advice" if PLAN_ADVICE in wanted else ""
        sections = [
            ("== Abstract Syntax Tree ==", "\n\n".join(map(explained_relation, whole))),
            (f"== Optimized Physical Plan{advised} ==", optimised + ("\n\nNo available advice..." if advised else "")),
            ("== Optimized Execution Plan ==", "\n\n".join(explain(one, False) for one in physical)),
        ]
        if JSON_EXECUTION_PLAN in wanted:
            sections.append(("== Physical Execution Plan ==", self._execution_plan(whole, streams)))
        return "\n\n".join(f"{title}\n{text}" for title, text in sections) + "\n"

    def _execution_plan(self, whole: Sequence[Relation], streams: Sequence[DataStream]) -> str:
        """Return the operators of the program as JSON. Queries without a sink get one that discards rows."""
        for relation, stream in zip(whole, streams, strict=True):
            if not isinstance(relation, Insert):
                stream.discard()
        return self._env.get_execution_plan()


def _row_type(relation: Relation) -> TypeInformation:
    """Return the type of a query's rows, without names if names repeat."""
    if len(set(relation.names())) == len(relation.names()):
        return type_information(RowType([(column.name, column.type) for column in relation.columns]))
    return Types.ROW([type_information(kind) for kind in relation.types()])


def rules() -> dict[type, Rule]:
    """Return the rule of each kind of relation."""
    modules = (
        choose_io,
        choose_sinks,
        choose_aggregates,
        choose_windows,
        choose_joins,
        choose_ranks,
        choose_over,
        choose_match,
    )
    return {kind: rule for module in modules for kind, rule in module.RULES.items()}


def builders() -> dict[type, Build]:
    """Return the builder of each kind of physical node."""
    modules = (io_builders, aggregate_builders, join_builders, order_builders, match_builders)
    return {kind: build for module in modules for kind, build in module.BUILDERS.items()}
