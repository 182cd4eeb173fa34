"""Runs plans: a query to its rows, inserts to a job, either to an explanation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.common.job_client import JobClient
from penstock.common.types import Row
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import TableException
from penstock.table import options
from penstock.table.explain_detail import ExplainDetail
from penstock.table.plan.nodes import Insert, Relation
from penstock.table.planning import Planner
from penstock.table.resolved_schema import ResolvedSchema
from penstock.table.result_kind import ResultKind
from penstock.table.table_config import TableConfig
from penstock.table.table_result import TableResult, _Held
from penstock.table.types import BigIntType

if TYPE_CHECKING:
    from penstock.table.table import Table

JOB_NAME = "pipeline.name"


class Execution:
    """Plans become streams of the environment, which runs them."""

    def __init__(self, env: StreamExecutionEnvironment, config: TableConfig, batch: bool) -> None:
        self._env = env
        self._config = config
        self.batch = batch

    def planner(self) -> Planner:
        """Plans with the options as they are now."""
        self._env.configure(self._config.get_configuration())
        options.apply(self._config.to_map(), self._env)
        return Planner(self._env, self._config, self.batch)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """What is built here runs by itself: the sinks that the program has added for its own execute wait."""
        env, waiting = self._env, list(self._env._sinks)
        env._sinks.clear()
        try:
            yield
        finally:
            env._sinks[:] = waiting

    def query(self, relation: Relation) -> TableResult:
        """Run a query. Its rows can be read while it runs."""
        schema = ResolvedSchema.of_relation(relation.columns)
        with self._alone():
            stream = self.planner().rows(relation)
            rows = stream.execute_and_collect(self._config.get(JOB_NAME, "") or "collect")
        return TableResult(schema, rows, job=JobClient(rows._job), streaming=not self.batch, wait=lambda _: None)

    def inserts(self, inserts: Sequence[Insert]) -> TableResult:
        """Run inserts as one job. How many rows they write is not known: -1."""
        names = [".".join(insert.path) for insert in inserts]
        with self._alone():
            self.planner().insert(inserts)
            job = self._env.execute_async(self._config.get(JOB_NAME, "") or f"insert-into_{','.join(names)}")
        schema = ResolvedSchema.physical(names, [BigIntType()] * len(names))
        held = _Held([Row(*[-1] * len(names))])
        result = TableResult(schema, held, ResultKind.SUCCESS_WITH_CONTENT, job, inserts=True)
        if self._config.get("table.dml-sync", "false").lower() == "true":
            result.wait()
        return result

    def attach(self, inserts: Sequence[Insert]) -> None:
        """Add inserts to the program that the stream environment will run."""
        self.planner().insert(inserts)

    def stream(self, relation: Relation, inserts_only: bool = False) -> DataStream:
        """The changelog of a query as Rows with kinds; refused if it must be inserts only and is not."""
        planner = self.planner()
        if inserts_only and planner.stream(relation).changelog:
            raise TableException(
                "to_data_stream takes a table that only grows, and this one changes rows: use to_changelog_stream"
            )
        return planner.rows(relation)

    def explained(self, relations: Sequence[Relation], details: Sequence[ExplainDetail]) -> str:
        with self._alone():
            return self.planner().explain(list(relations), *details)

    def to_spark(self, table: Table) -> Any:
        """What is left of a query at its end, as a DataFrame of the active Spark session."""
        from penstock.spark.table_frames import frame_of

        return frame_of(table.to_pandas())
