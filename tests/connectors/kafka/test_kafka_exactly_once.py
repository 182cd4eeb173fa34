"""Exactly once: commits that are repeated, transactions that hang, committers that come back, and crashes anywhere."""

import json
import logging
import threading
import time
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from penstock.common import WatermarkStrategy
from penstock.connectors.kafka.commit import OriginCommitter
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.prepared import MARKERS_KEPT
from penstock.datastream.functions import MapFunction
from penstock.errors import ConnectorError, JobDisplaced, SchemaMismatch
from penstock.testing import crashes
from penstock.testing.crashes import StoreSink, crash_point, simulate
from tests.connectors.kafka.jobs import Writing, strings, text_sink


def exactly_once(kafka, name):
    builder = text_sink(kafka, name).set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    return builder.set_transactional_id_prefix(name).set_marker_topic(f"{name}-markers").build()


def prepared(sink, *values, index=0):
    writer = sink.create_writer(Writing(index), [])
    writer.write_all(list(values), None, None)
    committables = writer.prepare_commit()
    writer.close()
    return committables


def test_nothing_is_written_before_the_commit(kafka, name):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    [committable] = prepared(sink, "a", "b")
    assert kafka.values(name, "read_uncommitted") == []
    assert committable.origin == f"{name}-sink-0"
    committer = sink.create_committer()
    committer.commit([committable])
    assert kafka.values(name) == ["a", "b"]
    committer.close()


def test_a_commit_that_comes_again_changes_nothing(kafka, name):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    first, second = prepared(sink, "a"), prepared(sink, "b")
    committer = sink.create_committer()
    committer.commit(first)
    committer.commit(first)
    committer.commit([*first, *second])
    committer.close()
    successor = sink.create_committer()
    successor.commit([*first, *second])
    successor.commit(prepared(sink, "c"))
    successor.close()
    assert kafka.values(name) == ["a", "b", "c"]


def test_markers_are_kept_by_origin_in_a_compacted_topic(kafka, name):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    committer = sink.create_committer()
    committables = [prepared(sink, str(n), index=n % 2)[0] for n in range(4)]
    for committable in committables:
        committer.commit([committable])
    committer.close()
    config = kafka.topic_config(f"{name}-markers")
    assert config["cleanup.policy"] == "compact"
    last = {message.key().decode(): json.loads(message.value()) for message in kafka.read(f"{name}-markers")}
    assert last == {
        f"{name}-sink-0": [committables[0].id, committables[2].id],
        f"{name}-sink-1": [committables[1].id, committables[3].id],
    }


def test_only_the_last_markers_are_kept(kafka, name):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    [committable] = prepared(sink, "a")
    many = [replace(committable, id=str(n)) for n in range(MARKERS_KEPT + 5)]
    committer = sink.create_committer()
    committer.commit(many[:-1])
    committer.commit(many[-1:])
    committer.close()
    *_, last = kafka.read(f"{name}-markers")
    assert json.loads(last.value()) == [str(n) for n in range(5, MARKERS_KEPT + 5)]


def test_a_marker_topic_that_forgets_is_refused(kafka, name):
    kafka.create_topic(name)
    kafka.create_topic(f"{name}-markers", cleanup__policy="delete")
    sink = exactly_once(kafka, name)
    with pytest.raises(SchemaMismatch, match=r"cleanup.policy=delete"):
        sink.create_committer().commit(prepared(sink, "a"))


def left_hanging(sink, committables, monkeypatch):
    """A committer that died before it could end its transaction."""
    dead = sink.create_committer()
    with monkeypatch.context() as broken:
        broken.setattr(OriginCommitter, "_again_while_told", die)
        with pytest.raises(KeyboardInterrupt):
            dead.commit(committables)
    [origin] = dead._origins.values()
    origin._sending.producer.flush(10)
    return dead


def test_a_transaction_that_hangs_is_ended_by_the_next_committer(kafka, name, monkeypatch):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    committables = prepared(sink, "a")
    dead = left_hanging(sink, committables, monkeypatch)
    assert kafka.stable_offsets(name)[0] < kafka.end_offsets(name)[0]
    successor = sink.create_committer()
    successor.commit(committables)
    successor.close()
    assert kafka.values(name) == ["a"]
    assert_nothing_hangs(kafka, name)
    dead.close()


def die(self, action):
    raise KeyboardInterrupt


def test_the_producer_that_found_a_transaction_open_is_gone(kafka, name, monkeypatch):
    """If it lived on, it would ask for the transactional id once more, and fence its own successor."""
    kafka.create_topic(name)
    sink, made, dead_ones, written = exactly_once(kafka, name), [], [], []
    new_sending = OriginCommitter._new_sending

    def remembered(self):
        sending = new_sending(self)
        made.append(sending)
        return sending

    for number in range(20):  # on a busy machine the first look may be too short to find anything
        committables = prepared(sink, str(number))
        dead_ones.append(left_hanging(sink, committables, monkeypatch))
        made.clear()
        successor = sink.create_committer()
        with monkeypatch.context() as watched:
            watched.setattr(OriginCommitter, "_new_sending", remembered)
            successor.commit(committables)
        written.append(str(number))
        if len(made) == 2:
            break
        successor.close()
    assert [sending.producer is None for sending in made] == [True, False]
    time.sleep(0.7)  # until the library would ask again
    successor.commit(prepared(sink, "last"))
    assert kafka.values(name) == [*written, "last"]
    for committer in (*dead_ones, successor):
        committer.close()
    assert_nothing_hangs(kafka, name)


def test_a_committer_whose_id_was_taken_over_says_so(kafka, name):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    old, new = sink.create_committer(), sink.create_committer()
    old.commit(prepared(sink, "a"))
    new.commit(prepared(sink, "b"))
    with pytest.raises(ConnectorError, match=f"{name}-sink-0.*taken over by another producer"):
        old.commit(prepared(sink, "c"))
    new.commit(prepared(sink, "d"))
    for committer in (old, new):
        committer.close()
    assert kafka.values(name) == ["a", "b", "d"]
    assert_nothing_hangs(kafka, name)


def test_a_displaced_driver_that_takes_the_id_back_writes_nothing(kafka, name):
    """It was stopped before its first commit; what it has to commit, the new owner has committed long ago."""
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    committable, *_ = prepared(sink, "a")
    owner = sink.create_committer()
    owner.commit([committable])
    owner.commit([replace(committable, id=str(n), records=[]) for n in range(MARKERS_KEPT)])
    late = sink.create_committer()

    def displaced():
        raise JobDisplaced("the job has a new owner")

    late.check_owner = displaced
    with pytest.raises(JobDisplaced):
        late.commit([committable])
    late.close()
    with pytest.raises(ConnectorError, match="taken over by another producer"):
        owner.commit(prepared(sink, "b"))
    owner.close()
    again = sink.create_committer()
    again.commit(prepared(sink, "b"))
    again.close()
    assert kafka.values(name) == ["a", "b"]


def test_the_outcome_of_a_commit_that_nobody_heard_of_is_found(kafka, name, monkeypatch):
    """The commit works, but its answer is lost: the second try must find the marker."""
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    original, answers = OriginCommitter._again_while_told, [True]

    def lose_the_answer(self, action):
        original(self, action)
        if answers:
            answers.pop()
            from confluent_kafka import KafkaError, KafkaException

            raise KafkaException(KafkaError(KafkaError._STATE, "lost"))

    monkeypatch.setattr(OriginCommitter, "_again_while_told", lose_the_answer)
    committer = sink.create_committer()
    committer.commit(prepared(sink, "a"))
    committer.commit(prepared(sink, "b"))
    committer.close()
    assert kafka.values(name) == ["a", "b"]


def test_an_aborted_try_is_repeated(kafka, name, monkeypatch):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    original, tries = OriginCommitter._write, []

    def abort_first(self, committables, ids):
        tries.append(ids)
        if len(tries) == 1:
            producer = self._sending.producer
            producer.begin_transaction()
            self._sending.send(committables[0].records)
            producer.flush(10)
            from confluent_kafka import KafkaError, KafkaException

            raise KafkaException(KafkaError(KafkaError._INCONSISTENT, "broken"))
        original(self, committables, ids)

    monkeypatch.setattr(OriginCommitter, "_write", abort_first)
    committer = sink.create_committer()
    committer.commit(prepared(sink, "a"))
    committer.close()
    assert len(tries) == 2
    assert kafka.values(name) == ["a"]
    assert kafka.values(name, "read_uncommitted") == ["a", "a"]


def test_an_open_transaction_of_another_origin_is_no_hindrance(kafka, name):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    mine = prepared(sink, "a")
    committer = sink.create_committer()
    committer.commit(mine)
    committer.close()
    other = open_marker(kafka, name)
    successor = sink.create_committer()
    began = time.monotonic()
    successor.commit(mine)
    assert time.monotonic() - began < 40, "it waited for the other one to time out"
    successor.close()
    other.abort_transaction(10)
    assert kafka.values(name) == ["a"]


def test_a_marker_behind_an_open_transaction_of_another_is_waited_for(kafka, name):
    kafka.create_topic(name)
    sink = exactly_once(kafka, name)
    mine = prepared(sink, "a")
    committer = sink.create_committer()
    committer.commit(prepared(sink, "first"))
    other = open_marker(kafka, name)
    committer.commit(mine)
    committer.close()
    ended = threading.Timer(0.5, other.abort_transaction, [10])
    ended.start()
    successor = sink.create_committer()
    successor.commit(mine)
    assert not ended.is_alive()
    successor.close()
    assert kafka.values(name) == ["first", "a"]


def open_marker(kafka, name):
    """Someone else is in the middle of a commit."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{name}-other"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(f"{name}-markers", b"[]", b"other", 0)
    producer.flush(10)
    return producer


def assert_nothing_hangs(kafka, name):
    for topic in (name, f"{name}-markers"):
        assert kafka.is_settled(topic)


# --- crashes ---
RECORDS = [f"{partition}-{n}" for partition in range(3) for n in range(12)]


class Crashing(MapFunction):
    def map(self, value):
        crash_point("mapping")
        return value.upper()


BEFORE, INSIDE, BEHIND = "before a transaction", "in the middle of a transaction", "behind a transaction"


class Deaths(list):
    """The transactions, by number, that the process does not survive, and where it dies."""

    def __init__(self):
        self.number = 0

    def step(self, what):
        crashes._durable(what)
        self.number += what == BEFORE
        if (self.number, what) in self:
            self.remove((self.number, what))
            raise crashes.Crash(what)


@pytest.fixture
def deaths(monkeypatch):
    """The process may die before, in the middle of and behind every transaction."""
    made = Deaths()
    write, end = OriginCommitter._write, OriginCommitter._again_while_told

    def crashing_write(self, committables, ids):
        made.step(BEFORE)
        write(self, committables, ids)
        made.step(BEHIND)

    def crashing_end(self, action):
        self._sending.producer.flush(10)
        made.step(INSIDE)
        end(self, action)

    monkeypatch.setattr(OriginCommitter, "_write", crashing_write)
    monkeypatch.setattr(OriginCommitter, "_again_while_told", crashing_end)
    logging.disable(logging.WARNING)
    yield made
    logging.disable(logging.NOTSET)


def run(kafka, topic, seed, steps=None):
    out = f"{topic}-{seed}"
    kafka.create_topic(out, 2)

    def build(environment):
        environment.set_parallelism(2)
        source = strings(kafka, topic).set_property("fetch.wait.max.ms", "5").build()
        stream = environment.from_source(source, WatermarkStrategy.no_watermarks(), "Kafka").uid("source")
        upper = stream.map(Crashing()).uid("upper")
        upper.sink_to(exactly_once(kafka, out)).uid("kafka")
        upper.sink_to(StoreSink("store")).uid("store")

    outcome = simulate(build, seed, steps=steps)
    expected = sorted(text.upper() for text in RECORDS)
    assert sorted(kafka.values(out)) == expected, (seed, outcome.crashes)
    assert sorted(outcome.store.visible("store")) == expected, (seed, outcome.crashes)
    assert_nothing_hangs(kafka, out)
    return outcome


@pytest.fixture(scope="module")
def filled(kafka):
    topic = "crashes-in"
    kafka.create_topic(topic, 3)
    for partition in range(3):
        kafka.send(topic, [text for text in RECORDS if text.startswith(f"{partition}-")], partition)
    return topic


def test_crashes_anywhere_change_nothing(kafka, filled, deaths):
    steps = run(kafka, filled, 0).steps
    outcomes = [run(kafka, filled, seed, steps) for seed in range(1, 10)]
    assert sum(len(outcome.crashes) for outcome in outcomes) >= 6


@pytest.mark.parametrize("where", [BEFORE, INSIDE, BEHIND])
def test_crashes_around_transactions_change_nothing(kafka, filled, deaths, where):
    deaths.extend([(1, where), (2, where), (4, where)])
    run(kafka, filled, f"around-{where.replace(' ', '-')}")
    assert len(deaths) < 2


@pytest.mark.soak
def test_many_crashes_change_nothing(kafka, filled, deaths):
    steps = run(kafka, filled, 1000).steps
    for seed in range(1001, 1301):
        run(kafka, filled, seed, steps)
