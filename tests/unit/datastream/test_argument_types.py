"""Names of enums and Python types where builders expect members and type information; nothing else is taken."""

import pytest

from penstock.common import Time, Types
from penstock.datastream import (
    CheckpointingMode,
    KeyedProcessFunction,
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from penstock.datastream.connectors.file_system import StreamFormat
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.errors import InvalidArgument, TypeMismatch
from penstock.testing import in_process


@pytest.fixture
def env():
    with in_process():
        environment = StreamExecutionEnvironment.get_execution_environment()
        environment.set_parallelism(1)
        yield environment


@pytest.mark.parametrize("mode", RuntimeExecutionMode)
def test_the_mode_by_name(env, mode):
    env.set_runtime_mode(mode.name)
    assert env.settings.mode is mode


@pytest.mark.parametrize(("mode", "count"), [("STREAMING", 2), ("BATCH", 1)])
def test_the_mode_has_its_effect(env, mode, count):
    stream = env.set_runtime_mode(mode).from_elements(("a", 1), ("a", 2)).key_by(0).sum(1)
    with stream.execute_and_collect() as rows:
        assert len(list(rows)) == count


def test_the_time_characteristic_by_name(env):
    env.set_stream_time_characteristic("ProcessingTime")
    assert env.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime
    windowed = env.from_elements(("a", 1)).key_by(0).time_window(Time.seconds(1))
    assert not windowed._assigner.is_event_time()


def test_the_mode_of_checkpoints_by_name(env):
    env.enable_checkpointing(100, "AT_LEAST_ONCE")
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE


def test_the_mode_of_read_file_by_name(env, tmp_path):
    with pytest.raises(ValueError, match="an interval of at least 1 ms"):
        env.read_file(StreamFormat.text_line_format(), str(tmp_path), "PROCESS_CONTINUOUSLY")


WRONG_NAMES = {
    r"set_runtime_mode: the argument execution_mode .* one of 'STREAMING', 'BATCH', 'AUTOMATIC', not 'nonsense'": (
        lambda env: env.set_runtime_mode("nonsense")
    ),
    r"execution_mode .* not 'batch'": lambda env: env.set_runtime_mode("batch"),
    r"characteristic .* one of .*'EventTime'.*, not 'eventTime'": (
        lambda env: env.set_stream_time_characteristic("eventTime")
    ),
    r"watch_type .* one of 'PROCESS_ONCE', 'PROCESS_CONTINUOUSLY', not 'CONTINUOUSLY'": (
        lambda env: env.read_file(StreamFormat.text_line_format(), "/nowhere", "CONTINUOUSLY")
    ),
    r"set_state_backend: the argument state_backend must be": lambda env: env.set_state_backend(3),
    r"set_restart_strategy: the argument restart_strategy must be": lambda env: env.set_restart_strategy("fixed-delay"),
    r"set_buffer_timeout: the argument timeout_millis must be a whole number": lambda env: env.set_buffer_timeout("x"),
    r"interval must be a whole number, not True": lambda env: env.enable_checkpointing(True),
}


@pytest.mark.parametrize("message", WRONG_NAMES)
def test_nothing_else_is_taken(env, message):
    with pytest.raises(InvalidArgument, match=message):
        WRONG_NAMES[message](env)


def test_python_types_are_types_of_states():
    assert ValueStateDescriptor("s", float) == ValueStateDescriptor("s", Types.DOUBLE())
    assert ListStateDescriptor("s", str) == ListStateDescriptor("s", Types.STRING())
    assert MapStateDescriptor("s", str, list[int]) == MapStateDescriptor("s", Types.STRING(), Types.LIST(Types.LONG()))
    for wrong in (5, "x", list, Types.INT, object()):
        for describe in (ValueStateDescriptor, ListStateDescriptor):
            with pytest.raises(InvalidArgument, match=r"type_info must be a TypeInformation such as .* a Python type"):
                describe("s", wrong)


def test_python_types_are_types_of_streams(env):
    assert env.from_collection([1], float).get_type() == Types.DOUBLE()
    assert env.from_elements(1).map(str, str).get_type() == Types.STRING()
    assert env.from_elements(1).map(str).returns(str).get_type() == Types.STRING()
    assert env.from_elements(1).key_by(lambda value: str(value), str).get_key_type() == Types.STRING()
    assert OutputTag("late", tuple[int, str]).type_info == Types.TUPLE([Types.LONG(), Types.STRING()])
    with pytest.raises(TypeMismatch):
        env.from_collection(["a"], int)


class CountUp(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", int))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value()


def test_a_job_whose_state_has_a_python_type_takes_checkpoints(env, tmp_path):
    env.enable_checkpointing(10)
    numbers = env.generate(lambda n: 0, rate=1000).uid("numbers").key_by(lambda value: value)
    numbers.process(CountUp(), int).uid("count").discard()
    job = env.execute_async()
    path = job.stop_with_savepoint(False, str(tmp_path)).result(60)
    assert path.startswith(("file:", "/"))
