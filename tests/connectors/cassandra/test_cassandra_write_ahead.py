"""The write-ahead log: what a job computes differently in each attempt is written once, whatever dies."""

import logging
import uuid

import pytest

from penstock.common import Configuration
from penstock.connectors.cassandra.cassandra_client import Connection
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.cassandra import CassandraCommitter, CassandraSink, ClusterBuilder
from penstock.datastream.connectors.prepared import MARKERS_KEPT
from penstock.datastream.functions import MapFunction
from penstock.errors import AccessDenied
from penstock.testing import in_process
from penstock.testing.crashes import StoreSink, crash_point, simulate

NUMBERS = list(range(30))
SEEDS = range(1, 6)


@pytest.fixture
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def connections(monkeypatch):
    """Connections that dead slots leave open are closed after the test."""
    opened = []
    connect = Connection._connect

    def remember(self):
        opened.append(self)
        return connect(self)

    monkeypatch.setattr(Connection, "_connect", remember)
    yield opened
    for connection in opened:
        connection.close()


class WithToken(MapFunction):
    """Adds a token that differs from attempt to attempt."""

    def map(self, value):
        crash_point("mapping")
        return value, uuid.uuid4().hex


class Fragile(CassandraCommitter):
    def commit_checkpoint(self, subtask_idx, checkpoint_id):
        crash_point("after sending, before the marker")
        super().commit_checkpoint(subtask_idx, checkpoint_id)
        crash_point("after the marker")


def written(session, table):
    return sorted((row.number, row.mark) for row in session.execute(f"SELECT number, mark FROM {table}"))


@pytest.fixture
def tokens(session):
    name = f"shop.tokens_{uuid.uuid4().hex[:8]}"
    session.execute(f"CREATE TABLE {name} (number int, mark text, PRIMARY KEY (number, mark))")
    return name


def insert(table):
    return f"INSERT INTO {table} (number, mark) VALUES (?, ?)"


def test_two_sinks_agree_whatever_dies(session, builder, tokens, quiet, connections):
    def run(seed, steps=None):
        session.execute(f"TRUNCATE {tokens}")

        def build(env):
            env.set_parallelism(1)
            stream = env.from_collection(NUMBERS).map(WithToken())
            stream.sink_to(StoreSink("numbers"))
            sink = CassandraSink.add_sink(stream).set_cluster_builder(builder).set_query(insert(tokens))
            sink.enable_write_ahead_log(Fragile(builder, f"markers_{seed}")).build()

        return simulate(build, seed, steps=steps)

    whole = run(0)
    assert [number for number, _ in written(session, tokens)] == NUMBERS
    crashes = 0
    for seed in SEEDS:
        outcome = run(seed, whole.steps)
        expected = sorted(outcome.store.visible("numbers"))
        assert [number for number, _ in expected] == NUMBERS
        assert written(session, tokens) == expected, f"seed {seed}, {outcome.crashes}, {outcome.settings}"
        crashes += len(outcome.crashes)
    assert crashes > len(SEEDS) / 2


SEEN: list[int] = []


class Looking(MapFunction):
    """Looks at the table for every record."""

    def __init__(self, builder, table):
        self.builder = builder
        self.table = table

    def open(self, runtime_context):
        self.cluster = self.builder.build_cluster()
        self.session = self.cluster.connect()

    def map(self, value):
        SEEN.append(len(list(self.session.execute(f"SELECT word FROM {self.table}"))))
        return value

    def close(self):
        self.cluster.shutdown()


def test_nothing_is_seen_before_its_checkpoint_and_the_last_of_a_row_wins(session, builder, table, tmp_path):
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path))
    configuration.set_string("execution.checkpointing.interval", "1 h")
    with in_process(epoch_records=5):
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(1)
        stream = env.from_collection([("a", n, str(n)) for n in range(40)]).map(Looking(builder, table))
        sink = CassandraSink.add_sink(stream).set_cluster_builder(builder)
        sink.set_query(f"INSERT INTO {table} (word, count, note) VALUES (?, ?, ?)").enable_write_ahead_log().build()
        env.execute()
    assert SEEN == [0] * 40
    [row] = session.execute(f"SELECT count, note FROM {table}")
    assert (row.count, row.note) == (39, "39")


def test_a_committer_remembers_the_last_few(session, builder):
    committer = CassandraCommitter.default_checkpoint_committer(builder, "markers_few")
    committer.set_job_id("job")
    committer.set_operator_id("operator")
    committer.create_resource()
    committer.open()
    for number in range(1, MARKERS_KEPT + 10):
        committer.commit_checkpoint(3, number)
    assert committer.is_checkpoint_committed(3, MARKERS_KEPT + 9)
    assert committer.is_checkpoint_committed(3, MARKERS_KEPT - 10)
    assert not committer.is_checkpoint_committed(3, 1)
    assert not committer.is_checkpoint_committed(2, MARKERS_KEPT)
    committer.set_job_id("another")
    assert not committer.is_checkpoint_committed(3, MARKERS_KEPT)
    committer.close()


def test_a_committer_that_is_not_let_in(node):
    committer = CassandraCommitter(ClusterBuilder("127.0.0.1", port=node.port, user="nobody", password="x"))
    with pytest.raises(AccessDenied, match="'nobody'"):
        committer.create_resource()
