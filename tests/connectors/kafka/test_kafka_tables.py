"""Tables in Kafka: what INSERT writes, SELECT reads, in every format and with keys, metadata and changes."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer, Producer

from penstock.errors import ValidationException
from penstock.table import EnvironmentSettings, StreamTableEnvironment
from penstock.testing import in_process


@pytest.fixture
def topic(kafka, name):
    return kafka.create_topic(name)


@pytest.fixture
def t_env():
    with in_process():
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", "1")
        yield t_env


def options(kafka, topic, **more):
    given = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": kafka.bootstrap,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "json",
        **{name.replace("__", "-").replace("_", "."): value for name, value in more.items()},
    }
    return ", ".join(f"'{name}' = '{value}'" for name, value in given.items() if value is not None)


def final(t_env, query):
    return sorted(t_env.sql_query(query).to_pandas().itertuples(index=False, name=None))


def records(kafka, topic):
    """Keys and values of a topic, as they are."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = []
    while (message := consumer.poll(10 if not found else 2)) is not None:
        found.append((message.key(), message.value()))
    consumer.close()
    return found


@pytest.mark.parametrize("format", ["json", "csv", "avro"])
def test_what_is_written_is_read(kafka, topic, t_env, format):
    columns = "id INT, word STRING, price DECIMAL(8, 2), ts TIMESTAMP(3)"
    t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({options(kafka, topic, format=format)})")
    rows = "(1, 'pen', 1.50, TIMESTAMP '2024-03-01 09:00:00.125'), (2, 'ink', 20.00, TIMESTAMP '2024-03-01 09:00:01')"
    t_env.execute_sql(f"INSERT INTO t VALUES {rows}").wait()
    query = "SELECT id, word, CAST(price AS STRING) AS p, CAST(ts AS STRING) AS ts FROM t"
    assert final(t_env, query) == [
        (1, "pen", "1.50", "2024-03-01 09:00:00.125"),
        (2, "ink", "20.00", "2024-03-01 09:00:01.000"),
    ]


def test_keys_and_metadata(kafka, topic, t_env):
    t_env.execute_sql(
        "CREATE TABLE t (id INT, word STRING, `partition` INT METADATA VIRTUAL, at_offset BIGINT METADATA FROM 'offset'"
        f" VIRTUAL) WITH ({options(kafka, topic, key_format='json', key_fields='id')})"
    )
    t_env.execute_sql("INSERT INTO t VALUES (7, 'a'), (8, 'b')").wait()
    assert final(t_env, "SELECT id, word, `partition`, at_offset FROM t") == [(7, "a", 0, 0), (8, "b", 0, 1)]
    assert [json.loads(key) for key, _ in records(kafka, topic)] == [{"id": 7}, {"id": 8}]


@pytest.mark.parametrize("format", ["json", "avro", "csv"])
def test_a_prefix_tells_columns_of_the_key_from_those_of_the_value(kafka, topic, t_env, format):
    more = {"key_format": format, "value_format": format, "key_fields": "k_id;k_part", "key_fields__prefix": "k_"}
    given = options(kafka, topic, format=None, value_fields__include="EXCEPT_KEY", **more)
    t_env.execute_sql(f"CREATE TABLE t (k_id INT, k_part STRING, id INT, word STRING) WITH ({given})")
    rows = [(number, "x", number * 10, f"w{number}") for number in range(1, 6)]
    t_env.execute_sql(f"INSERT INTO t VALUES {', '.join(map(str, rows))}").wait()
    assert final(t_env, "SELECT * FROM t") == rows
    if format == "json":
        assert [(json.loads(key), json.loads(value)) for key, value in records(kafka, topic)] == [
            ({"id": number, "part": part}, {"id": own, "word": word}) for number, part, own, word in rows
        ]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"key_fields": "k_id"}, "needs 'value.fields-include' = 'EXCEPT_KEY'"),
        (
            {"key_fields": "k_id;id", "value_fields__include": "EXCEPT_KEY"},
            "begin with the prefix 'k_'; these do not: id",
        ),
    ],
)
def test_a_prefix_that_does_not_fit_is_refused(kafka, topic, t_env, more, why):
    given = options(kafka, topic, key_format="json", key_fields__prefix="k_", **more)
    t_env.execute_sql(f"CREATE TABLE t (k_id INT, id INT) WITH ({given})")
    for statement in ("SELECT * FROM t", "INSERT INTO t VALUES (1, 2)"):
        with pytest.raises(ValidationException, match=why):
            t_env.execute_sql(statement)


def test_timestamps_and_headers_are_written(kafka, topic, t_env):
    t_env.execute_sql(
        "CREATE TABLE t (id INT, at_time TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', "
        f"headers MAP<STRING, BYTES> METADATA) WITH ({options(kafka, topic)})"
    )
    rows = (
        "(1, CAST(TIMESTAMP '2024-03-01 09:00:00.125' AS TIMESTAMP_LTZ(3)), MAP['from', CAST('x' AS BYTES)]), "
        "(2, CAST(TIMESTAMP '2024-03-01 10:00:00' AS TIMESTAMP_LTZ(3)), CAST(NULL AS MAP<STRING, BYTES>))"
    )
    t_env.execute_sql(f"INSERT INTO t VALUES {rows}").wait()
    query = "SELECT id, CAST(at_time AS STRING) AS s, CAST(headers['from'] AS STRING) AS h FROM t"
    assert final(t_env, query) == [(1, "2024-03-01 09:00:00.125", "x"), (2, "2024-03-01 10:00:00.000", None)]


def test_what_kafka_decides_is_not_written(kafka, topic, t_env):
    t_env.execute_sql(f"CREATE TABLE t (id INT, `offset` BIGINT METADATA) WITH ({options(kafka, topic)})")
    with pytest.raises(ValidationException, match="'offset' cannot be written: declare the column VIRTUAL"):
        t_env.execute_sql("INSERT INTO t VALUES (1, 2)")
    t_env.execute_sql(f"CREATE TABLE w (id INT, x BIGINT METADATA FROM 'value.nothing') WITH ({options(kafka, topic)})")
    with pytest.raises(ValidationException, match=r"Kafka has no metadata 'value\.nothing'"):
        t_env.execute_sql("SELECT * FROM w")


def test_the_last_record_of_a_key_counts(kafka, topic, t_env):
    given = options(
        kafka,
        topic,
        connector="upsert-kafka",
        format=None,
        key_format="json",
        value_format="json",
        scan_startup_mode=None,
    )
    t_env.execute_sql(f"CREATE TABLE u (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({given})")
    t_env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t(k, n)")
    t_env.execute_sql("INSERT INTO u SELECT k, SUM(n) FROM v GROUP BY k").wait()
    assert final(t_env, "SELECT k, n FROM u") == [("a", 4), ("b", 2)]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(topic, key=json.dumps({"k": "b"}).encode(), value=None)
    producer.flush()
    assert final(t_env, "SELECT k, n FROM u") == [("a", 4)]


CHANGES = {
    "debezium-json": [
        {"op": "c", "before": None, "after": {"id": 1, "n": 1}},
        {"op": "u", "before": {"id": 1, "n": 1}, "after": {"id": 1, "n": 5}},
        {"op": "c", "before": None, "after": {"id": 2, "n": 2}},
        {"op": "d", "before": {"id": 2, "n": 2}, "after": None},
    ],
    "canal-json": [
        {"type": "INSERT", "data": [{"id": 1, "n": 1}, {"id": 2, "n": 2}]},
        {"type": "UPDATE", "data": [{"id": 1, "n": 5}], "old": [{"n": 1}]},
        {"type": "DELETE", "data": [{"id": 2, "n": 2}]},
    ],
}


@pytest.mark.parametrize("format", CHANGES)
def test_changes_of_a_database_are_followed(kafka, topic, t_env, format):
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for change in CHANGES[format]:
        producer.produce(topic, value=json.dumps(change).encode())
    producer.flush()
    t_env.execute_sql(f"CREATE TABLE t (id INT, n INT) WITH ({options(kafka, topic, format=format)})")
    assert final(t_env, "SELECT id, n FROM t") == [(1, 5)]
    assert final(t_env, "SELECT SUM(n) AS s, COUNT(*) AS c FROM t") == [(5, 1)]


def test_a_bad_record_fails_or_is_left_out(kafka, topic, t_env):
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for value in (b'{"id": 1}', b"nonsense", b'{"id": 2}'):
        producer.produce(topic, value=value)
    producer.flush()
    t_env.execute_sql(f"CREATE TABLE strict (id INT) WITH ({options(kafka, topic)})")
    with pytest.raises(Exception, match="nonsense"):
        final(t_env, "SELECT id FROM strict")
    lenient = options(kafka, topic, json_ignore__parse__errors="true")
    t_env.execute_sql(f"CREATE TABLE lenient (id INT) WITH ({lenient})")
    assert final(t_env, "SELECT id FROM lenient") == [(1,), (2,)]


def test_options_that_contradict_are_refused(kafka, topic, t_env):
    t_env.execute_sql(
        f"CREATE TABLE t (id INT) WITH ({options(kafka, topic, sink_delivery__guarantee='exactly-once')})"
    )
    with pytest.raises(ValidationException, match="transactional-id-prefix"):
        t_env.execute_sql("INSERT INTO t VALUES (1)")
