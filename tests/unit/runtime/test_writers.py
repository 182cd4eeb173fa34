"""Writers of an exchange, driven by themselves: targets, turns, counts and the names of bad keys."""

import threading

import pytest

from penstock.api.functions.key_selectors import ColumnKeys, key_selector
from penstock.api.latency_marker import LatencyMarker
from penstock.common import Row, Types
from penstock.engine.exchange import writers
from penstock.engine.exchange.frames import FRAME_RECORDS, deliver
from penstock.engine.exchange.writers import (
    BroadcastWriter,
    CustomWriter,
    KeyCheck,
    KeyGroupWriter,
    Owner,
    RoundRobinWriter,
    ShuffleWriter,
    SingleWriter,
    Writer,
)
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk
from penstock.engine.records.failures import OperatorFailed
from penstock.engine.state import key_groups

OWNER = Owner("key_by of Sum", "sum")
MARKER = LatencyMarker(1.0, "source", 0)


class Received:
    def __init__(self):
        self.seen = []

    def chunk(self, chunk):
        self.seen.extend(chunk.values)

    def watermark(self, timestamp):
        self.seen.append(("watermark", timestamp))

    def status(self, idle):
        self.seen.append(("status", idle))

    def end(self):
        self.seen.append(("end",))

    def marker(self, marker):
        self.seen.append(marker)


def arrived(writer):
    receivers = {}
    for target, frames in writer.take().items():
        receivers[target] = Received()
        for frame in frames:
            deliver(frame, receivers[target])
    return {target: receiver.seen for target, receiver in receivers.items()}


def columns(*numbers):
    row_type = Types.ROW_NAMED(["n"], [Types.LONG()])
    return Chunk.of(Columns.of_rows([Row(n=n) for n in numbers], None, row_type))


# --- what goes to all ---
def test_markers_go_to_the_targets_in_turn_beginning_at_the_own_number():
    writer = SingleWriter(OWNER, 1, [5, 6, 7])
    for _ in range(4):
        writer.marker(MARKER)
    assert arrived(writer) == {5: [MARKER], 6: [MARKER, MARKER], 7: [MARKER]}


def test_targets_without_frames_are_left_out():
    writer = SingleWriter(OWNER, 0, [3, 4])
    assert writer.take() == {}
    writer.chunk(Chunk([1]))
    assert arrived(writer) == {3: [1]}


def test_records_that_wait_are_counted_over_all_targets():
    writer = RoundRobinWriter(OWNER, 0, range(2))
    writer.chunk(Chunk([1, 2, 3]))
    assert writer.waiting() == 3
    writer.watermark(1)
    assert writer.waiting() == 5
    writer.take()
    assert writer.waiting() == 0 and writer.count_sent() == 3


@pytest.mark.parametrize("kind", [SingleWriter, BroadcastWriter, RoundRobinWriter, ShuffleWriter])
def test_full_frames_are_cut_between_chunks(kind):
    writer = kind(OWNER, 0, [0])
    writer.chunk(Chunk([1] * FRAME_RECORDS))
    writer.chunk(Chunk([2]))
    assert len(writer.take()[0]) == 2


@pytest.mark.parametrize("size", [1, FRAME_RECORDS], ids=["at the end of the epoch", "within a chunk"])
def test_a_record_that_cannot_be_sent_names_the_sender(size):
    writer = SingleWriter(Owner("Map", "map"), 3, [0])
    bad = ["bad", threading.Lock()]
    with pytest.raises(OperatorFailed) as raised:
        writer.chunk(Chunk([bad] * size))
        writer.take()
    failure = raised.value.failure
    assert (failure.operator, failure.uid, failure.subtask) == ("Map", "map", 3) and failure.record.startswith("['bad'")


# --- turns ---
def test_writers_without_turns_begin_at_the_first():
    writer = SingleWriter(OWNER, 2, [0])
    writer.resume(5)
    assert writer.turn() == 0


@pytest.mark.parametrize("chunk", [Chunk, lambda values: columns(*values)], ids=["values", "columns"])
def test_a_turn_continues_where_the_last_chunk_ended(chunk):
    writer = RoundRobinWriter(OWNER, 4, [10, 11, 12])
    assert writer.turn() == 1
    writer.chunk(chunk([0, 1]))
    assert writer.turn() == 0
    writer.chunk(chunk([2, 3, 4, 5]))
    assert writer.turn() == 1
    numbers = {target: [getattr(one, "n", one) for one in seen] for target, seen in arrived(writer).items()}
    assert numbers == {11: [0, 3], 12: [1, 4], 10: [2, 5]}
    writer.resume(2)
    assert writer.turn() == 2
    writer.chunk(chunk([6]))
    assert list(arrived(writer)) == [12]


# --- choices ---
@pytest.mark.parametrize("subtask", [0, 3])
def test_a_shuffle_differs_between_subtasks_and_reaches_all_targets(subtask):
    one, other = ShuffleWriter(OWNER, subtask, range(3)), ShuffleWriter(OWNER, subtask + 1, range(3))
    chunk = Chunk(list(range(60)))
    one.chunk(chunk)
    other.chunk(chunk)
    first, second = arrived(one), arrived(other)
    assert first != second and set(first) == {0, 1, 2}


@pytest.mark.parametrize("chosen", [0, 2])
def test_a_partitioner_may_choose_the_first_and_the_last(chosen):
    writer = CustomWriter(OWNER, 0, range(3), lambda key, width: chosen if width == 3 else -1, lambda value: value)
    writer.chunk(Chunk(["a"]))
    assert arrived(writer) == {chosen: ["a"]}


def test_a_partitioner_that_fails_names_the_record():
    writer = CustomWriter(OWNER, 0, range(3), lambda key, width: 6 // key, lambda value: value)
    with pytest.raises(OperatorFailed, match="ZeroDivisionError") as raised:
        writer.chunk(Chunk([3, 0, 6]))
    assert raised.value.failure.record == "0"


# --- keys ---
def test_the_owner_of_a_key_is_computed_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        writers, "key_group", lambda key, groups: asked.append(key) or key_groups.key_group(key, groups)
    )
    writer = KeyGroupWriter(OWNER, 0, range(2), lambda value: value, 128)
    for _ in range(2):
        writer.chunk(Chunk([1, 2, 1]))
    assert asked == [1, 2]


def test_the_cache_of_keys_begins_anew_when_it_is_full(monkeypatch):
    monkeypatch.setattr(writers, "_CACHED_KEYS", 3)
    writer = KeyGroupWriter(OWNER, 0, range(2), lambda value: value, 128)
    writer.chunk(Chunk([1, 2, 3]))
    assert sorted(writer._target_of) == [1, 2, 3]
    writer.chunk(Chunk([4]))
    assert sorted(writer._target_of) == [4]


@pytest.mark.parametrize("columns_of_key", [(0,), (0, 1)])
def test_rows_of_tables_go_where_their_keys_belong(columns_of_key):
    """Their keys are hashed in columns, and never become values."""
    row_type = Types.ROW_NAMED(["n", "m"], [Types.LONG(), Types.STRING()])
    rows = [Row(n=n % 17, m=str(n)) for n in range(100)]
    by_column = KeyGroupWriter(OWNER, 0, range(3), ColumnKeys(columns_of_key), 128)
    by_column.chunk(Chunk.of(Columns.of_rows(rows, None, row_type)))
    key_of = (lambda row: row[0]) if columns_of_key == (0,) else (lambda row: (row[0], row[1]))
    by_value = KeyGroupWriter(OWNER, 0, range(3), key_of, 128)
    by_value.chunk(Chunk(rows))
    found = arrived(by_column)
    assert set(found) == {0, 1, 2} and found == arrived(by_value)


def test_an_error_of_the_key_selector_is_its_own():
    class Awkward:
        """Can be asked for its key only once."""

        key = 1

    def key_of(value):
        key, value.key = value.key, None
        if key is None:
            raise ValueError("asked twice")
        return [key]

    writer = KeyGroupWriter(OWNER, 0, range(2), key_of, 128)
    with pytest.raises(OperatorFailed, match="unhashable"):
        writer.chunk(Chunk([Awkward()]))
    for error in (TypeError("no key"), ValueError("unhashable")):
        calls = iter(range(9))

        def fails(value, error=error, calls=calls):
            if next(calls) == 0:
                raise error
            return 1  # asked again, it would have a key

        writer = KeyGroupWriter(OWNER, 0, range(2), fails, 128)
        with pytest.raises(OperatorFailed, match=rf"{type(error).__name__}: {error}"):
            writer.chunk(Chunk([1]))


# --- keys that need no exchange ---


def check(key_of):
    receiver = Received()
    return KeyCheck(OWNER, receiver, key_of), receiver


def test_each_key_is_checked_once(monkeypatch):
    asked = []
    monkeypatch.setattr(writers, "stable_hash", lambda key: asked.append(key) or key_groups.stable_hash(key))
    monkeypatch.setattr(writers, "_CACHED_KEYS", 3)
    checking, receiver = check(lambda value: value)
    checking.chunk(Chunk([1, 2, 1]))
    checking.chunk(Chunk([2, 3]))
    checking.chunk(Chunk([1]))
    assert asked == [1, 2, 3]
    checking.chunk(Chunk([4]))
    checking.chunk(Chunk([1]))
    assert asked == [1, 2, 3, 4, 1] and receiver.seen == [1, 2, 1, 2, 3, 1, 4, 1]


@pytest.mark.parametrize("key_of", [key_selector("n"), lambda row: row["n"]], ids=["column", "function"])
def test_columns_are_passed_on_as_they_are(key_of):
    checking, _ = check(key_of)
    given, passed = columns(0, 1), []
    checking._receiver.chunk = passed.append
    checking.chunk(given)
    assert passed == [given]


def test_rows_are_made_only_where_the_key_is_no_column():
    checking, _ = check(key_selector("n"))
    checking._receiver.chunk = lambda chunk: None
    given = columns(0, 1)
    checking.chunk(given)
    with pytest.raises(AttributeError):
        object.__getattribute__(given, "values")


@pytest.mark.parametrize("key", [[1], 1.5 + 0j, float("nan")])
def test_a_value_that_is_no_key_is_named(key):
    checking, receiver = check(lambda value: value)
    with pytest.raises(OperatorFailed, match="cannot be a key") as raised:
        checking.chunk(Chunk([1, key]))
    failure = raised.value.failure
    assert (failure.operator, failure.uid, failure.subtask, failure.record) == (*OWNER, 0, repr(key))
    assert receiver.seen == []


def test_everything_else_passes_the_check():
    checking, receiver = check(lambda value: value)
    checking.watermark(1)
    checking.status(True)
    checking.marker(MARKER)
    checking.end()
    assert receiver.seen == [("watermark", 1), ("status", True), MARKER, ("end",)]
    assert not isinstance(checking, Writer)
