"""Programs in the spellings of Flink's Java and Scala API."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.common import BoundedOutOfOrdernessTimestampExtractor, JobID, Time, TimeUnit, Types
from penstock.connectors.committing.two_phase_sink import TwoPhaseCommitSinkFunction
from penstock.connectors.committing.write_ahead_sink import FileCheckpointCommitter, GenericWriteAheadSink
from penstock.datastream import (
    BroadcastProcessFunction,
    CheckpointConfig,
    CoFlatMapFunction,
    CoGroupFunction,
    DataStream,
    EmbeddedRocksDBStateBackend,
    FlatMapFunction,
    FsStateBackend,
    HashMapStateBackend,
    KeyedProcessFunction,
    MapStateDescriptor,
    MemoryStateBackend,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RichFlatMapFunction,
    RichMapFunction,
    RocksDBStateBackend,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
    WindowFunction,
)
from penstock.datastream.functions import Collector, FoldFunction
from penstock.datastream.state import FoldingStateDescriptor, StateTtlConfig
from penstock.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from penstock.errors import ConfigurationError, JobFailed, RecordError, UnsupportedOperation
from penstock.testing import in_process


@pytest.fixture
def env() -> Iterator[StreamExecutionEnvironment]:
    with in_process():
        environment = StreamExecutionEnvironment.get_execution_environment()
        environment.set_parallelism(1)
        yield environment


def results(stream: DataStream) -> list[Any]:
    return list(stream.execute_and_collect())


@dataclass(frozen=True)
class Person:
    name: str
    birthday: tuple[int, int, int]


@dataclass(frozen=True)
class Reading:
    id: str
    time: int


READINGS = [Reading("a", 1000), Reading("a", 2000), Reading("b", 3000), Reading("a", 12_000)]


# --- functions with a collector ---
def test_flat_map_with_a_collector(env: StreamExecutionEnvironment) -> None:
    class Twice(FlatMapFunction):
        def flat_map(self, value: int, out: Collector) -> None:
            out.collect(value)
            out.collect(value * 10)

    class Thrice(Twice):
        def flat_map(self, value: int, out: Collector) -> None:
            super().flat_map(value, out)
            out.collect(value * 100)

    assert results(env.from_elements(1, 2).flat_map(Thrice())) == [1, 10, 100, 2, 20, 200]
    assert results(env.from_elements(1, 2).flat_map(lambda value, out: out.collect(-value))) == [-1, -2]


def test_process_functions_with_a_collector(env: StreamExecutionEnvironment) -> None:
    class Timed(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any, out: Collector) -> None:
            ctx.timer_service().register_event_time_timer(5)
            out.collect(value)

        def on_timer(self, timestamp: int, ctx: Any, out: Collector) -> None:
            out.collect((ctx.get_current_key(), timestamp))

    assert results(env.from_elements((7, 1)).key_by(0).process(Timed())) == [(7, 1), (7, 5)]


def test_functions_of_two_streams_with_a_collector(env: StreamExecutionEnvironment) -> None:
    rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())

    class Both(CoFlatMapFunction):
        def flat_map1(self, value: int, out: Collector) -> None:
            out.collect(("first", value))

        def flat_map2(self, value: int, out: Collector) -> None:
            out.collect(("second", value))

    class Ruled(BroadcastProcessFunction):
        def process_element(self, value: int, ctx: Any, out: Collector) -> None:
            out.collect((value, list(ctx.get_broadcast_state(rules).immutable_entries())))

        def process_broadcast_element(self, value: int, ctx: Any, out: Collector) -> None:
            ctx.get_broadcast_state(rules).put("limit", value)
            out.collect("rule")

    assert results(env.from_elements(1).connect(env.from_elements(2)).flat_map(Both())) == [("first", 1), ("second", 2)]
    ruled = results(env.from_elements(1).connect(env.from_elements(2).broadcast(rules)).process(Ruled()))
    assert sorted(map(str, ruled)) in (["(1, [('limit', 2)])", "rule"], ["(1, [])", "rule"])


def test_window_functions_with_a_collector(env: StreamExecutionEnvironment) -> None:
    class Count(ProcessWindowFunction):
        def process(self, key: str, context: Any, elements: Any, out: Collector) -> None:
            out.collect((key, context.window().get_start(), context.window().get_end(), len(list(elements))))

    class CountAll(ProcessAllWindowFunction):
        def process(self, context: Any, elements: Any, out: Collector) -> None:
            out.collect(len(list(elements)))

    class Keys(WindowFunction):
        def apply(self, key: str, window: Any, inputs: Any, out: Collector) -> None:
            out.collect(key)

    class Sides(CoGroupFunction):
        def co_group(self, first: Any, second: Any, out: Collector) -> None:
            out.collect((len(list(first)), len(list(second))))

    def timed() -> DataStream:
        return env.from_elements(*READINGS).assign_ascending_timestamps(lambda reading: reading.time)

    ten = Time.of(10, TimeUnit.SECONDS)
    assert results(timed().key_by("id").time_window(ten).process(Count())) == [
        ("a", 0, 10_000, 2),
        ("b", 0, 10_000, 1),
        ("a", 10_000, 20_000, 1),
    ]
    assert results(timed().time_window_all(ten).process(CountAll())) == [3, 1]
    assert results(timed().key_by("id").time_window(ten).apply(Keys())) == ["a", "b", "a"]
    joined = timed().co_group(timed()).where(lambda one: one.id).equal_to(lambda one: one.id)
    assert results(joined.window(TumblingEventTimeWindows.of(ten)).apply(Sides())) == [(2, 2), (1, 1), (1, 1)]


def test_results_that_are_returned_still_count(env: StreamExecutionEnvironment) -> None:
    class Mixed(FlatMapFunction):
        def flat_map(self, value: int, out: Collector) -> list[int]:
            out.collect(value)
            return [value + 1]

    assert results(env.from_elements(1).flat_map(Mixed())) == [1, 2]


# --- fields by expression ---
@pytest.mark.parametrize("key", ["_1", "f0", "0", 0])
def test_fields_of_tuples_have_names(env: StreamExecutionEnvironment, key: Any) -> None:
    assert results(env.from_elements((1, 2), (1, 3)).key_by(key).sum(1)) == [(1, 2), (1, 5)]


@pytest.mark.parametrize("field", ["_2", "f1", "1", 1])
def test_rolling_aggregates_take_names_of_tuple_fields(env: StreamExecutionEnvironment, field: Any) -> None:
    assert results(env.from_elements((1, 2), (1, 3)).key_by(0).sum(field)) == [(1, 2), (1, 5)]


@pytest.mark.parametrize("path", ["birthday._1", "birthday._", "birthday.*", "*"])
def test_paths_go_through_tuples(env: StreamExecutionEnvironment, path: str) -> None:
    people = env.from_elements(Person("ann", (1990, 1, 2)), Person("ann", (1990, 1, 2)))
    assert results(people.key_by(path).map_with_state(lambda _, seen: ((seen or 0) + 1, (seen or 0) + 1))) == [1, 2]


@pytest.mark.parametrize("key", ["_0", "_3", "f2", "g1"])
def test_a_name_of_no_tuple_field_is_refused(env: StreamExecutionEnvironment, key: str) -> None:
    with pytest.raises((JobFailed, RecordError), match=f"has no field '{key}' to key by"):
        results(env.from_elements((1, 2)).key_by(key).sum(1))


# --- time ---
def test_an_extractor_with_a_function(env: StreamExecutionEnvironment) -> None:
    extractor = BoundedOutOfOrdernessTimestampExtractor(Time.seconds(10), lambda reading: reading.time)
    stream = env.from_elements(*READINGS).assign_timestamps_and_watermarks(extractor)
    counted = stream.key_by("id").time_window(Time.seconds(10)).fold(0, lambda count, _: count + 1)
    assert results(counted) == [2, 1, 1]
    with pytest.raises(TypeError, match="needs a function of the record, or a method extract_timestamp"):
        BoundedOutOfOrdernessTimestampExtractor(Time.seconds(10))


def test_units_of_time() -> None:
    assert Time.of(3, TimeUnit.MINUTES) == Time.minutes(3)
    assert Time.of(1_999, TimeUnit.MICROSECONDS) == Time.milliseconds(1)
    with pytest.raises(TypeError, match="TimeUnit"):
        Time.of(3, 5)  # type: ignore[arg-type]


# --- fold and state ---
def test_fold(env: StreamExecutionEnvironment) -> None:
    class Join(FoldFunction):
        def fold(self, accumulator: list[int], value: tuple[int, int]) -> list[int]:
            accumulator.append(value[1])
            return list(accumulator)

    keyed = env.from_elements((1, 3), (2, 9), (1, 4)).key_by(0)
    assert results(keyed.fold([], Join())) == [[3], [9], [3, 4]]
    assert results(keyed.count_window(2).fold("", lambda text, value: f"{text}{value[1]}")) == ["34"]
    with pytest.raises(UnsupportedOperation, match="merges windows, and folds cannot merge"):
        keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(1))).fold(0, lambda count, _: count + 1)
    with pytest.raises(TypeError, match="fold"):
        keyed.fold(0, 5)  # type: ignore[arg-type]


def test_folding_state_and_entries_of_maps(env: StreamExecutionEnvironment) -> None:
    class Fold(RichMapFunction):
        def open(self, runtime_context: Any) -> None:
            context = self.get_runtime_context()
            self.total = context.get_folding_state(FoldingStateDescriptor("total", 100, lambda sum, one: sum + one))
            self.seen = context.get_map_state(MapStateDescriptor("seen", Types.INT(), Types.BOOLEAN()))

        def map(self, value: tuple[int, int]) -> Any:
            self.total.add(value[1])
            self.seen.put(value[1], True)
            return self.total.get(), list(self.seen.entries())

    mapped = env.from_elements((1, 3), (1, 4)).key_by(0).map(Fold())
    assert results(mapped) == [(103, [(3, True)]), (107, [(3, True), (4, True)])]


def test_the_compaction_filter_has_flinks_default() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(1)).cleanup_in_rocksdb_compact_filter().build()
    strategy = config.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy()
    assert strategy is not None and strategy.get_query_time_after_num_entries() == 1000


# --- settings ---
def test_java_constructors_of_state_backends() -> None:
    fs = FsStateBackend("file:///tmp/checkpoints", False)
    assert (fs.savepoint_path, fs.asynchronous_snapshots) == (None, False)
    memory = MemoryStateBackend(5000, False)
    assert memory.checkpoint_storage is not None
    assert memory.checkpoint_storage.get_max_state_size() == 5000  # type: ignore[attr-defined]
    assert (memory.savepoint_path, memory.asynchronous_snapshots) == (None, False)
    assert MemoryStateBackend(False).asynchronous_snapshots is False
    rocks = RocksDBStateBackend(fs, True)
    rocks.enable_ttl_compaction_filter()
    assert rocks.checkpoint_storage == fs.checkpoint_storage and rocks.is_incremental_checkpoints_enabled()


def test_a_state_backend_by_name(env: StreamExecutionEnvironment) -> None:
    assert isinstance(env.set_state_backend("rocksdb").get_state_backend(), EmbeddedRocksDBStateBackend)
    assert type(env.set_state_backend("hashmap").get_state_backend()) is HashMapStateBackend
    with pytest.raises(ConfigurationError, match="cannot be 'nonsense': it must be one of hashmap, rocksdb"):
        env.set_state_backend("nonsense")


def test_settings_of_flink_1(env: StreamExecutionEnvironment) -> None:
    config = env.enable_checkpointing(1000, force=True).get_checkpoint_config()
    config.set_prefer_checkpoint_for_recovery(True)
    config.enable_externalized_checkpoints(CheckpointConfig.ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    assert config.get_checkpoint_interval() == 1000
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        remote = StreamExecutionEnvironment.create_remote_environment("host", 7077, "job.jar", "more.jar")
    assert remote.settings.master == "spark://host:7077"
    assert [str(one.message) for one in caught] == ["jars have no effect here: job.jar, more.jar"]
    job = JobID()
    assert JobID.from_hex_string(job.to_hex_string()) == job


# --- sinks ---
def test_a_write_ahead_sink_is_applied_with_transform(env: StreamExecutionEnvironment, tmp_path: Any) -> None:
    target = tmp_path / "sent"

    class Appending(GenericWriteAheadSink):
        def send_values(self, values: Any, checkpoint_id: int | None, timestamp: int | None) -> bool:
            with target.open("a") as file:
                file.writelines(f"{value}\n" for value in values)
            return True

    sink = Appending(FileCheckpointCommitter(str(tmp_path / "committed")), Types.INT().create_serializer(None), "job")
    env.from_elements(1, 2).transform("WriteAheadSink", sink)
    assert "WriteAheadSink" in env.get_execution_plan()
    env.execute()
    assert target.read_text() == "1\n2\n"


def test_a_two_phase_sink_takes_serializers(env: StreamExecutionEnvironment, tmp_path: Any) -> None:
    class Files(TwoPhaseCommitSinkFunction):
        def __init__(self) -> None:
            super().__init__(Types.STRING().create_serializer(None), None)

        def begin_transaction(self) -> str:
            return "transaction"

        def invoke(self, transaction: str, value: int, context: Any) -> None:
            (tmp_path / transaction).write_text(str(value))

        def pre_commit(self, transaction: str) -> None:
            pass

        def commit(self, transaction: str) -> None:
            (tmp_path / transaction).rename(tmp_path / "done")

        def abort(self, transaction: str) -> None:
            pass

    env.from_elements(5).add_sink(Files())
    env.execute()
    assert (tmp_path / "done").read_text() == "5"


def test_default_values_of_state(env: StreamExecutionEnvironment) -> None:
    class Average(RichFlatMapFunction):
        def open(self, runtime_context: Any) -> None:
            kind = Types.TUPLE([Types.LONG(), Types.LONG()])
            self.sum = self.get_runtime_context().get_state(ValueStateDescriptor("average", kind, (0, 0)))

        def flat_map(self, value: tuple[int, int], out: Collector) -> None:
            count, total = self.sum.value()
            self.sum.update((count + 1, total + value[1]))
            if count + 1 >= 2:
                out.collect((value[0], (total + value[1]) // 2))
                self.sum.clear()

    stream = env.from_elements((1, 3), (1, 5), (1, 7), (1, 4), (1, 2))
    assert results(stream.key_by(0).flat_map(Average())) == [(1, 4), (1, 5)]


@pytest.mark.parametrize("setting", ["name", "uid", "set_parallelism", "disable_chaining", "slot_sharing_group"])
def test_a_keyed_stream_has_no_settings_of_operators(env: StreamExecutionEnvironment, setting: str) -> None:
    stream = env.from_elements((1, 2)).map(lambda pair: pair).name("before")
    with pytest.raises(UnsupportedOperation, match=rf"{setting}\(\) has no meaning for a keyed stream.*on 'before'"):
        getattr(stream.key_by(0), setting)(2)
    assert stream.get_name() == "before"
