"""Documents in a real server, also through a proxy that makes it look busy, and through a restart."""

import base64
import logging
import threading

import pytest

from penstock.common import Row, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.elasticsearch import (
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    FlushBackoffType,
)
from penstock.datastream.functions import MapFunction
from penstock.errors import AccessDenied, ConnectorError, NotFound, SchemaMismatch
from penstock.testing import in_process
from penstock.testing.crashes import StoreSink, crash_point, simulate


def sink_for(where, index, key_field="id", **settings):
    builder = Elasticsearch7SinkBuilder().set_hosts(where)
    builder.set_emitter(ElasticsearchEmitter.static_index(index, key_field))
    builder.set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 3, 10)
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    return builder.build()


def writer_for(where, index, key_field="id", **settings):
    return sink_for(where, index, key_field, **settings).create_writer(None, [])


def write(writer, *numbers, text="x"):
    for number in numbers:
        writer.write({"id": number, "text": text}, None)


def run(records, sink, type_info=None):
    with in_process(epoch_records=7):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        stream = env.from_collection(records, type_info) if type_info else env.from_collection(records)
        stream.sink_to(sink)
        env.execute()


# --- what is written ---
def test_documents_with_and_without_ids(indices, index):
    run([{"id": n, "text": f"t{n}"} for n in range(50)], sink_for(indices.url, index))
    assert indices.documents(index) == {str(n): {"id": n, "text": f"t{n}"} for n in range(50)}
    run([{"id": 1, "more": "m"}, {"id": 2, "text": "new"}], sink_for(indices.url, index))
    found = indices.documents(index)
    assert (found["1"], found["2"]) == ({"id": 1, "text": "t1", "more": "m"}, {"id": 2, "text": "new"})
    run([{"id": 1}, {"id": 1}], sink_for(indices.url, f"{index}-other", None))
    assert len(indices.documents(f"{index}-other")) == 2


def test_rows_go_to_the_index_that_they_name(indices, index):
    named = Types.ROW_NAMED(["where", "id"], [Types.STRING(), Types.INT()])
    builder = Elasticsearch7SinkBuilder().set_hosts([indices.url])
    builder.set_emitter(ElasticsearchEmitter.dynamic_index("where", "id"))
    run([Row(f"{index}-{n % 2}", n) for n in range(4)], builder.build(), named)
    assert sorted(indices.documents(f"{index}-0")) == ["0", "2"]
    assert sorted(indices.documents(f"{index}-1")) == ["1", "3"]


class Changes(ElasticsearchEmitter):
    def __init__(self, index):
        self.index = index

    def emit(self, element):
        kind, number = element
        if kind == "delete":
            return [{"_op_type": "delete", "_index": self.index, "_id": number}]
        return [{"_index": self.index, "_id": f"{number}{half}", "_source": {"n": number}} for half in "ab"]


def test_an_emitter_of_ones_own(indices, index):
    sink = Elasticsearch7SinkBuilder().set_hosts(indices.url).set_emitter(Changes(index)).build()
    writer = sink.create_writer(None, [])
    for change in [("index", 1), ("index", 2), ("delete", "1a"), ("delete", "never there")]:
        writer.write(change, None)
    writer.flush(True)
    writer.close()
    assert sorted(indices.documents(index)) == ["1b", "2a", "2b"]


# --- when it is written ---
def sent(moody):
    return [body.count(b"\n") // 2 for _, _, body in moody.seen]


def test_how_many_are_sent_together(moody, index):
    writer = writer_for(moody.host, index, bulk_flush_max_actions=3)
    write(writer, *range(7))
    assert sent(moody) == [3, 3]
    writer.flush(False)
    writer.flush(False)
    assert sent(moody) == [3, 3, 1]
    by_size = writer_for(moody.host, index, bulk_flush_max_actions=-1, bulk_flush_max_size_mb=1)
    write(by_size, 1, 2, 3, text="x" * 600_000)
    assert sent(moody)[3:] == [2]
    for each in (writer, by_size):
        each.close()


def test_after_how_long_they_are_sent(moody, index):
    writer = writer_for(moody.host, index, bulk_flush_interval=100)
    writer.end_epoch(1000)
    assert writer.next_due() is None
    write(writer, 1)
    writer.end_epoch(1010)
    assert (writer.next_due(), sent(moody)) == (1110, [])
    writer.end_epoch(1109)
    assert sent(moody) == []
    writer.end_epoch(1110)
    assert (writer.next_due(), sent(moody)) == (None, [1])
    writer.close()


def test_without_a_guarantee_a_checkpoint_does_not_wait(moody, index):
    writer = writer_for(moody.host, index, delivery_guarantee=DeliveryGuarantee.NONE)
    write(writer, 1)
    writer.flush(False)
    assert sent(moody) == []
    writer.flush(True)
    assert sent(moody) == [1]
    writer.close()


# --- a busy server ---
@pytest.mark.parametrize("mood", [429, 503, "hang up"])
def test_a_request_is_sent_again(moody, indices, index, mood):
    moody.moods = [mood, mood]
    writer = writer_for(moody.host, index)
    write(writer, 1, 2)
    writer.flush(False)
    assert sorted(indices.documents(index)) == ["1", "2"]
    assert sent(moody) == [2, 2, 2]
    writer.close()


def test_only_what_was_refused_is_sent_again_and_in_order(moody, indices, index):
    moody.moods = [lambda document: document["doc"]["text"] == "first"]
    writer = writer_for(moody.host, index)
    write(writer, 1, text="first")
    write(writer, 2, 3, 4, text="other")
    write(writer, 1, text="last")
    writer.flush(False)
    assert sent(moody) == [5, 2]
    assert {name: document["text"] for name, document in indices.documents(index).items()} == {
        "1": "last",
        **dict.fromkeys("234", "other"),
    }
    writer.close()


def test_patience_has_an_end(moody, index):
    moody.moods = [503] * 4
    writer = writer_for(moody.host, index)
    write(writer, 1, 2)
    with pytest.raises(ConnectorError, match=r"sending 2 documents to Elasticsearch.*failed 4 times.*status 503"):
        writer.flush(False)
    writer.close()


def test_no_patience_at_all(moody, index):
    moody.moods = [lambda document: True]
    builder = Elasticsearch7SinkBuilder().set_hosts(moody.host)
    builder.set_emitter(ElasticsearchEmitter.static_index(index, "id"))
    writer = builder.set_bulk_flush_backoff_strategy(FlushBackoffType.NONE, 0, 0).build().create_writer(None, [])
    write(writer, 1)
    with pytest.raises(ConnectorError, match=r"failed 1 times.*es_rejected_execution_exception: the queue is full"):
        writer.flush(False)
    writer.close()


# --- what goes wrong ---
def test_a_document_that_does_not_fit_is_named(indices, index):
    indices.ask("PUT", index, {"mappings": {"properties": {"text": {"type": "integer"}}}})
    with pytest.raises(SchemaMismatch, match=r"document '1' for index 'index-.*text.*many.*status 400.*text"):
        run([{"id": 0, "text": 5}, {"id": 1, "text": "many"}], sink_for(indices.url, index))
    assert indices.documents(index)["0"] == {"id": 0, "text": 5}


def test_an_index_that_may_not_be_made(indices, index):
    indices.ask("PUT", "_cluster/settings", {"transient": {"action.auto_create_index": "false"}})
    try:
        with pytest.raises(NotFound, match=f"index '{index}'.*index_not_found_exception"):
            run([{"id": 1}], sink_for(indices.url, index))
    finally:
        indices.ask("PUT", "_cluster/settings", {"transient": {"action.auto_create_index": None}})


def test_an_index_that_is_read_only(indices, index):
    indices.ask("PUT", index, {"settings": {"index.blocks.write": True}})
    with pytest.raises(AccessDenied, match="cluster_block_exception"):
        run([{"id": 1}], sink_for(indices.url, index))


def test_user_password_and_prefix(moody, indices, index):
    moody.user = "Basic " + base64.b64encode(b"me:secret").decode()
    with pytest.raises(AccessDenied, match="status 401"):
        run([{"id": 1}], sink_for(moody.host, index, connection_username="me", connection_password="wrong"))
    right = {"connection_username": "me", "connection_password": "secret", "connection_path_prefix": "/search"}
    run([{"id": 1}], sink_for(moody.host, index, **right))
    assert moody.seen[-1][0] == "/search/_bulk"
    assert list(indices.documents(index)) == ["1"]


def test_nobody_there(index):
    with pytest.raises(ConnectorError, match=r"http://127.0.0.1:1 failed 4 times"):
        run([{"id": 1}], sink_for("127.0.0.1:1", index, connection_timeout=500))


# --- restarts and crashes ---
GOING = threading.Event()


def slowly(n):
    if n == 20:
        GOING.set()
    threading.Event().wait(0.01)
    return {"id": n}


def test_a_server_that_restarts_in_the_middle(server, indices, index):
    def restart():
        if GOING.wait(300):
            server.kill()
            server.start()

    builder = Elasticsearch7SinkBuilder().set_hosts(indices.url).set_bulk_flush_max_actions(10)
    builder.set_emitter(ElasticsearchEmitter.static_index(index, "id"))
    builder.set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 60, 500)
    thread = threading.Thread(target=restart)
    thread.start()
    with in_process(epoch_records=10):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        env.from_collection(range(200)).map(slowly).sink_to(builder.build())
        try:
            env.execute()
        finally:
            thread.join()
    assert set(indices.documents(index)) == {str(n) for n in range(200)}


class Fragile(MapFunction):
    def map(self, value):
        crash_point("mapping")
        return value


def test_with_ids_each_document_is_there_once_whatever_dies(indices, index):
    logging.disable(logging.WARNING)
    numbers = list(range(30))

    def run_simulated(name, seed, steps=None):
        def build(env):
            env.set_parallelism(1)
            stream = env.from_collection(numbers).map(Fragile())
            stream.sink_to(StoreSink("numbers"))
            stream.map(lambda n: {"id": n, "square": n * n}).sink_to(sink_for(indices.url, name))

        return simulate(build, seed, steps=steps)

    try:
        whole = run_simulated(index, 0)
        for seed in range(1, 5):
            outcome = run_simulated(f"{index}-{seed}", seed, whole.steps)
            assert sorted(outcome.store.visible("numbers")) == numbers
            found = {int(name): document["square"] for name, document in indices.documents(f"{index}-{seed}").items()}
            assert found == {n: n * n for n in numbers}, f"seed {seed}: {outcome.crashes}"
    finally:
        logging.disable(logging.NOTSET)
