"""The exchange: nothing lost, nothing doubled, the right targets, the order of each channel kept."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.functions import Partitioner
from penstock.engine.exchange.frames import deliver
from penstock.engine.exchange.writers import (
    BroadcastWriter,
    CustomWriter,
    KeyGroupWriter,
    Owner,
    RoundRobinWriter,
    ShuffleWriter,
    SingleWriter,
)
from penstock.engine.records.elements import Chunk
from penstock.engine.records.failures import OperatorFailed
from penstock.engine.state.key_groups import key_group, subtask_for_group
from penstock.errors import UnsupportedKey
from penstock.graph.partitioning import Broadcast, Forward, Global, Rebalance, Rescale, Shuffle

OWNER = Owner("w", "u")


class Recorder:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def chunk(self, chunk):
        stamps = [None] * len(chunk) if chunk.timestamps is None else chunk.timestamps
        self.seen.extend(("record", *pair) for pair in zip(chunk.values, stamps, strict=True))

    def watermark(self, timestamp):
        self.seen.append(("watermark", timestamp))

    def status(self, idle):
        self.seen.append(("status", idle))

    def end(self):
        self.seen.append(("end",))


@st.composite
def histories(draw):
    """Chunks of numbered records, with and without timestamps, between control elements; 'take' ends an epoch."""
    history, number = [], 0
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["chunk", "chunk", "chunk", "watermark", "status", "take"]))
        if kind == "chunk":
            size = draw(st.integers(1, 7))
            stamps = draw(st.none() | st.lists(st.none() | st.integers(0, 99), min_size=size, max_size=size))
            history.append((kind, Chunk(list(range(number, number + size)), stamps)))
            number += size
        elif kind == "take":
            history.append((kind,))
        else:
            history.append((kind, draw(st.booleans()) if kind == "status" else draw(st.integers(0, 99))))
    return [*history, ("end",)]


def play(writer: Any, history: list[Any]) -> dict[int, list[Any]]:
    """What arrives at each target."""
    recorders = {target: Recorder() for target in writer.builders}
    for kind, *rest in [*history, ("take",)]:
        if kind != "take":
            getattr(writer, kind)(*rest)
            continue
        for target, frames in writer.take().items():
            for frame in frames:
                deliver(frame, recorders[target])
    return {target: recorder.seen for target, recorder in recorders.items()}


def sent(history: list[Any]) -> list[Any]:
    recorder = Recorder()
    for kind, *rest in history:
        if kind != "take":
            getattr(recorder, kind)(*rest)
    return recorder.seen


def of_kind(seen: list[Any], *kinds: str) -> list[Any]:
    return [element for element in seen if element[0] in kinds]


def check_order_and_controls(arrived: dict[int, list[Any]], history: list[Any]) -> None:
    """Each channel is the sent stream with some of its records left out."""
    for seen in arrived.values():
        mine = {element[1] for element in of_kind(seen, "record")}
        assert seen == [e for e in sent(history) if e[0] != "record" or e[1] in mine]


def check_each_once(arrived: dict[int, list[Any]], history: list[Any]) -> None:
    got = Counter(element for seen in arrived.values() for element in of_kind(seen, "record"))
    assert got == Counter(of_kind(sent(history), "record"))


def key_of(value):
    return value % 11


def choose(key, width):
    return key * 7 % width


class ChooseFunction(Partitioner):
    def partition(self, key, num_partitions):
        return choose(key, num_partitions)


def writers(subtask: int, width: int) -> dict[str, Any]:
    targets = range(width)
    return {
        "round robin": RoundRobinWriter(OWNER, subtask, targets),
        "shuffle": ShuffleWriter(OWNER, subtask, targets),
        "custom": CustomWriter(OWNER, subtask, targets, choose, key_of),
        "custom function": CustomWriter(OWNER, subtask, targets, ChooseFunction(), key_of),
        "key groups": KeyGroupWriter(OWNER, subtask, targets, key_of, 128),
        "single": SingleWriter(OWNER, subtask, [width - 1]),
    }


@pytest.mark.parametrize("name", list(writers(0, 1)))
@given(histories(), st.integers(0, 5), st.integers(1, 5))
def test_each_record_arrives_once_and_in_order(name, history, subtask, width):
    arrived = play(writers(subtask, width)[name], history)
    check_each_once(arrived, history)
    check_order_and_controls(arrived, history)


@given(histories(), st.integers(1, 4))
def test_broadcast_gives_everything_to_everyone(history, width):
    for seen in play(BroadcastWriter(OWNER, 0, range(width)), history).values():
        assert seen == sent(history)


@given(histories(), st.integers(1, 5), st.integers(0, 4))
def test_rebalance_goes_round(history, width, subtask):
    arrived = play(RoundRobinWriter(OWNER, subtask, range(width)), history)
    for target, seen in arrived.items():
        assert {(e[1] + subtask) % width for e in of_kind(seen, "record")} <= {target}


@given(histories(), st.integers(1, 5))
def test_keys_go_to_the_owner_of_their_group(history, width):
    arrived = play(KeyGroupWriter(OWNER, 0, range(width), key_of, 64), history)
    for target, seen in arrived.items():
        for _, value, _ in of_kind(seen, "record"):
            assert subtask_for_group(key_group(key_of(value), 64), 64, width) == target


@given(histories(), st.integers(1, 5))
def test_a_partitioner_is_obeyed(history, width):
    arrived = play(CustomWriter(OWNER, 0, range(width), choose, key_of), history)
    for target, seen in arrived.items():
        assert {choose(key_of(e[1]), width) for e in of_kind(seen, "record")} <= {target}


@given(histories(), st.integers(1, 4), st.integers(0, 3))
def test_a_shuffle_can_be_repeated(history, width, subtask):
    first, second = (play(ShuffleWriter(OWNER, subtask, range(width)), history) for _ in range(2))
    assert first == second


@given(st.integers(1, 9), st.integers(1, 9))
def test_who_is_connected_with_whom(upstream, downstream):
    everyone = list(range(downstream))
    for partitioning in (Rebalance(), Shuffle(), Broadcast(), Global()):
        assert all(list(partitioning.targets(s, upstream, downstream)) == everyone for s in range(upstream))
    assert [list(Forward().targets(s, upstream, upstream)) for s in range(upstream)] == [[s] for s in range(upstream)]
    shares = [list(Rescale().targets(s, upstream, downstream)) for s in range(upstream)]
    assert all(shares) and {t for share in shares for t in share} == set(everyone)
    if downstream >= upstream:
        assert sorted(t for share in shares for t in share) == everyone
    else:
        assert all(len(share) == 1 for share in shares)
    loads = Counter(t for share in shares for t in share)
    assert max(loads.values()) - min(loads.values()) <= 1
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("chosen", [-1, 3, 1.0, None, "0"])
def test_a_partitioner_out_of_range(chosen):
    writer = CustomWriter(Owner("partition_custom before Map", "u"), 0, range(3), lambda key, width: chosen, key_of)
    with pytest.raises(OperatorFailed, match=r"partition_custom before Map .* allowed are whole numbers from 0 to 2"):
        writer.chunk(Chunk([5]))


def test_a_key_without_a_hash_is_named_with_its_record():
    writer = KeyGroupWriter(Owner("key_by of Sum", "u"), 0, range(2), lambda v: [v] if v == 3 else v, 128)
    with pytest.raises(OperatorFailed) as raised:
        writer.chunk(Chunk([1, 2, 3]))
    assert raised.value.failure.known_as == UnsupportedKey.__name__
    assert raised.value.failure.record == "3"


def test_a_failed_chunk_leaves_nothing_half_written():
    writer = KeyGroupWriter(Owner("key_by", "u"), 0, range(1), lambda v: [v] if v == 3 else v, 128)
    with pytest.raises(OperatorFailed):
        writer.chunk(Chunk([1, 2, 3], [10, 20, 30]))
    recorder = Recorder()
    for frames in writer.take().values():
        for frame in frames:
            deliver(frame, recorder)
    assert recorder.seen in ([], [("record", 1, 10), ("record", 2, 20)])


@given(st.lists(st.integers(0, 300), max_size=400))
def test_the_cache_of_keys_stays_within_bounds(keys):
    from penstock.engine.exchange import writers as exchange

    before, exchange._CACHED_KEYS = exchange._CACHED_KEYS, 20
    try:
        writer = KeyGroupWriter(OWNER, 0, range(3), lambda v: v, 128)
        arrived = play(writer, [("chunk", Chunk(keys))] if keys else [])
        assert len(writer._target_of) <= 20
    finally:
        exchange._CACHED_KEYS = before
    got = Counter(e[1] for seen in arrived.values() for e in of_kind(seen, "record"))
    assert got == Counter(keys)
