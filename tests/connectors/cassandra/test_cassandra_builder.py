"""Descriptions of sinks, and the statements that save objects: nothing here needs a server."""

import pickle
import sys
from dataclasses import dataclass, field

import pytest
from cassandra.cqlengine import columns
from cassandra.cqlengine.models import Model

from penstock.common import Duration
from penstock.connectors.cassandra.cassandra_statements import insert_into, mapping_of
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.cassandra import (
    CassandraCommitter,
    CassandraFailureHandler,
    CassandraSink,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
)
from penstock.errors import MissingDependency, TypeMismatch

HERE = ClusterBuilder("here")


def stream():
    return StreamExecutionEnvironment.get_execution_environment().from_collection([("a", 1)])


def test_build_adds_a_sink_whose_settings_can_be_changed():
    sink = (
        CassandraSink.add_sink(stream())
        .set_query("INSERT INTO t (a) VALUES (?)")
        .set_host("here", 9999)
        .set_failure_handler(CassandraFailureHandler.no_op())
        .set_max_concurrent_requests(7, Duration.of_seconds(3))
        .enable_ignore_null_fields()
        .set_mapper_options(MapperOptions())
        .enable_write_ahead_log(CassandraCommitter.default_checkpoint_committer(HERE, "markers"))
        .build()
    )
    assert isinstance(sink, CassandraSink)
    for chosen in (sink.name("words"), sink.uid("w"), sink.set_parallelism(1), sink.disable_chaining()):
        assert chosen is sink
    assert sink.slot_sharing_group("default") is sink
    assert sink._sink._node.name == "words"


def test_the_builder_has_the_name_that_it_has_in_pyflink():
    assert isinstance(CassandraSink.add_sink(stream()), CassandraSink.CassandraSinkBuilder)


def test_what_cannot_be_built():
    new = lambda: CassandraSink.add_sink(stream())  # noqa: E731
    with pytest.raises(ValueError, match="needs set_host or set_cluster_builder"):
        new().set_query("INSERT").build()
    with pytest.raises(ValueError, match="exclude each other"):
        new().set_host("here").set_cluster_builder(HERE)
    with pytest.raises(ValueError, match="exclude each other"):
        new().set_cluster_builder(HERE).set_host("here")
    with pytest.raises(ValueError, match="does not allow a timestamp together with if_not_exists"):
        new().set_host("here").set_mapper_options(MapperOptions().if_not_exists(True).timestamp(1)).build()
    with pytest.raises(ValueError, match="CQL statement"):
        new().set_query(" ")
    with pytest.raises(ValueError, match="at least one request"):
        new().set_max_concurrent_requests(0)
    with pytest.raises(TypeError, match="must be a ClusterBuilder"):
        new().set_cluster_builder("here")
    with pytest.raises(TypeError, match="must be a CassandraFailureHandler"):
        new().set_failure_handler(print)
    with pytest.raises(TypeError, match="the argument input must be a DataStream"):
        CassandraSink.add_sink([1])


def test_cluster_builders_are_checked_and_keep_their_secrets():
    with pytest.raises(ValueError, match="names or addresses"):
        ClusterBuilder("")
    with pytest.raises(ValueError, match="port"):
        ClusterBuilder("here", port=0)
    with pytest.raises(ValueError, match="must be given together"):
        ClusterBuilder("here", user="me")
    with pytest.raises(ValueError, match="needs hosts"):
        ClusterBuilder().build_cluster()
    with pytest.raises(ValueError, match="letters, digits"):
        CassandraCommitter(HERE, "a; DROP")
    with pytest.raises(ValueError, match="time to live"):
        MapperOptions().ttl(-1)
    with pytest.raises(TypeError, match="ConsistencyLevel"):
        MapperOptions().consistency_level("SOME")
    one, named = (MapperOptions().consistency_level(level) for level in (ConsistencyLevel.ONE, "ONE"))
    assert vars(one) == vars(named)
    secret = ClusterBuilder("here", "there", user="me", password="secret")
    assert repr(secret) == "ClusterBuilder(here,there:9042)"
    assert pickle.loads(pickle.dumps(secret)).password == "secret"


def test_the_levels_of_consistency_are_those_of_the_driver():
    import cassandra

    for level in ConsistencyLevel:
        assert isinstance(getattr(cassandra.ConsistencyLevel, level.name), int)


@dataclass
class Word:
    __keyspace__ = "shop"
    __table__ = "Words"
    word: str
    order: int = field(metadata={"column": "Order"})


class WordModel(Model):
    __keyspace__ = "shop"
    __table_name__ = "words"
    word = columns.Text(primary_key=True)
    count = columns.Integer(db_field="how_many")


def test_where_objects_are_saved():
    table, names, values = mapping_of(Word)
    assert (table, names, values(Word("a", 1))) == ('"shop"."Words"', ["word", "Order"], ["a", 1])
    table, names, values = mapping_of(WordModel)
    assert (table, names, values(WordModel(word="a", count=2))) == ("shop.words", ["word", "how_many"], ["a", 2])

    @dataclass
    class Nowhere:
        word: str

    for kind in (int, Nowhere):
        with pytest.raises(TypeMismatch, match=f"{kind.__name__} is neither a dataclass with __table__"):
            mapping_of(kind)


def test_the_statement_that_saves_an_object():
    assert insert_into("t", ["a", 'b"'], MapperOptions()) == 'INSERT INTO t ("a", "b""") VALUES (?, ?)'
    options = MapperOptions().ttl(5).timestamp(7)
    assert insert_into("t", ["a"], options) == 'INSERT INTO t ("a") VALUES (?) USING TTL 5 AND TIMESTAMP 7'
    options = MapperOptions().if_not_exists(True).ttl(5)
    assert insert_into("t", ["a"], options) == 'INSERT INTO t ("a") VALUES (?) IF NOT EXISTS USING TTL 5'


def test_the_package_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cassandra.cluster", None)
    with pytest.raises(MissingDependency, match=r"penstock\[cassandra\]"):
        HERE.build_cluster()
