"""ExecutionEnvironment: where DataSet programs begin, and what runs them as BATCH jobs on Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.api.settings.execution_mode import RuntimeExecutionMode
from penstock.common.job import JobExecutionResult
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.files.file_source import FileSource
from penstock.connectors.number_sequence import NumberSequenceSource
from penstock.connectors.source_api import Source
from penstock.dataset.accumulators import Accumulator
from penstock.dataset.csv_reader import CsvReader
from penstock.dataset.data_set import DataSet
from penstock.dataset.data_sink import DataSink, TextFileSink, text_of_element
from penstock.dataset.iterations.iteration_driver import IterationDriver
from penstock.dataset.operators.gathering import Gathered, GatheringSink
from penstock.dataset.operators.record_operators import CountElements
from penstock.dataset.plan.checks import check_type
from penstock.dataset.plan.element_kinds import Kind, common_kind
from penstock.dataset.plan.enums import WriteMode
from penstock.dataset.plan.steps import Lowering, Ref, Step
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import NothingToExecute, TypeMismatch
from penstock.formats.text_files import TextLineFormat
from penstock.graph.transformations import StreamRef, Transformation
from penstock.service.launch import submission


class ExecutionEnvironment:
    """Makes data sets, and runs jobs: one for each execute(), collect(), count() and print()."""

    def __init__(self) -> None:
        self._streams = StreamExecutionEnvironment.get_execution_environment()
        self._streams.set_runtime_mode(RuntimeExecutionMode.BATCH)
        self._sinks: list[DataSink] = []
        self._last: JobExecutionResult | None = None

    @staticmethod
    def get_execution_environment() -> ExecutionEnvironment:
        """Return a new environment, with the settings of the command line, the server or spark-submit."""
        return ExecutionEnvironment()

    # --- settings ---
    def set_parallelism(self, parallelism: int) -> ExecutionEnvironment:
        """Set the number of tasks of operators that do not set it."""
        self._streams.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """Return the number of tasks of operators that do not set it."""
        return self._streams.get_parallelism()

    def set_restart_strategy(self, strategy: RestartStrategyConfiguration) -> ExecutionEnvironment:
        """Set the number of restarts of a failed job.

        Spark runs failed tasks again, but it cannot repeat a task of an iteration.
        """
        self._streams.set_restart_strategy(strategy)
        return self

    def get_config(self) -> Any:
        """Return the execution configuration."""
        return self._streams.get_config()

    def register_cached_file(self, path: str, name: str) -> None:
        """Copy a file to every machine. Functions get its path there from the distributed cache."""
        self._streams.register_cached_file(path, name)

    # --- sources ---
    def from_collection(self, data: Iterable[Any]) -> DataSet:
        """Return the elements of a collection."""
        if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
            raise TypeMismatch(f"from_collection takes a collection of elements, not {data!r}")
        elements = list(data)
        if any(element is None for element in elements):
            raise TypeMismatch(f"element {elements.index(None)} is None, which cannot be an element")
        return self._source("Collection Source", lambda env: env.from_collection(elements), common_kind(elements))

    def from_elements(self, *values: Any) -> DataSet:
        """Return the given elements."""
        return self.from_collection(values)

    def generate_sequence(self, first: int, last: int) -> DataSet:
        """Return the whole numbers from the first to the last, both included."""
        return self.read_source(NumberSequenceSource(first, last), "Sequence Source", int)

    def read_text_file(self, path: str, charset: str = "UTF-8") -> DataSet:
        """Return the lines of a file, of the files in a folder, or of those that match a pattern; any fsspec URL."""
        source = FileSource.for_record_stream_format(TextLineFormat(charset), path).build()
        return self.read_source(source, "Text File Source", str)

    def read_csv_file(self, path: str) -> CsvReader:
        """Return a reader of lines with fields: .types(int, str) ends it."""
        check_type("read_csv_file", "path", path, str)
        return CsvReader(self, path)

    def from_spark(self, data_frame: Any) -> DataSet:
        """Return the rows of a Spark DataFrame."""
        return self._source("Spark Source", lambda env: env.from_spark(data_frame), None)

    def read_source(self, source: Source | NumberSequenceSource, name: str, kind: Kind = None) -> DataSet:
        """Return the records of a bounded source connector."""

        def read(env: StreamExecutionEnvironment) -> DataStream:
            return env.from_source(source, WatermarkStrategy.no_watermarks(), name)

        return self._source(name, read, kind)

    def _source(self, name: str, read: Callable[[StreamExecutionEnvironment], DataStream], kind: Kind) -> DataSet:
        return DataSet(self, (Ref(Step(name, read=read)),), kind)

    # --- results ---
    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the sinks that were added since the last job."""
        if not self._sinks:
            raise NothingToExecute("there is no new sink: add one, or call collect(), count() or print()")
        self._run([], job_name)
        return self.get_last_job_execution_result()

    def get_last_job_execution_result(self) -> JobExecutionResult:
        """Return the result of the last job, with its accumulators."""
        if self._last is None:
            raise NothingToExecute("no job has run yet: call execute(), collect(), count() or print()")
        return self._last

    def get_execution_plan(self) -> str:
        """Return the plan of the sinks as JSON."""
        try:
            self._lower([])
            return self._streams.get_execution_plan()
        finally:
            self._streams.close()

    def explain(self, data: DataSet | None = None) -> str:
        """Return the plan as text: that of the sinks, and of a data set if one is given."""
        try:
            self._lower([] if data is None else [data])
            return self._streams.explain()
        finally:
            self._streams.close()

    def collect(self, data: DataSet) -> list[Any]:
        """Run a job, and return the elements of a set."""
        return self._run([data])[0]

    def count(self, data: DataSet) -> int:
        """Run a job, and return the number of elements of a set."""
        (counts,) = self._run([data.add("Count", CountElements())])
        return sum(count for _, count in counts)

    def print(self, data: DataSet, to_error: bool) -> None:
        """Run a job, and print the elements of a set."""
        out = sys.stderr if to_error else sys.stdout
        for element in self.collect(data):
            print(text_of_element(element), file=out)

    def write(
        self, data: DataSet, path: str, text_of: Callable[[Any], str], ending: str, write_mode: WriteMode
    ) -> DataSink:
        """Add a sink that writes a text for each element."""
        if not isinstance(path, (str, os.PathLike)):
            raise TypeMismatch(f"a path or URL must be a string, not {path!r}")
        check_type("write", "write_mode", write_mode, WriteMode)
        sink = DataSink(data, TextFileSink(str(path), text_of, ending), write_mode)
        self._sinks.append(sink)
        return sink

    # --- jobs ---
    def _run(self, wanted: Sequence[DataSet], job_name: str | None = None) -> list[list[Any]]:
        """Run a job with all new sinks, and return the elements of some sets."""
        try:
            for sink in self._sinks:
                sink.prepare()
            lowering, collecting, accumulators = self._lower(wanted)
            handle = submission.start(self._streams, job_name, lowering.handlers)
        finally:
            self._streams.close()
            self._sinks = []
        try:
            ended = handle.result()
        except KeyboardInterrupt:
            handle.cancel()
            raise
        results = [gathered.values() for gathered in collecting]
        totals = merge_accumulators(accumulators.values())
        self._last = JobExecutionResult(ended.get_job_id(), ended.get_net_runtime(), totals)
        return results

    def _lower(self, wanted: Sequence[DataSet]) -> tuple[Lowering, list[Gathered], Gathered]:
        """Add the sinks and the wanted sets to the program. Return their results, and the accumulators."""
        lowering = Lowering(self._streams)
        for sink in self._sinks:
            self._streams.add_node(sink.lower(lowering, self.get_parallelism()))
        collecting = []
        for data in wanted:
            parallelism = data.refs[0].step.parallelism if len(data.refs) == 1 else 1
            collecting.append(self._gather(lowering, "Collect", lowering.lower(data.refs), parallelism))
        accumulators = Gathered()
        if lowering.accumulators:
            accumulators = self._gather(lowering, "Accumulators", lowering.accumulators, 1)
        has_iterations = any(isinstance(handler, IterationDriver) for handler in lowering.handlers.values())
        mode = RuntimeExecutionMode.STREAMING if has_iterations else RuntimeExecutionMode.BATCH
        self._streams.set_runtime_mode(mode)
        return lowering, collecting, accumulators

    def _gather(self, lowering: Lowering, name: str, refs: list[StreamRef], parallelism: int | None) -> Gathered:
        node = self._streams.add_node(Transformation(name, GatheringSink(), [refs], kind="sink"))
        node.parallelism = parallelism
        gathered = lowering.handlers[node] = Gathered()
        return gathered


def merge_accumulators(found: Iterable[tuple[str, Accumulator]]) -> dict[str, Any]:
    """Return the values of the accumulators of all tasks, by name."""
    merged: dict[str, Accumulator] = {}
    for name, accumulator in found:
        if name not in merged:
            merged[name] = accumulator
        elif type(merged[name]) is not type(accumulator):
            kinds = type(merged[name]).__name__, type(accumulator).__name__
            raise TypeMismatch(f"the accumulator '{name}' is a {kinds[0]} in one function and a {kinds[1]} in another")
        else:
            merged[name].merge(accumulator)
    return {name: accumulator.get_local_value() for name, accumulator in merged.items()}
