"""Turns optimised plans of queries into DataFrames, and DataFrames into jobs or into sources for INSERTs."""

from __future__ import annotations

import logging
import pickle
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING

from penstock import compat
from penstock.common.job import JobID
from penstock.common.types import Row, make_row
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.job.driver_parts import job_failed
from penstock.engine.job.job_handle import JobHandle
from penstock.engine.messages.commands_and_reports import Deployment
from penstock.engine.operators.sources.source_operator import SourceOperator
from penstock.errors import JobFailed
from penstock.graph.plan import Node, Plan
from penstock.graph.transformations import StreamRef, Transformation
from penstock.service.launch import submission
from penstock.spark.batch.frame_job import FrameJob
from penstock.spark.frames.shared_frames import SharedFrames
from penstock.spark.frames.staged_frames import StagedFrame
from penstock.spark.sessions.cached_files import ship_files
from penstock.spark.sessions.session import session
from penstock.spark.sessions.sql_session import (
    REFUSALS,
    check_translation,
    is_on_one_machine,
    physical_plan,
    query_session,
)
from penstock.spark.sql.batch_transport import quote, transport_type, unpack_batch
from penstock.spark.sql.leaves import LEAVES
from penstock.spark.sql.query_tasks import Surroundings, failure_in
from penstock.spark.sql.refusal import Untranslatable
from penstock.spark.sql.relation_frames import Frame, FrameBuilder
from penstock.spark.sql.relations import NATIVES
from penstock.spark.sql.sharing import common
from penstock.table.logical.nodes import Columns, Relation, Sort
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.options.job_options import STAGING
from penstock.table.rules.implementation.query_settings import Options
from penstock.table.types.arrow_forms import arrow_schema, values_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_SAID = 2000
"""Longest text of a Spark error, in characters, that is passed on. Spark adds the stacks of two languages."""
log = logging.getLogger("penstock.table")


@dataclass(frozen=True)
class Translated:
    """A query that was translated to a DataFrame."""

    engine: SparkEngine
    relation: Relation
    frame: Frame

    def explain(self) -> str:
        """Return Spark's physical plan of the query."""
        return physical_plan(self.frame.data)

    def output(self) -> DataFrame:
        """Return the DataFrame with the column names of the query."""
        pairs = zip(self.frame.names, self.relation.names(), strict=False)
        return self.frame.data.selectExpr(*(f"{own} AS {quote(name)}" for own, name in pairs))


class SparkEngine:
    """Runs BATCH queries of an environment on Spark SQL: one query, or those of a statement set."""

    def __init__(self, env: StreamExecutionEnvironment, config: Options) -> None:
        self._env = env
        self._config = config

    # --- translation ---
    @cached_property
    def _builder(self) -> FrameBuilder:
        """Builder of all queries of this engine. Relations that several queries share become one DataFrame."""
        settings = self._env.settings
        settings.prepare_process()
        spark = session(settings.spark_master(), settings.job_name or "Penstock", settings.spark_settings())
        queries = query_session(spark)
        natives = {**LEAVES, **NATIVES}
        return FrameBuilder(self._env, self._config, queries, natives, self._surroundings(queries))

    def translate(self, relation: Relation, staged: bool) -> Translated:
        """Translate an optimised plan to a DataFrame. Raise Untranslatable if Spark cannot run a part of it.

        `staged`: whether the rows go through files on their way to a sink.
        """
        if staged:
            self._check_files(relation, self._builder.session)
        try:
            frame = self._builder.frame(relation)
            check_translation(frame.data)
            return Translated(self, relation, frame)
        except REFUSALS as error:
            said = str(error).splitlines()[0]
            log.warning("Spark rejected the translated query: %s", said)
            raise Untranslatable(f"Spark rejected the translated query: {said}") from error

    def _surroundings(self, spark: SparkSession) -> Surroundings:
        settings, dependencies, given = self._env.settings, self._env.dependencies, submission.defaults()
        archive = given.archive
        deployment = Deployment(
            "",
            Plan([Node(0, "query", "query", "source", None, 1, 1)], [], True),
            {},
            {},
            search_path=[*dependencies.search_path(), *(folder for folder in sys.path if folder)],
            pyflink=compat.is_installed(),
            cached_files=ship_files(spark, dict(dependencies.cached)),
            archive=None if archive is None else ship_files(spark, {"program": archive})["program"],
            working_directory=dependencies.working_directory(),
        )
        parameters = dict(settings.config.get_global_job_parameters())
        return Surroundings(pickle.dumps(deployment), int(time.time() * 1000), parameters)

    # --- results ---
    def collect(self, query: Translated, name: str) -> SparkRows:
        """Run a query as a job, and return its rows, which are available when the job has ended."""
        job_id = JobID()
        job = FrameJob(job_id.hex, name, query.frame.data, _explain_error)
        return SparkRows(submission.start_job(JobHandle(job_id, job, None)), job, query.relation.columns)

    # --- for sinks ---
    def share(self, queries: Sequence[Translated]) -> SharedFrames:
        """Return the DataFrames that several queries share, so that each is computed once."""
        parts = common([query.relation for query in queries])
        frames = [self._builder.frame(part) for part in parts]
        return SharedFrames([frame.data for frame in frames if not frame.of_files], len(queries))

    def source(self, query: Translated, shared: SharedFrames) -> DataStream:
        """Return a stream of a query's rows for sinks of a BATCH job. Spark writes the rows to files exactly once."""
        columns = query.relation.columns
        frame = query.frame.data.toDF(*(f"c{index}" for index in range(len(columns))))
        folder = self._config.get(STAGING, "") or None
        staged = StagedFrame(frame, shared, folder, arrow_schema(columns), _is_ordered(query.relation))
        node = Transformation("Spark SQL", SourceOperator(staged), kind="source")
        return DataStream(self._env, [StreamRef(node)])

    def _check_files(self, relation: Relation, spark: SparkSession) -> None:
        """Raise Untranslatable for rows that Spark cannot write to files, or files that not all machines reach."""
        schema = arrow_schema(relation.columns)
        if not relation.columns or any(transport_type(field.type) != field.type for field in schema):
            raise Untranslatable("the rows of a sink have a type that Spark cannot write to files")
        if not self._config.get(STAGING, "") and not is_on_one_machine(spark):
            raise Untranslatable(f"an INSERT on a cluster needs '{STAGING}', a folder that all machines reach")


def _is_ordered(relation: Relation) -> bool:
    """Return True if the rows of a query have an order."""
    return isinstance(relation, Sort) or (isinstance(relation, Calc) and _is_ordered(relation.input))


def _explain_error(error: Exception) -> BaseException:
    """Return the meaning of a Spark error: the failure of one of our operators, else Spark's own text."""
    failure = failure_in(str(error))
    return job_failed(failure) if failure is not None else JobFailed(f"Spark failed: {str(error).strip()[:MOST_SAID]}")


class SparkRows:
    """Rows of a query that runs as a job. Iterating waits for the end of the job."""

    def __init__(self, handle: JobHandle, job: FrameJob, columns: Columns) -> None:
        self.handle = handle
        self._job = job
        self._columns = columns

    def __iter__(self) -> Iterator[Row]:
        self.handle.result()
        table, schema = self._job.table, arrow_schema(self._columns)
        assert table is not None
        names = tuple(column.name for column in self._columns)
        for batch in table.to_batches():
            whole = unpack_batch(batch.columns[: len(schema)], schema, batch.num_rows)
            columns = [
                values_of(array, column.type) for array, column in zip(whole.columns, self._columns, strict=True)
            ]
            values = zip(*columns, strict=True) if columns else repeat((), batch.num_rows)
            yield from (make_row(names, row) for row in values)

    def close(self) -> None:
        """Cancel the job."""
        self.handle.cancel()
