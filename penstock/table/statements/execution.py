"""Running plans: queries, inserts as a job, and explanations of both."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.common.job_client import JobClient
from penstock.common.types import Row
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import PenstockError, TableException
from penstock.graph.plan import Plan
from penstock.service.launch.submission import plan_of_operators, sources_without_end
from penstock.spark.frames.shared_frames import SharedFrames
from penstock.spark.sql.engine_choice import reason_against
from penstock.spark.sql.refusal import Refused, Untranslatable
from penstock.spark.sql.sharing import sharing
from penstock.table.api.config import TableConfig
from penstock.table.api.results import TableResult, remaining
from penstock.table.builders import Planner
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.display.explanations import explanation
from penstock.table.display.first_rows import FirstRows
from penstock.table.display.result_displays import KnownRows
from penstock.table.display.row_printing import WIDEST
from penstock.table.explain_detail import ExplainDetail
from penstock.table.logical.nodes import Insert, Relation, Values, walk_plan
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.options import job_options as options
from penstock.table.result_kind import ResultKind
from penstock.table.statements.query_options import apply_options
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
        self._env.settings.forget(key)

    def planner(self) -> Planner:
        """Return a planner with the present options."""
        self._env.configure(self._config.get_configuration())
        apply_options(self._config.effective_map(), self._env)
        return Planner(self._env, self._config, self.batch)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Run the block on an empty program. The program's own sinks wait for its own execute."""
        env, waiting, uids = self._env, list(self._env.sinks), dict(self._env.query_uids)
        sources = list(env._sources)
        env.close()
        try:
            yield
        finally:
            env.sinks[:], env._sources[:] = waiting, sources
            env.query_uids = uids

    def query(self, relation: Relation) -> TableResult:
        """Run a query. Its rows can be read while it runs."""
        schema = ResolvedSchema.of_relation(relation.columns)
        widest, zone = int(self._config.get(options.COLUMN_WIDTH, str(WIDEST))), self._config.get_local_timezone()
        how: dict[str, Any] = {"wait": lambda _: None, "widest": widest, "zone": zone}
        planner, name = self.planner(), self._config.get(JOB_NAME, "") or "collect"
        query = self._on_spark(planner.optimise(relation))
        if not isinstance(query, Refused):
            found = query.engine.collect(query, name)
            return TableResult(schema, found, job=JobClient(found.handle), **how)
        with self._alone():
            rows = planner.rows(relation).execute_and_collect(name)
        assert rows._job is not None  # execute_and_collect has started it
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
        held = KnownRows([Row(*[-1] * len(names))])
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
        if inserts_only and planner.is_changelog(relation):
            raise TableException(
                "to_data_stream needs a table whose rows are only inserted, and this table changes rows: use "
                "to_changelog_stream"
            )
        return planner.rows(relation, stamped)

    def explain(self, relations: Sequence[Relation], details: Sequence[ExplainDetail]) -> str:
        with self._alone():
            planner = self.planner()
            text = planner.explain(list(relations), *details)
            if not self.batch:
                return explanation(text, self._plan_of_operators(planner, relations))
            engines = self._engines_of(planner, relations)
            return explanation(f"{text}\n== Engine ==\n" + "\n\n".join(engines) + "\n", None)

    def _plan_of_operators(self, planner: Planner, relations: Sequence[Relation]) -> Plan | None:
        """Return the plan of the operators of queries; None if they cannot run together."""
        streams = [planner.stream(relation) for relation in relations]
        try:
            return plan_of_operators(self._env, [ref.node for stream in streams for ref in stream.refs], None)
        except PenstockError:
            return None

    # --- for people ---
    @property
    def zone(self) -> str:
        """The time zone in which values of TIMESTAMP_LTZ are shown."""
        return self._config.get_local_timezone()

    def shows_eagerly(self) -> bool:
        """Return True if a notebook may run a query to show its rows."""
        return self._config.get(options.EAGER, "false").strip().lower() == "true"

    def rows_to_show(self) -> int:
        """Return the greatest number of rows that a notebook shows of a table."""
        return int(self._config.get(options.SHOWN_ROWS, "20"))

    def endless_sources(self, relation: Relation) -> list[str]:
        """Return the names of the sources of a query that never end."""
        with self._alone():
            return endless_sources(self.planner().rows(relation))

    def first_rows(self, table: Table, most: int) -> FirstRows:
        """Run a query until its first rows are known."""
        if self.batch:
            with table.fetch(most + 1).execute().collect() as found:
                rows = list(found)
        else:
            rows = self._first_of_stream(table.relation, most + 1)
        return FirstRows(table.get_resolved_schema(), rows[:most], len(rows) > most, self.zone)

    def _first_of_stream(self, relation: Relation, most: int) -> list[Row]:
        """Return the first rows that remain of a changelog. If rows are never taken back, read no more than these."""
        with self._alone():
            planner = self.planner()
            stream, grows = planner.rows(relation), not planner.is_changelog(relation)
            endless = endless_sources(stream)
            if endless and not grows:
                raise TableException(
                    f"the table reads {', '.join(endless)}, which never ends, and its rows change, so no first "
                    "rows are final. Use execute().live() to follow it"
                )
            with stream.execute_and_collect("show") as rows:
                return list(islice(rows, most)) if grows else remaining(rows)

    def to_spark(self, table: Table) -> Any:
        """Return the final rows of a query as a DataFrame; in BATCH mode, as the DataFrame that would compute them."""
        query = self._on_spark(self.planner().optimise(table.relation))
        if not isinstance(query, Refused):
            self._env.settings.reads_frames = True  # it would be lost with its session
            return query.output()
        from penstock.spark.frames.table_frames import frame_of

        return frame_of(table.to_pandas())

    # --- on Spark SQL ---
    def _on_spark(self, relation: Relation) -> Translated | Refused:
        """Return an optimised BATCH query or INSERT as a DataFrame, or the reason why it runs on our operators."""
        (found,) = self._all_on_spark([relation])
        return found

    def _all_on_spark(self, relations: Sequence[Relation]) -> list[Translated | Refused]:
        """Return each relation as a DataFrame, or the reason why it runs on our operators. They run together.

        The relations run together. A relation that shares a part with one on our operators runs there too, so that the
        part is computed once.
        """
        queries = [relation.inputs()[0] if isinstance(relation, Insert) else relation for relation in relations]
        reasons = [self._reason_against(relation) for relation in relations]
        refused = [Refused(reason) for reason in reasons if reason is not None]
        if len(refused) == len(reasons):
            return list(refused)
        from penstock.spark.sql.engine import SparkEngine

        engine = SparkEngine(self._env, self._config)
        found = [
            self._translate(engine, query, isinstance(relation, Insert)) if reason is None else Refused(reason)
            for relation, query, reason in zip(relations, queries, reasons, strict=True)
        ]
        for number, one in enumerate(list(found)):
            if isinstance(one, Refused):
                shared = f"it shares a part with another INSERT, which does not run on Spark SQL: {one.reason}"
                for other in sharing(queries, number):
                    if not isinstance(found[other], Refused):
                        found[other] = Refused(shared)
        return found

    def _reason_against(self, relation: Relation) -> str | None:
        """Return the reason why a query is not translated at all; None if it is tried."""
        inserts = isinstance(relation, Insert)
        reason = reason_against(self._config, collects=not inserts) if self.batch else "it is a stream"
        if reason is None and inserts and all(isinstance(p, Values | Calc) for p in walk_plan(relation.inputs()[0])):
            return "the rows are in the statement itself"
        return reason

    def _translate(self, engine: SparkEngine, query: Relation, staged: bool) -> Translated | Refused:
        try:
            translated = engine.translate(query, staged)
        except Untranslatable as refused:
            log.info("a query runs on Penstock's operators: %s", refused)
            return Refused(str(refused))
        log.info("a query runs on Spark SQL")
        return translated

    def _read_from_spark(self, planner: Planner, inserts: Sequence[Insert]) -> None:
        """Let INSERTs get their rows from DataFrames, if their queries run on Spark SQL."""
        found = self._all_on_spark([planner.optimise(insert) for insert in inserts])
        queries = _different(found)
        shared = _share(queries)
        for query in queries:
            planner.use_stream(query.relation, query.engine.source(query, shared))

    def _engines_of(self, planner: Planner, relations: Sequence[Relation]) -> list[str]:
        """Return the engine of each query or INSERT.

        For Spark, it includes the plan, in which a shared part is a table.
        """
        found = self._all_on_spark([planner.optimise(relation) for relation in relations])
        with _share(_different(found)).hold():
            return [
                f"Runs on Penstock's operators: {query.reason}"
                if isinstance(query, Refused)
                else f"Runs on Spark SQL\n{query.explain()}"
                for query in found
            ]


def endless_sources(stream: DataStream) -> list[str]:
    """Return the names of the sources of a stream that never end."""
    return sources_without_end([ref.node for ref in stream.refs])


def _different(found: Sequence[Translated | Refused]) -> list[Translated]:
    """Return the queries that Spark SQL runs. Queries with the same DataFrame count once."""
    return list({id(query.frame): query for query in found if not isinstance(query, Refused)}.values())


def _share(queries: Sequence[Translated]) -> SharedFrames:
    return queries[0].engine.share(queries) if queries else SharedFrames((), 0)
