"""Programs that once gave a wrong result without a word: each has its result, or an error that says what is allowed."""

import os
from pathlib import Path

import pytest

from penstock.common import Configuration, Time, Types, TypeSerializer
from penstock.datastream import (
    CheckpointConfig,
    KeyedProcessFunction,
    MapFunction,
    OutputSelector,
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from penstock.datastream.connectors.file_system import FileProcessingMode, StreamFormat
from penstock.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from penstock.errors import InvalidArgument, StateMigrationException
from penstock.testing import in_process
from tests.waiting import until


@pytest.fixture
def run():
    with in_process():
        yield


def environment(configuration=None):
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def collected(stream):
    with stream.execute_and_collect() as results:
        return list(results)


# --- types of states ---
class Counting(KeyedProcessFunction):
    def __init__(self, kind):
        self.kind = kind

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", self.kind))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value()


def counts(kind, savepoint=None):
    configuration = Configuration()
    if savepoint is not None:
        configuration.set_string("execution.savepoint.path", savepoint)
    env = environment(configuration)
    numbers = env.generate(lambda n: 0, rate=2000).uid("numbers")
    return env, numbers.key_by(lambda value: value).process(Counting(kind)).uid("counting")


def count_until_savepoint(kind, folder):
    """Return the path of the savepoint of a job that has counted a while."""
    env, stream = counts(kind)
    seen = folder / "seen"
    stream.filter(lambda count: count > 5).map(lambda count: seen.touch()).uid("watch").discard()
    job = env.execute_async()
    until(seen.exists)
    return job.stop_with_savepoint(False, str(folder)).result(60)


@pytest.mark.parametrize("later", [float, Types.DOUBLE()])
def test_state_of_a_python_type_is_restored(run, tmp_path, later):
    _, stream = counts(later, count_until_savepoint(float, tmp_path))
    with stream.execute_and_collect() as results:
        assert next(iter(results)) > 6


@pytest.mark.parametrize(("before", "after"), [(float, str), (int, Types.INT()), (Types.INT(), Types.STRING())])
def test_state_of_another_type_is_refused(run, tmp_path, before, after):
    _, stream = counts(after, count_until_savepoint(before, tmp_path))
    message = r"state 'count' was saved as value<\w+> and is now declared as value<\w+>"
    with pytest.raises(StateMigrationException, match=message):
        collected(stream)


class Serializer(TypeSerializer):
    def serialize(self, element, stream):
        raise AssertionError

    def deserialize(self, stream):
        raise AssertionError


@pytest.mark.parametrize("kind", [Serializer(), 5, "x"])
def test_what_is_no_type_is_refused_where_it_is_written(kind):
    with pytest.raises(InvalidArgument, match=r"ValueStateDescriptor: the argument \w+ must be .*, not "):
        ValueStateDescriptor("count", kind)


# --- Python types elsewhere ---
def test_python_types_wherever_a_type_is_expected(run):
    ones = environment().from_elements(1)
    assert collected(ones.map(str, output_type=str)) == ["1"]
    assert collected(ones.flat_map(lambda one: [one, one], int)) == [1, 1]
    assert collected(ones.key_by(str, str).map(lambda one: one)) == [1]
    assert collected(environment().from_collection([1], int)) == [1]
    assert OutputTag("late", str).type_info == Types.STRING()
    assert Types.LIST(int) == Types.LIST(Types.LONG())
    assert Types.TUPLE([int, str]) == Types.TUPLE([Types.LONG(), Types.STRING()])
    assert Types.MAP(str, int) == Types.MAP(Types.STRING(), Types.LONG())
    assert ReducingStateDescriptor("most", max, int) == ReducingStateDescriptor("most", max, Types.LONG())


def test_a_job_with_checkpoints_whose_state_is_a_float_ends(run):
    env = environment().enable_checkpointing(10)
    keyed = env.generate(rate=1000, count=50).key_by(lambda n: n % 2)
    assert len(collected(keyed.process(Counting(float)))) == 50


# --- gauges ---
class LastValue:
    current = -1

    def get_value(self):
        return self.current


class Measuring(MapFunction):
    def open(self, runtime_context):
        self.last = LastValue()
        self.gauge = runtime_context.get_metrics_group().gauge("last", self.last)

    def map(self, value):
        self.last.current = value
        return self.gauge.get_value()


def test_an_object_with_get_value_is_a_gauge(run):
    assert collected(environment().from_elements(3, 4).map(Measuring())) == [3, 4]


# --- monitored files ---
@pytest.mark.parametrize("mode", ["PROCESS_CONTINUOUSLY", FileProcessingMode.PROCESS_CONTINUOUSLY])
def test_a_folder_is_monitored_whether_the_mode_is_a_name_or_a_member(run, tmp_path, mode):
    first = tmp_path / "a"
    first.write_text("1\n2\n")
    os.utime(first, (1, 1))
    stream = environment().read_file(StreamFormat.text_line_format(), str(tmp_path), mode, 20)
    with stream.execute_and_collect() as results:
        found = [next(results), next(results)]
        move_in(tmp_path / "b", "3\n")
        found.append(next(results))
        move_in(first, "1\n2\n4\n")
        assert [*found, *(next(results) for _ in range(3))] == ["1", "2", "3", "1", "2", "4"]


def move_in(path: Path, text: str) -> None:
    hidden = path.with_name("." + path.name)
    hidden.write_text(text)
    hidden.replace(path)


# --- split and select ---
class Both(OutputSelector):
    def select(self, value):
        return ["a", "b"]


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("b", "a")])
def test_a_record_that_is_selected_twice_arrives_once(run, names):
    assert collected(environment().from_elements(1, 2).split(Both()).select(*names)) == [1, 2]


# --- arguments of the wrong type ---
@pytest.mark.parametrize("mode", [*RuntimeExecutionMode, *(mode.name for mode in RuntimeExecutionMode)])
def test_a_mode_and_its_name_have_the_same_effect(run, mode):
    name = mode if isinstance(mode, str) else mode.name
    sums = environment().set_runtime_mode(mode).from_elements(("a", 1), ("a", 2)).key_by(0).sum(1)
    assert collected(sums) == ([("a", 1), ("a", 3)] if name == "STREAMING" else [("a", 3)])


@pytest.mark.parametrize("time", [*TimeCharacteristic, *(time.name for time in TimeCharacteristic)])
def test_a_characteristic_of_time_and_its_name_have_the_same_effect(run, time):
    env = environment()
    env.set_stream_time_characteristic(time)
    windows = env.from_elements(("a", 1), ("a", 2)).key_by(0).time_window(Time.hours(1))
    assert windows._assigner.is_event_time() is (getattr(time, "name", time) != "ProcessingTime")


@pytest.mark.parametrize(
    ("configure", "argument"),
    [
        (lambda env: env.set_runtime_mode("nonsense"), "execution_mode"),
        (lambda env: env.set_stream_time_characteristic("nonsense"), "characteristic"),
        (lambda env: env.set_restart_strategy("fixed-delay"), "restart_strategy"),
        (lambda env: env.set_parallelism("2"), "parallelism"),
        (lambda env: env.set_buffer_timeout("x"), "timeout_millis"),
        (lambda env: env.read_file(StreamFormat.text_line_format(), "x", "nonsense"), "watch_type"),
    ],
)
def test_nonsense_is_refused(run, configure, argument):
    with pytest.raises(InvalidArgument, match=f"the argument {argument} must be .+, not .+"):
        configure(environment())


def test_names_that_stand_for_an_object(run):
    env = environment().set_state_backend("rocksdb").enable_checkpointing(100)
    checkpoints: CheckpointConfig = env.get_checkpoint_config()
    checkpoints.enable_externalized_checkpoints("RETAIN_ON_CANCELLATION")
    assert type(env.get_state_backend()).__name__ == "EmbeddedRocksDBStateBackend"
    assert collected(env.from_elements(("a", 1)).key_by(0).sum(1)) == [("a", 1)]
