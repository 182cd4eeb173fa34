"""Running plans: queries, inserts as a job, and explanations of both."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.common.job_client import JobClient
from penstock.common.types import Row
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import TableException
from penstock.spark.frames.shared_frames import SharedFrames
from penstock.spark.sql.engine_choice import reason_against
from penstock.spark.sql.refusal import Untranslatable
from penstock.spark.sql.sharing import sharing
from penstock.table.api.config import TableConfig
from penstock.table.api.results import TableResult, _Held
from penstock.table.api.row_printing import WIDEST
from penstock.table.builders import Planner
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.explain_detail import ExplainDetail
from penstock.table.logical.nodes import Insert, Relation, Values, walk_plan
from penstock.table.options import job_options as options
from penstock.table.physical.physical_nodes import Calc
from penstock.table.result_kind import ResultKind
from penstock.table.types.data_types import BigIntType

if TYPE_CHECKING:
    from penstock.spark.sql.engine import SparkEngine, Translated
    from penstock.table.api.table_api import Table

JOB_NAME = "pipeline.name"
log = logging.getLogger("penstock.table")


class Execution:
    """Turns plans into streams of the environment, and runs them."""

    def __init__(self, env: StreamExecutionEnvironment, config: TableConfig) -> None:
        self._env = env
        self._config = config

    @property
    def batch(self) -> bool:
        return self._config.is_batch()

    def forget_option(self, key: str) -> None:
        """Take an option back, as RESET does."""
        self._config.reset(key)
        self._env._settings.forget(key)

    def planner(self) -> Planner:
        """Return a planner with the present options."""
        self._env.configure(self._config.get_configuration())
        options.apply(self._config.effective_map(), self._env)
        return Planner(self._env, self._config, self.batch)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Run the block on an empty program. The program's own sinks wait for its own execute."""
        env, waiting, uids = self._env, list(self._env._sinks), dict(self._env._query_uids)
        env.close()
        try:
            yield
        finally:
            env._sinks[:] = waiting
            env._query_uids = uids

    def query(self, relation: Relation) -> TableResult:
        """Run a query. Its rows can be read while it runs."""
        schema = ResolvedSchema.of_relation(relation.columns)
        widest, zone = int(self._config.get(options.COLUMN_WIDTH, str(WIDEST))), self._config.get_local_timezone()
        how: dict[str, Any] = {"wait": lambda _: None, "widest": widest, "zone": zone}
        planner, name = self.planner(), self._config.get(JOB_NAME, "") or "collect"
        query = self._on_spark(planner.optimised(relation))
        if not isinstance(query, str):
            found = query.engine.collected(query, name)
            return TableResult(schema, found, job=JobClient(found.handle), **how)
        with self._alone():
            rows = planner.rows(relation).execute_and_collect(name)
        job = JobClient(rows._job)
        return TableResult(schema, rows, job=job, streaming=not self.batch, **how)

    def inserts(self, inserts: Sequence[Insert]) -> TableResult:
        """Run inserts as one job. The numbers of rows that they write are unknown: -1."""
        names = [".".join(insert.path) for insert in inserts]
        with self._alone():
            planner = self.planner()
            self._read_from_spark(planner, inserts)
            planner.insert(inserts)
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

    def stream(self, relation: Relation, inserts_only: bool = False, stamped: bool = False) -> DataStream:
        """Return the changelog of a query as Rows with kinds. Refuse changes if only inserts are allowed."""
        planner = self.planner()
        if inserts_only and planner.stream(relation).changelog:
            raise TableException(
                "to_data_stream takes a table that only grows, and this one changes rows: use to_changelog_stream"
            )
        return planner.rows(relation, stamped)

    def explain(self, relations: Sequence[Relation], details: Sequence[ExplainDetail]) -> str:
        with self._alone():
            planner = self.planner()
            text = planner.explain(list(relations), *details)
            if not self.batch:
                return text
            engines = self._engines_of(planner, relations)
            return f"{text}\n== Engine ==\n" + "\n\n".join(engines) + "\n"

    def to_spark(self, table: Table) -> Any:
        """Return the final rows of a query as a DataFrame; in BATCH mode, as the DataFrame that would compute them."""
        query = self._on_spark(self.planner().optimised(table._relation))
        if not isinstance(query, str):
            self._env._settings.reads_frames = True  # it would be lost with its session
            return query.named()
        from penstock.spark.frames.table_frames import frame_of

        return frame_of(table.to_pandas())

    # --- on Spark SQL ---
    def _on_spark(self, relation: Relation) -> Translated | str:
        """Return an optimised BATCH query or INSERT as a DataFrame, or the reason why it runs on our operators."""
        (found,) = self._all_on_spark([relation])
        return found

    def _all_on_spark(self, relations: Sequence[Relation]) -> list[Translated | str]:
        """Return each relation as a DataFrame, or the reason why it runs on our operators. They run together.

        A relation that shares a part with one on our operators runs there too, so that the part is computed once.
        """
        queries = [relation.inputs()[0] if isinstance(relation, Insert) else relation for relation in relations]
        reasons = [self._reason_against(relation) for relation in relations]
        if all(reasons):
            return [reason or "" for reason in reasons]
        from penstock.spark.sql.engine import SparkEngine

        engine = SparkEngine(self._env, self._config)
        found = [
            reason or self._translate(engine, query, isinstance(relation, Insert))
            for relation, query, reason in zip(relations, queries, reasons, strict=True)
        ]
        for number, refused in enumerate(list(found)):
            for other in sharing(queries, number) if isinstance(refused, str) else ():
                if not isinstance(found[other], str):
                    found[other] = f"it shares a part with another INSERT, which does not run on Spark SQL: {refused}"
        return found

    def _reason_against(self, relation: Relation) -> str | None:
        """Return the reason why a query is not translated at all; None if it is tried."""
        inserts = isinstance(relation, Insert)
        reason = reason_against(self._config, collects=not inserts) if self.batch else "it is a stream"
        if reason is None and inserts and all(isinstance(p, Values | Calc) for p in walk_plan(relation.inputs()[0])):
            return "the rows are in the statement itself"
        return reason

    def _translate(self, engine: SparkEngine, query: Relation, staged: bool) -> Translated | str:
        try:
            translated = engine.translated(query, staged)
        except Untranslatable as refused:
            log.info("a query runs on Penstock's operators: %s", refused)
            return str(refused)
        log.info("a query runs on Spark SQL")
        return translated

    def _read_from_spark(self, planner: Planner, inserts: Sequence[Insert]) -> None:
        """Let INSERTs get their rows from DataFrames, if their queries run on Spark SQL."""
        found = self._all_on_spark([planner.optimised(insert) for insert in inserts])
        queries = _different(found)
        shared = _share(queries)
        for query in queries:
            planner.known(query.relation, query.engine.source(query, shared))

    def _engines_of(self, planner: Planner, relations: Sequence[Relation]) -> list[str]:
        """Return the engine of each query or INSERT.

        For Spark it comes with its plan, in which a shared part is a table.
        """
        found = self._all_on_spark([planner.optimised(relation) for relation in relations])
        with _share(_different(found)).held():
            return [
                f"Runs on Penstock's operators: {query}"
                if isinstance(query, str)
                else f"Runs on Spark SQL\n{query.explained()}"
                for query in found
            ]


def _different(found: Sequence[Translated | str]) -> list[Translated]:
    """Return the relations that are DataFrames. INSERTs that write the same rows count once."""
    return list({id(query.frame): query for query in found if not isinstance(query, str)}.values())


def _share(queries: Sequence[Translated]) -> SharedFrames:
    return queries[0].engine.shared(queries) if queries else SharedFrames((), 0)
