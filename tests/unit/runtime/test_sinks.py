"""print, add_sink and discard."""

import pytest

from penstock.common import Row, Types
from penstock.datastream.functions import SinkFunction
from penstock.errors import JobFailed
from penstock.testing import at, scripted, watermark

WRITTEN: list = []


@pytest.fixture(autouse=True)
def _empty():
    WRITTEN.clear()


def printed(env, capsys, identifier=None, parallelism=1, values=("a",), type_info=None):
    env.from_collection(list(values), type_info).print(identifier).set_parallelism(parallelism)
    env.execute()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("identifier", "parallelism", "expected"),
    [(None, 1, "a\n"), ("id", 1, "id> a\n"), (None, 2, "1> a\n"), ("id", 2, "id:1> a\n")],
)
def test_print_leads_with_identifier_and_subtask(env, capsys, identifier, parallelism, expected):
    assert printed(env, capsys, identifier, parallelism) == expected


def test_every_subtask_has_its_number(env, capsys):
    assert sorted(printed(env, capsys, "x", 3, "abc").splitlines()) == ["x:1> a", "x:2> b", "x:3> c"]


def test_values_without_a_type_print_as_python_does(env, capsys):
    assert printed(env, capsys, values=[1.0, None, (1, "a"), Row(1, "b")]) == "1.0\nNone\n(1, 'a')\n<Row(1, 'b')>\n"


def test_values_with_a_type_print_as_flink_does(env, capsys):
    pair = Types.TUPLE([Types.STRING(), Types.BOOLEAN()])
    assert printed(env, capsys, values=[("a", True), ("b", None)], type_info=pair) == "(a,true)\n(b,null)\n"
    row = Types.ROW([Types.INT(), Types.DOUBLE()])
    assert printed(env, capsys, values=[Row(1, 2)], type_info=row) == "+I[1,2.0]\n"


class Remember(SinkFunction):
    def open(self, runtime_context):
        WRITTEN.append("open")

    def invoke(self, value, context=None):
        WRITTEN.append((value, context.timestamp(), context.current_watermark()))

    def close(self):
        WRITTEN.append("close")


def test_a_sink_function_sees_the_times_of_each_record(env):
    scripted(env, at("a", 5), watermark(7), "b").add_sink(Remember())
    env.execute()
    assert WRITTEN == ["open", ("a", 5, -(2**63)), ("b", None, 7), "close"]


def remember(value):
    WRITTEN.append(value)


def test_a_plain_function_is_a_sink(env):
    env.from_collection([1, 2]).add_sink(remember)
    env.execute()
    assert WRITTEN == [1, 2]


def test_two_sinks_of_one_stream_get_everything_once(env, capsys):
    stream = env.from_collection([1, 2]).map(lambda v: v * 10)
    stream.add_sink(remember)
    stream.print()
    env.execute()
    assert WRITTEN == [10, 20] and capsys.readouterr().out == "10\n20\n"


def test_discard_runs_what_is_before_it(env):
    env.from_collection([1, 2]).map(lambda v: WRITTEN.append(v) if False else remember(v)).discard()
    env.execute()
    assert WRITTEN == [1, 2]


def test_a_failing_sink_names_itself_and_the_record(env):
    def fails(value):
        raise OSError("disk full")

    env.from_collection(["r"]).add_sink(fails).name("Archive")
    with pytest.raises(JobFailed, match=r"Archive .*OSError: disk full\n  on record 'r'"):
        env.execute()


class Untellable:
    def __str__(self):
        raise ValueError("no text")


def test_a_value_that_cannot_be_printed_names_the_sink(env):
    env.from_collection([1]).map(lambda v: Untellable()).print().name("Printer")
    with pytest.raises(JobFailed) as raised:
        env.execute()
    assert raised.value.operator == "Printer"


def test_a_value_that_cannot_be_collected_names_the_sink(env):
    with pytest.raises(JobFailed) as raised:
        env.from_collection([1]).map(lambda v: (n for n in range(3))).execute_and_collect(limit=1)
    assert raised.value.operator == "Collect"
