"""Results of jobs and savepoints show what a job has done, and what is in a snapshot."""

import pickle
import xml.etree.ElementTree as ET

import pytest

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction, MapFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.state import SavepointReader
from penstock.testing import in_process
from tests.waiting import until


class Count(MapFunction):
    def open(self, context):
        self.seen = context.get_metrics_group().counter("seen<b>")

    def map(self, value):
        self.seen.inc()
        return value


class Last(KeyedProcessFunction):
    def open(self, context):
        self.last = context.get_state(ValueStateDescriptor("last <value>", Types.LONG()))

    def process_element(self, value, ctx):
        self.last.update(value)
        yield value


def drawn(shown):
    return ET.fromstring(shown._repr_html_())


def rows(shown):
    return [
        ["".join(cell.itertext()) for cell in row.iter("td")]
        for row in drawn(shown).iter("tr")
        if row.find("td") is not None
    ]


@pytest.fixture
def env():
    with in_process():
        yield StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def test_a_result_shows_records_and_metrics(env):
    env.from_collection(range(3)).map(Count()).name("Count").uid("count").print()
    result = env.execute("three <records>")
    assert rows(result) == [
        ["Source: Collection Source", "collection-source-0", "1", "3", "3"],
        ["Count", "count", "2", "3", "3"],
        ["Sink: Print to Std. Out", "print-to-std--out-2", "2", "3", "0"],
        ["count.seen<b>", "3"],
    ]
    assert "three <records>" in "".join(drawn(result).itertext())
    assert repr(result).endswith(" ms, accumulators={'count.seen<b>': 3})")
    assert pickle.loads(pickle.dumps(result)).get_all_accumulator_results() == {"count.seen<b>": 3}
    assert pickle.loads(pickle.dumps(result))._repr_html_() is None


def test_a_savepoint_shows_its_operators_and_states(env, tmp_path):
    env.set_parallelism(1)
    stream = env.generate(lambda n: n, rate=1000).key_by(lambda value: value % 2, Types.LONG())
    stream.process(Last()).uid("last").discard()
    job = env.execute_async("numbers")
    until(lambda: job._job.record().epoch > 3)
    path = job.stop_with_savepoint(False, str(tmp_path)).result()
    assert path == str(path) and repr(path) == repr(str(path)), "it is a text like any other"
    assert type(pickle.loads(pickle.dumps(path))) is str
    expected = ["last", "Keyed Process", "1 of 128", "last <value>", "keyed", "key", "value<LONG>"]
    for shown in (path, SavepointReader.read(path)):
        assert [row for row in rows(shown) if row[0] == "last"] == [expected]
        assert "Savepoint 1 of numbers" in "".join(drawn(shown).itertext())
    assert repr(SavepointReader.read(path)).startswith(
        f"SavepointReader('{path}')\nsavepoint 1 of job 'numbers', 1 slot"
    )
    (tmp_path / path.rpartition("/")[2] / "_metadata").unlink()
    assert "there is no checkpoint or savepoint" in "".join(drawn(path).itertext())
