"""Descriptions of sinks, and what emitters make of records: nothing here needs a server."""

import json
import pickle
import sys
from dataclasses import dataclass
from datetime import datetime

import pytest

from penstock.common import Row
from penstock.connectors.elasticsearch.elasticsearch_writer import Action, Encoding, _again
from penstock.connectors.retrying import Retries
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.elasticsearch import (
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    FlushBackoffType,
)
from penstock.errors import MissingDependency, TypeMismatch

STATIC = ElasticsearchEmitter.static_index("users")


def builder():
    return Elasticsearch7SinkBuilder().set_hosts("here").set_emitter(STATIC)


def test_what_is_set_is_built():
    sink = (
        builder()
        .set_hosts(["here", "there:1", "https://safe", "http://[::1]:2"])
        .set_delivery_guarantee(DeliveryGuarantee.NONE)
        .set_bulk_flush_max_actions(-1)
        .set_bulk_flush_max_size_mb(2)
        .set_bulk_flush_interval(30)
        .set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 3, 500)
        .set_connection_username("me")
        .set_connection_password("secret")
        .set_connection_path_prefix("/search/")
        .set_connection_request_timeout(100)
        .set_connection_timeout(2500)
        .set_socket_timeout(300)
        .build()
    )
    settings = pickle.loads(pickle.dumps(sink)).settings
    assert settings.hosts == (
        "http://here:9200/search",
        "http://there:1/search",
        "https://safe:443/search",
        "http://[::1]:2/search",
    )
    assert (settings.most_actions, settings.most_bytes, settings.interval) == (-1, 2 << 20, 30)
    assert settings.retries == Retries(4, 0.5, 0.5)
    assert (settings.guarantee, settings.timeout) == (DeliveryGuarantee.NONE, 2.5)
    assert "secret" not in repr(sink)


def test_how_patient_a_sink_is():
    def retries(kind):
        return builder().set_bulk_flush_backoff_strategy(kind, 3, 500).build().settings.retries

    assert retries(FlushBackoffType.EXPONENTIAL) == Retries(4, 0.5, 60.0)
    assert retries(FlushBackoffType.NONE).attempts == 1
    assert builder().build().settings.retries == Retries()


@pytest.mark.parametrize(
    ("describe", "said"),
    [
        (lambda: Elasticsearch7SinkBuilder().set_hosts("a").build(), "needs set_emitter"),
        (lambda: Elasticsearch7SinkBuilder().set_emitter(STATIC).build(), "needs set_hosts"),
        (lambda: builder().set_hosts([]), "at least one host"),
        (lambda: builder().set_hosts("ftp://a"), "not 'ftp://a'"),
        (lambda: builder().set_hosts("a:b"), "not 'a:b'"),
        (lambda: builder().set_hosts("http://me:secret@a"), "set_connection_username"),
        (lambda: builder().set_connection_username("me").build(), "must be given together"),
        (lambda: builder().set_bulk_flush_max_actions(0), "number of actions is at least 1"),
        (lambda: builder().set_bulk_flush_interval(-2), "interval is at least 1"),
        (lambda: builder().set_socket_timeout(0), "at least 1 ms"),
        (
            lambda: builder().set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 0, 1),
            "at least 1 and the delay",
        ),
        (lambda: builder().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE), "no transactions"),
        (lambda: ElasticsearchEmitter.static_index(""), "index is a name"),
    ],
)
def test_what_cannot_be_built(describe, said):
    with pytest.raises(ValueError, match=said):
        describe()


def test_things_of_another_kind():
    with pytest.raises(TypeError, match="ElasticsearchEmitter"):
        builder().set_emitter(dict)
    with pytest.raises(TypeError, match="DeliveryGuarantee"):
        builder().set_delivery_guarantee("none")
    with pytest.raises(TypeError, match="FlushBackoffType"):
        builder().set_bulk_flush_backoff_strategy("SOME", 1, 1)


@dataclass
class User:
    id: int
    name: str


def test_records_become_documents():
    for record in ({"id": 1, "name": "Ann"}, Row(id=1, name="Ann"), User(1, "Ann")):
        assert STATIC.emit(record) == [{"_index": "users", "_source": {"id": 1, "name": "Ann"}}]
    [action] = ElasticsearchEmitter.dynamic_index("name", "id", "_doc").emit(User(1, "ann"))
    assert (action["_index"], action["_id"], action["_type"], action["_op_type"]) == ("ann", 1, "_doc", "update")
    assert action["_source"] == {"doc": {"id": 1, "name": "ann"}, "doc_as_upsert": True}


def test_records_that_are_no_documents():
    for record in (1, (1, 2), Row(1, 2), User):
        with pytest.raises(TypeMismatch, match="a dict, a Row with field names or a dataclass"):
            STATIC.emit(record)
    with pytest.raises(TypeMismatch, match=r"no field 'id', only \['name'\]"):
        ElasticsearchEmitter.static_index("users", "id").emit({"name": "Ann"})
    with pytest.raises(TypeMismatch, match="no field 'where'"):
        ElasticsearchEmitter.dynamic_index("where").emit({"where": None})


def lines(said):
    return [json.loads(line) for line in Encoding().action(said).lines]


def test_actions_become_lines():
    assert lines({"_index": "i", "_source": {"a": 1}}) == [{"index": {"_index": "i"}}, {"a": 1}]
    assert lines({"_index": "i", "_op_type": "delete", "_id": 7}) == [{"delete": {"_index": "i", "_id": "7"}}]
    assert lines({"_index": "i", "_op_type": "update", "_id": "x", "_routing": "r", "doc": {"a": 1}}) == [
        {"update": {"_index": "i", "_id": "x", "routing": "r"}},
        {"doc": {"a": 1}},
    ]
    assert lines({"_index": "i", "_source": {"at": datetime(2020, 1, 2)}})[1] == {"at": "2020-01-02T00:00:00"}


@pytest.mark.parametrize(
    "said",
    [
        {"_source": {}},
        {"_index": "i", "_op_type": "upsert", "_source": {}},
        {"_index": "i"},
        {"_index": "i", "_op_type": "delete", "_source": {}},
        {"_index": "i", "_source": {"a": object()}},
        {"_index": "i", "_source": {}, "surprise": 1},
    ],
)
def test_actions_that_make_no_sense(said):
    with pytest.raises(TypeMismatch):
        Encoding().action(said)


def test_what_is_sent_again_keeps_the_order_of_each_document():
    def action(name):
        return Action("index", "i", name, (b"{}",))

    a, b, c, again_a, nameless = action("a"), action("b"), action("c"), action("a"), action(None)
    assert _again([a, b, again_a, c], [True, False, False, True]) == [a, again_a, c]
    assert _again([b, nameless, nameless], [False, True, False]) == [nameless]


def test_the_package_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "elasticsearch", None)
    monkeypatch.setitem(sys.modules, "elasticsearch.serializer", None)
    with pytest.raises(MissingDependency, match=r"penstock\[elasticsearch\]"):
        builder().build().create_writer(None, [])
