"""StreamExecutionEnvironment: the place where a program begins and is run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self, overload

from penstock.api.functions.source_functions import SourceFunction
from penstock.api.settings.checkpoint_config import CheckpointConfig
from penstock.api.settings.checkpointing_mode import CheckpointingMode
from penstock.api.settings.execution_mode import RuntimeExecutionMode
from penstock.api.settings.state_backend import StateBackend
from penstock.api.slot_sharing_group import SlotSharingGroup
from penstock.api.time_characteristic import TimeCharacteristic
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import T
from penstock.common.configuration import Configuration
from penstock.common.execution_config import ExecutionConfig
from penstock.common.job import JobClient, JobExecutionResult
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.common.time import Duration
from penstock.common.type_information import DeclaredType, declared_type
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.common.types import Row
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.number_sequence import NumberSequenceSource
from penstock.connectors.socket_source import SocketTextSource
from penstock.connectors.source_api import BadRecords, Source
from penstock.datastream.builders.argument_checks import read_limits, result_type_of
from penstock.datastream.builders.java_environment import JavaEnvironment
from penstock.datastream.builders.plan_displays import ShowsProgram
from penstock.datastream.connectors.file_system import FileProcessingMode, FileSource, FileSourceBuilder
from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.sinks.sink_operators import CollectSink
from penstock.engine.operators.sources.readers import CollectionSource, RateSource, SequenceSource
from penstock.engine.operators.sources.source_function import FunctionSource
from penstock.engine.operators.sources.source_operator import ReadLimits, SourceOperator
from penstock.engine.operators.sources.source_operator import Source as RuntimeSource
from penstock.engine.operators.sources.split_source import SplitSource
from penstock.engine.operators.watermarks import IngestionTimeOperator
from penstock.errors import UnsupportedOperation
from penstock.formats.avro.avro_format import AvroInputFormat
from penstock.formats.contracts import FileFormat
from penstock.formats.text_files import TextLineFormat
from penstock.graph.plan import Plan
from penstock.graph.plan_picture import explanation
from penstock.graph.plan_text import as_json
from penstock.graph.transformations import StreamRef, Transformation
from penstock.service.launch import frame_sources, submission
from penstock.service.launch.collected_results import CloseableIterator
from penstock.service.launch.execution_settings import EnvironmentSettings
from penstock.service.launch.python_dependencies import PythonDependencies
from penstock.service.options.environment_options import default_parallelism


@check_arguments
class StreamExecutionEnvironment(ShowsProgram):
    """Holds a program while it is written, and runs it on Spark."""

    _local_parallelism: int | None = None

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.settings = EnvironmentSettings()
        self.dependencies = PythonDependencies()
        self.sinks: list[Transformation] = []
        self._sources: list[Transformation] = []
        """The sources of this program, which are explained as long as there is no other operator."""
        self.query_uids: dict[str, int] = {}
        """Number of times that each identity was given to operators of queries in this program."""
        self._groups: dict[str, SlotSharingGroup] = {}
        self._time = TimeCharacteristic.EventTime
        self._changelog: bool | None = None
        submission.apply_defaults(self.settings)
        if configuration is not None:
            self.settings.read(configuration)

    # --- where it runs ---
    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """Return the environment for the place where the program runs: the active Spark session, or a local one."""
        return StreamExecutionEnvironment(configuration)

    @staticmethod
    def create_local_environment(
        parallelism: int | None = None, configuration: Configuration | None = None
    ) -> StreamExecutionEnvironment:
        """Return an environment on Spark in this process, with a core for each of `parallelism` subtasks."""
        environment = StreamExecutionEnvironment(configuration)
        wanted = parallelism or StreamExecutionEnvironment.get_default_local_parallelism()
        environment.set_parallelism(wanted)
        environment.settings.master = f"local[{wanted}]"
        return environment

    @staticmethod
    def create_remote_environment(
        host: str,
        port: int | None = None,
        parallelism: int | str | None = None,
        configuration: Configuration | str | None = None,
        *jar_files: str,
    ) -> StreamExecutionEnvironment:
        """Return an environment on a Spark cluster.

        The cluster is a master URL such as 'spark://host:7077', 'yarn' or 'k8s://…', or a host and a port. Jars, which
        Java's method takes after the port or the parallelism, have no effect.
        """
        jars = [text for text in (parallelism, configuration) if isinstance(text, str)]
        parallelism = parallelism if isinstance(parallelism, int) else None
        configuration = configuration if isinstance(configuration, Configuration) else None
        environment = StreamExecutionEnvironment(configuration)
        environment.settings.master = host if port is None else f"spark://{host}:{port}"
        if parallelism is not None:
            environment.set_parallelism(parallelism)
        if jars or jar_files:
            environment.add_jars(*jars, *jar_files)
        return environment

    @staticmethod
    def get_default_local_parallelism() -> int:
        """Return the default parallelism of local environments: the set number, else the number of cores."""
        return StreamExecutionEnvironment._local_parallelism or default_parallelism()

    @staticmethod
    def set_default_local_parallelism(parallelism: int) -> None:
        """Set the default parallelism of local environments."""
        ExecutionConfig().set_parallelism(parallelism)
        StreamExecutionEnvironment._local_parallelism = parallelism

    # --- settings ---
    def get_config(self) -> ExecutionConfig:
        """Return the execution settings. Changes to them change this environment."""
        return self.settings.config

    def configure(self, configuration: Configuration) -> None:
        """Take over the options of a Configuration."""
        self.settings.read(configuration)

    @property
    def _j_stream_execution_environment(self) -> JavaEnvironment:
        return JavaEnvironment(self.settings)

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks of operators that do not set their own parallelism."""
        self.settings.config.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """Return the number of subtasks of operators that do not set their own parallelism."""
        return self.settings.parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups, the most subtasks to which the job can ever be scaled."""
        self.settings.config.set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the set number of key groups, or -1 if no number was set."""
        return self.settings.config.get_max_parallelism()

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Set STREAMING, BATCH, or AUTOMATIC, which is BATCH if every source is bounded."""
        self.settings.mode = execution_mode
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Set the shortest time between the starts of two epochs that are not catching up: latency against overhead."""
        if timeout_millis < -1:
            raise ValueError(f"a buffer timeout is at least -1, not {timeout_millis}")
        self.settings.buffer_timeout = timeout_millis
        return self

    def get_buffer_timeout(self) -> int:
        """Return the buffer timeout, in milliseconds."""
        return self.settings.buffer_timeout

    def disable_operator_chaining(self) -> Self:
        """Turn the chaining of operators off."""
        self.settings.chaining = False
        return self

    def is_chaining_enabled(self) -> bool:
        """Return True if operators may be chained."""
        return self.settings.chaining

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return True, because a difference in max parallelism does not prevent chaining."""
        return True

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> Self:
        """Set the notion of time of Flink 1.x. IngestionTime stamps every source's records with their epoch's time."""
        self._time = characteristic
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """Return the notion of time of Flink 1.x."""
        return self._time

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Accept a slot sharing group of a program. The resources of the group have no effect."""
        self._groups[slot_sharing_group.get_name()] = slot_sharing_group
        return self

    # --- checkpoints and recovery ---
    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE, force: bool = False
    ) -> Self:
        """Take a checkpoint every `interval` milliseconds, from which the job recovers after a failure.

        `force`, which Flink 1.x demands for programs with iterations, has no effect: their checkpoints are exact here.
        """
        self.settings.checkpoints.set_checkpoint_interval(interval)
        self.settings.checkpoints.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the checkpoint settings. Changes to them change this environment."""
        return self.settings.checkpoints

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds from the start of one checkpoint to the next, -1 if checkpointing is off."""
        return self.settings.checkpoints.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the guarantee after a recovery."""
        return self.settings.checkpoints.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return the guarantee after a recovery, as `get_checkpointing_mode` does."""
        return self.settings.checkpoints.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return the setting. It has no effect, because an epoch needs no alignment."""
        return self.settings.checkpoints.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return the setting. It has no effect, because an epoch needs no alignment."""
        return self.settings.checkpoints.is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend | str) -> Self:
        """Choose the state backend: an object, or its name such as 'hashmap' or 'rocksdb'."""
        if isinstance(state_backend, str):
            self.configure(Configuration.from_dict({"state.backend.type": state_backend}))
        else:
            self.settings.state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend | None:
        """Return the state backend, or None if no backend was set."""
        return self.settings.state_backend

    def set_restart_strategy(self, restart_strategy: RestartStrategyConfiguration) -> Self:
        """Set the reaction to a failure. By default, a job with checkpoints restarts after growing delays."""
        self.settings.restart = restart_strategy
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration | None:
        """Return the restart strategy, or None if no strategy was set."""
        return self.settings.restart

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Accept the setting of a program. Checkpoints hold only changes in any case, and need no changelog."""
        self._changelog = enabled
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return the value that was set; None if there was none."""
        return self._changelog

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Set the directory of savepoints for which no other directory is given."""
        self.settings.savepoint_directory = directory
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the default directory of savepoints, or None if no directory was set."""
        return self.settings.savepoint_directory

    # --- what the slots need ---
    def add_python_file(self, file_path: str) -> None:
        """Add a module, package folder or zip that functions import."""
        self.dependencies.add_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Set a requirements.txt to install for the slots; with a folder of packages, without any index."""
        self.dependencies.set_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Add an archive to unpack into the slots' working directory, under `target_dir` or its own name."""
        self.dependencies.add_archive(archive_path, target_dir)

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Add a local file or folder for `runtime_context.get_distributed_cache().get_file(name)`.

        Every slot finds a copy on its own machine, which may always be executed.
        """
        self.dependencies.cache(file_path, name)

    def set_python_executable(self, python_exec: str) -> None:
        """Set the Python that runs the slots, for a session that is still to be created."""
        self.settings.spark["spark.pyspark.python"] = python_exec

    def add_jars(self, *jars_path: str) -> None:
        """Warn that jars have no effect; here connectors are Python packages. PyFlink programs bring theirs as jars."""
        warnings.warn(f"jars have no effect here: {', '.join(jars_path)}", stacklevel=3)

    def add_classpaths(self, *classpaths: str) -> None:
        """Warn that class paths have no effect."""
        warnings.warn(f"class paths have no effect here: {', '.join(classpaths)}", stacklevel=3)

    # --- sources ---
    @overload
    def from_collection(self, collection: Iterable[Any], type_info: RowTypeInfo) -> DataStream[Row]: ...

    @overload
    def from_collection(self, collection: Iterable[T], type_info: DeclaredType[T] | None = None) -> DataStream[T]: ...

    def from_collection(self, collection: Iterable[Any], type_info: DeclaredType[Any] | None = None) -> DataStream[Any]:
        """Read the elements of a collection, in order, in one subtask."""
        values = list(collection)
        declared = declared_type(type_info)
        fitted = values if declared is None else declared.fit(values)
        return self._source("Collection Source", CollectionSource(fitted), declared)

    @overload
    def from_elements(self, *elements: Any, type_info: RowTypeInfo) -> DataStream[Row]: ...

    @overload
    def from_elements(self, *elements: T, type_info: DeclaredType[T] | None = None) -> DataStream[T]: ...

    def from_elements(self, *elements: Any, type_info: DeclaredType[Any] | None = None) -> DataStream[Any]:
        """Read the given elements, in order."""
        return self.from_collection(elements, type_info)

    def from_sequence(self, start: int, end: int) -> DataStream[int]:
        """Read the whole numbers from `start` to `end`, both included. Each subtask emits one run of them."""
        checked = NumberSequenceSource(start, end)
        return self._source("Sequence Source", SequenceSource(checked.start, checked.end), Types.LONG(), check=False)

    @overload
    def generate(
        self,
        function: None = None,
        rate: float = 1.0,
        count: int | None = None,
        type_info: DeclaredType[int] | None = None,
    ) -> DataStream[int]: ...

    @overload
    def generate(
        self,
        function: Callable[[int], T],
        rate: float = 1.0,
        count: int | None = None,
        type_info: DeclaredType[T] | None = None,
    ) -> DataStream[T]: ...

    def generate(
        self,
        function: Callable[[int], Any] | None = None,
        rate: float = 1.0,
        count: int | None = None,
        type_info: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Emit function(0), function(1), … at `rate` records a second, `count` of them or for ever."""
        if not rate > 0:
            raise ValueError(f"a rate is a number of records per second above 0, not {rate!r}")
        if count is not None and count < 0:
            raise ValueError(f"a count must not be negative, but is {count}")
        return self._source("Generator Source", RateSource(function, rate, count), declared_type(type_info))

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream[str]:
        """Read the lines of a file, of the files in a directory, or of those that match a pattern; any fsspec URL."""
        source = FileSource.for_record_stream_format(TextLineFormat(charset_name), file_path).build()
        return self._split_source(source, WatermarkStrategy.no_watermarks(), "Text File Source")

    def read_file(
        self,
        file_format: FileFormat,
        file_path: str,
        watch_type: FileProcessingMode = FileProcessingMode.PROCESS_ONCE,
        interval: int = -1,
    ) -> DataStream[Any]:
        """Read the records of files in some format.

        PROCESS_CONTINUOUSLY looks for new files every `interval` milliseconds. A modified file is read again, from its
        beginning.
        """
        builder = FileSourceBuilder(FileSource(file_format, (file_path,)))
        if watch_type is FileProcessingMode.PROCESS_CONTINUOUSLY:
            if interval < 1:
                raise ValueError(f"watching for files needs an interval of at least 1 ms, not {interval}")
            builder = builder.monitor_continuously(Duration.of_millis(interval)).reread_modified_files()
        return self._split_source(builder.build(), WatermarkStrategy.no_watermarks(), "File Source")

    def socket_text_stream(
        self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0
    ) -> DataStream[str]:
        """Read lines from a TCP server, as long as it sends. SocketTextSource explains what happens when it stops."""
        return self.add_source(SocketTextSource(hostname, port, delimiter, max_retry), "Socket Source", Types.STRING())

    def add_source(
        self,
        source_func: SourceFunction[T] | Source[T],
        source_name: str = "Custom Source",
        type_info: DeclaredType[T] | None = None,
    ) -> DataStream[T]:
        """Read a source written in Python. Its run loop emits through a SourceContext until it is cancelled.

        Connectors that are SourceFunctions in Flink are accepted too.
        """
        if isinstance(source_func, Source):
            strategy = source_func.watermark_strategy or WatermarkStrategy.no_watermarks()
            return self._split_source(source_func, strategy, source_name, type_info)
        declared = result_type_of(source_func) if type_info is None else declared_type(type_info)
        return self._source(source_name, FunctionSource(source_func), declared)

    @overload
    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy[Any],
        source_name: str,
        type_info: DeclaredType[T] | None = None,
        *,
        bad_records: BadRecords | None = None,
        rate_limit: float | None = None,
        max_records_per_epoch: int | None = None,
    ) -> DataStream[T]: ...

    @overload
    def from_source(
        self,
        source: NumberSequenceSource,
        watermark_strategy: WatermarkStrategy[int],
        source_name: str,
        type_info: DeclaredType[int] | None = None,
        *,
        rate_limit: float | None = None,
        max_records_per_epoch: int | None = None,
    ) -> DataStream[int]: ...

    def from_source(
        self,
        source: Source[Any] | NumberSequenceSource,
        watermark_strategy: WatermarkStrategy[Any],
        source_name: str,
        type_info: DeclaredType[Any] | None = None,
        *,
        bad_records: BadRecords | None = None,
        rate_limit: float | None = None,
        max_records_per_epoch: int | None = None,
    ) -> DataStream[Any]:
        """Read a source connector, with its watermark strategy.

        `bad_records` is the treatment of records that cannot be decoded; by default the job fails. `rate_limit` is a
        number of records a second, `max_records_per_epoch` one for each epoch, both for all subtasks together.
        """
        limits = read_limits(rate_limit, max_records_per_epoch)
        if isinstance(source, NumberSequenceSource):
            numbers = SequenceSource(source.start, source.end)
            stream = self._source(source_name, numbers, declared_type(type_info), limits=limits)
            return stream.assign_timestamps_and_watermarks(watermark_strategy)
        return self._split_source(source, watermark_strategy, source_name, type_info, bad_records, limits)

    def _split_source(
        self,
        source: Source[T],
        strategy: WatermarkStrategy[T],
        name: str,
        type_info: DeclaredType[T] | None = None,
        bad_records: BadRecords | None = None,
        limits: ReadLimits | None = None,
    ) -> DataStream[T]:
        policy = BadRecords.fail() if bad_records is None else bad_records
        made = SplitSource(source, strategy, policy)
        if type_info is not None:
            stream = self._source(name, made, declared_type(type_info), limits=limits)
        else:
            stream = self._source(name, made, source.get_produced_type(), check=False, limits=limits)
        if strategy.alignment is not None:
            stream._node.alignment = (strategy.alignment.group, strategy.alignment.max_drift_ms)
        return stream

    def from_spark(
        self,
        data_frame: Any,
        type_info: DeclaredType[Any] | None = None,
        *,
        watermark_strategy: WatermarkStrategy[Any] | None = None,
        staging_directory: str | None = None,
        trigger: dict[str, Any] | None = None,
    ) -> DataStream[Row]:
        """Read the rows of a Spark DataFrame, as Rows with the names of its columns.

        The rows of a streaming one arrive exactly once: Spark's query puts its micro-batches into `staging_directory`,
        any fsspec URL that driver and slots can reach, and they are read from there. `trigger` has the arguments of
        Spark's `DataStreamWriter.trigger`; with `{"availableNow": True}` the stream ends.
        """
        self.settings.reads_frames = True
        strategy = watermark_strategy or WatermarkStrategy.no_watermarks()
        if getattr(data_frame, "isStreaming", False):
            source = frame_sources.streaming_frame_source(data_frame, staging_directory, trigger)
            return self._split_source(source, strategy, "Spark Source", type_info)
        stream = self._source("Spark Source", frame_sources.data_frame_source(data_frame), declared_type(type_info))
        return stream if watermark_strategy is None else stream.assign_timestamps_and_watermarks(strategy)

    def create_input(self, input_format: Any, type_info: DeclaredType[Any] | None = None) -> DataStream[Any]:
        """Read the records of an AvroInputFormat. Flink's other input formats exist only in Java."""
        if not isinstance(input_format, AvroInputFormat):
            raise UnsupportedOperation(
                f"create_input reads an AvroInputFormat, not {input_format!r}: use from_source with a FileSource"
            )
        source = FileSource.for_bulk_file_format(input_format.format, input_format.path).build()
        return self._split_source(source, WatermarkStrategy.no_watermarks(), "Avro Source", type_info)

    # --- running ---
    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program and wait for its end. Ctrl-C cancels it."""
        job = submission.start(self, job_name)
        try:
            return job.result()
        except KeyboardInterrupt:
            job.cancel()
            raise

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Run the program and return at once."""
        return JobClient(submission.start(self, job_name))

    def get_execution_plan(self) -> str:
        """Return the plan as JSON, in the form of Flink's plan visualizer."""
        return as_json(self._plan(None))

    def explain(self, job_name: str | None = None) -> str:
        """Return the plan as text: stages, chains, operators and the ways of records between them.

        The program needs no sink. A notebook shows the plan as a graph.
        """
        return explanation(self._plan(job_name))

    def close(self) -> None:
        """Forget the program. The Spark session stays, because others may use it."""
        self.sinks.clear()
        self._sources.clear()
        self.query_uids.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for the builders ---
    def add_node(self, node: Transformation) -> Transformation:
        self.sinks.append(node)
        return node

    def _source(
        self,
        name: str,
        source: RuntimeSource,
        type_info: TypeInformation[T] | None,
        check: bool = True,
        limits: ReadLimits | None = None,
    ) -> DataStream[T]:
        operator = SourceOperator(source, type_info if check else None, limits)
        node = Transformation(name, operator, kind="source", non_parallel=not source.parallel)
        self._sources.append(node)
        stream: DataStream[T] = DataStream(self, [StreamRef(node)], type_info)
        if self._time is TimeCharacteristic.IngestionTime:
            return stream.apply_operator("Ingestion Time", IngestionTimeOperator(), type_info)
        return stream

    def collect(self, stream: DataStream[T], job_name: str | None) -> CloseableIterator[T]:
        """Start the program, and return an iterator over the results of a stream."""
        results: CloseableIterator[T] = CloseableIterator()
        node = self.add_node(Transformation("Collect", CollectSink(), [stream.input_refs()], kind="sink"))
        node.parallelism, node.non_parallel = _collect_with(stream)
        results.attach(submission.start(self, job_name, {node: results}))
        return results

    def _plan(self, job_name: str | None) -> Plan:
        return submission.plan_of_operators(self, self.sinks or self._sources, job_name)


def _collect_with(stream: DataStream) -> tuple[int | None, bool]:
    """Return the parallelism for collecting a stream's results, and True if it is fixed.

    It is the stream's own if records stay in their subtasks; otherwise one, to keep the order. Either way the records
    of an upstream subtask arrive in their order, as they do in PyFlink.
    """
    above = stream.refs[0]
    if len(stream.refs) > 1 or above.partitioning is not None:
        return 1, True
    return above.node.parallelism, above.node.non_parallel


__all__ = ["StreamExecutionEnvironment"]
