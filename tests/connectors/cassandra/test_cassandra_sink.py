"""Jobs that write to a real node."""

import threading
from dataclasses import dataclass

import pytest
from cassandra.cqlengine import columns
from cassandra.cqlengine.models import Model

from penstock.common import Duration, Row, Types
from penstock.connectors.cassandra import cassandra_client as _cassandra_client
from penstock.connectors.cassandra.cassandra_writer import Requests
from penstock.connectors.retrying import Retries
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.cassandra import (
    CassandraFailureHandler,
    CassandraSink,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
)
from penstock.errors import AccessDenied, ConnectorError, JobFailed, NotFound, SchemaMismatch, TypeMismatch
from penstock.testing import in_process


def run(records, builder, query=None, describe=lambda sink: sink, type_info=None, parallelism=2):
    with in_process(epoch_records=7):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        stream = env.from_collection(records, type_info) if type_info else env.from_collection(records)
        sink = CassandraSink.add_sink(stream).set_cluster_builder(builder)
        if query is not None:
            sink.set_query(query)
        describe(sink).build()
        env.execute()


def rows(session, table, *names):
    return sorted(tuple(getattr(row, name) for name in names) for row in session.execute(f"SELECT * FROM {table}"))


def insert(table):
    return f"INSERT INTO {table} (word, count, note) VALUES (?, ?, ?)"


def test_tuples_rows_and_dicts(session, table, builder):
    run([(f"a{n}", n, "x") for n in range(50)], builder, insert(table))
    run([Row("b", 1, None)], builder, insert(table))
    named = Types.ROW_NAMED(["word", "count", "note"], [Types.STRING(), Types.INT(), Types.STRING()])
    run([Row(word="c", count=2, note="y")], builder, insert(table), type_info=named)
    run([{"note": "z", "word": "d", "count": 3}], builder, insert(table))
    expected = [(f"a{n}", n, "x") for n in range(50)] + [("b", 1, None), ("c", 2, "y"), ("d", 3, "z")]
    found = {(row.word, row.count, row.note) for row in session.execute(f"SELECT * FROM {table}")}
    assert found == set(expected)


def test_the_last_of_several_writes_to_a_row_wins(session, table, builder):
    run([("a", n, str(n)) for n in range(300)], builder, insert(table), parallelism=1)
    assert rows(session, table, "word", "count", "note") == [("a", 299, "299")]


def test_a_write_that_is_sent_again_does_not_hide_a_newer_one(session, table, builder, monkeypatch):
    sink = CassandraSink.add_sink(StreamExecutionEnvironment.get_execution_environment().from_collection([1]))
    settings = sink.set_cluster_builder(builder).set_query(insert(table))._make_sink().settings
    requests = Requests(settings)
    send, lost = requests._connection.send, []

    def lose_the_first(statement, stamp, trace):
        if not lost:
            lost.append(stamp)
            raise ConnectionError("lost")
        return send(statement, stamp, trace)

    requests._connection.send = lose_the_first
    with monkeypatch.context() as held_back:
        held_back.setattr(requests, "settle", lambda: None)
        requests.write(("a", 1, "first"))
        requests.write(("a", 2, "second"))
    requests.settle()
    requests.close()
    assert lost
    assert rows(session, table, "count", "note") == [(2, "second")]


def test_none_is_written_as_null_or_left_alone(session, table, builder):
    run([("a", 1, "x"), ("b", 1, "x")], builder, insert(table))
    run([("a", 2, None)], builder, insert(table))
    run([("b", 2, None)], builder, insert(table), lambda sink: sink.enable_ignore_null_fields())
    found = {row.word: row.note for row in session.execute(f"SELECT * FROM {table}")}
    assert found == {"a": None, "b": "x"}


def test_objects(session, table, builder):
    @dataclass
    class Word:
        __keyspace__, __table__ = table.split(".")
        word: str
        count: int
        note: str | None = None

    run([Word("a", 1, "x"), Word("b", 2, "y")], builder)
    run([Word("a", 3)], builder, describe=lambda sink: sink.set_mapper_options(MapperOptions().save_null_fields(False)))
    run([Word("b", 9)], builder, describe=lambda sink: sink.set_mapper_options(MapperOptions().if_not_exists(True)))
    options = MapperOptions().ttl(1000).timestamp(1).tracing(True).consistency_level(ConsistencyLevel.ONE)
    run([Word("b", 8), Word("c", 4)], builder, describe=lambda sink: sink.set_mapper_options(options))
    assert rows(session, table, "word", "count") == [("a", 3), ("b", 2), ("c", 4)]
    [lived] = session.execute(f"SELECT ttl(count) AS left, writetime(count) AS at FROM {table} WHERE word = 'c'")
    assert 900 < lived.left <= 1000 and lived.at == 1


class WordModel(Model):
    __keyspace__ = "shop"
    __table_name__ = "model_words"
    word = columns.Text(primary_key=True)
    how_many = columns.Integer(db_field="count")


def test_models_of_the_driver(session, builder):
    session.execute("CREATE TABLE shop.model_words (word text PRIMARY KEY, count int)")
    run([WordModel(word="a", how_many=1), WordModel(word="b", how_many=2)], builder)
    assert rows(session, "shop.model_words", "word", "count") == [("a", 1), ("b", 2)]


def test_a_few_requests_at_a_time(session, table, builder, monkeypatch):
    highest = []
    ended = Requests._finish

    def counting(self, request, error):
        highest.append(self._under_way)
        ended(self, request, error)

    monkeypatch.setattr(Requests, "_finish", counting)
    few = lambda sink: sink.set_max_concurrent_requests(3, Duration.of_seconds(20))  # noqa: E731
    run([(str(n), n, None) for n in range(100)], builder, insert(table), few, parallelism=1)
    assert max(highest) <= 3
    assert len(rows(session, table, "word")) == 100


def test_patience_has_an_end(table, builder):
    sink = CassandraSink.add_sink(StreamExecutionEnvironment.get_execution_environment().from_collection([1]))
    sink.set_cluster_builder(builder).set_query(insert(table)).set_max_concurrent_requests(1, Duration.of_millis(50))
    requests = Requests(sink._make_sink().settings)
    requests._under_way = 1
    with pytest.raises(
        ConnectorError,
        match=r"too slow: 1 requests are open, and no request was completed "
        "within 0.05 s",
    ):
        requests.write(("a", 1, None))
    requests.close()


# --- what goes wrong ---
@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        ("INSERT INTO nowhere.t (a) VALUES (?)", NotFound, "nowhere"),
        ("INSERT INTO shop.nothing (a) VALUES (?)", NotFound, "nothing"),
        ("INSERT INTO {table} (word, colour) VALUES (?, ?)", SchemaMismatch, "colour"),
        ("INSERT {table}", ConnectorError, "rejected the statement 'INSERT"),
    ],
)
def test_queries_that_the_cluster_refuses(table, builder, query, error, said):
    with pytest.raises(JobFailed, match=said) as failed:
        run([("a",)], builder, query.format(table=table))
    assert isinstance(failed.value, error)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (("a", 1), r"takes 3 values \(word, count, note\), the record has 2"),
        (("a", "many", "x"), "cannot store this record.*count"),
        ({"word": "a"}, "no field 'count'"),
        ("a", "not for str; objects are saved without a query"),
    ],
)
def test_records_that_do_not_fit(table, builder, record, said):
    with pytest.raises(TypeMismatch, match=said):
        run([record], builder, insert(table))


def test_wrong_credentials(node):
    wrong = ClusterBuilder("127.0.0.1", port=node.port, user="cassandra", password="wrong")
    with pytest.raises(AccessDenied, match="rejected the login of user 'cassandra'"):
        run([("a",)], wrong, "INSERT INTO shop.t (a) VALUES (?)")


def test_too_few_rights(session, table, node):
    session.execute("CREATE ROLE IF NOT EXISTS reader WITH PASSWORD = 'r' AND LOGIN = true")
    reader = ClusterBuilder("127.0.0.1", port=node.port, user="reader", password="r")
    with pytest.raises(AccessDenied, match=r"denied permission.*MODIFY"):
        run([("a", 1, None)], reader, insert(table))


def test_nobody_there(monkeypatch):
    monkeypatch.setattr(_cassandra_client, "RETRIES", Retries(attempts=2, delay=0.01))
    with pytest.raises(ConnectorError, match=r"connecting to Cassandra at 127.0.0.1:1 failed 2 times"):
        run([("a",)], ClusterBuilder("127.0.0.1", port=1, connect_timeout=1), "INSERT INTO t (a) VALUES (?)")


class Dropping(CassandraFailureHandler):
    seen = []

    def on_failure(self, failure):
        Dropping.seen.append(failure)


def test_a_failure_handler_may_drop_records(session, table, builder):
    records = [("a", 1, "x"), ("", 2, "an empty key is not allowed"), ("b", 3, "y")]
    with pytest.raises(ConnectorError, match=r"could not write \('', 2, 'an empty key is not allowed'\)"):
        run(records, builder, insert(table))
    Dropping.seen.clear()
    run(records, builder, insert(table), lambda sink: sink.set_failure_handler(Dropping()))
    assert [type(failure) for failure in Dropping.seen] == [ConnectorError]
    assert rows(session, table, "word") == [("a",), ("b",)]


GOING = threading.Event()


def slowly(n):
    if n == 20:
        GOING.set()
    threading.Event().wait(0.01)
    return (f"w{n}", n, None)


def test_a_node_that_restarts_in_the_middle(node, session, table, builder):
    """Records go on coming while the node is away."""

    def restart():
        if GOING.wait(300):
            node.kill()
            node.start()

    thread = threading.Thread(target=restart)
    thread.start()
    with in_process(epoch_records=10):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        stream = env.from_collection(range(200)).map(slowly)
        CassandraSink.add_sink(stream).set_cluster_builder(builder).set_query(insert(table)).build()
        try:
            env.execute()
        finally:
            thread.join()
    # The second client may need a moment to find the node again.
    read = Retries(10).call(lambda: rows(session, table, "word"), "reading", lambda error: True)
    assert set(read) == {(f"w{n}",) for n in range(200)}
