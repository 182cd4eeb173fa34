"""What everyone sends everyone arrives, directly or through a hub; nobody waits for ever, and nothing piles up."""

import random
import socket
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, Future, wait

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.links import links, mesh
from penstock.spark.links.links import LinkLost, Tag
from penstock.spark.links.mesh import Hub, Mesh, Spoke, mesh_of

MANY = mesh.FEW_SLOTS + 1
SLOTS = [2, mesh.FEW_SLOTS, MANY, MANY + 3]
SECONDS = 60  # after which a test is taken to hang
LARGE = mesh.MOST_RIDING + 1
NOW = Tag(4, 7, 0)


def directly(own, peers):
    return Mesh(peers)


def through_hub(own, peers):
    """Small meshes use a hub, too."""
    return Hub(peers) if own == len(peers) else Spoke(peers)


def meshes(number, make=mesh_of):
    """The links of all slots, with so little room in them that large messages must be read while they are sent."""
    sockets = {}
    for left in range(number):
        for right in range(left + 1, number):
            pair = sockets[left, right], sockets[right, left] = socket.socketpair()
            for sock in pair:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return [make(own, {peer: sockets[own, peer] for peer in range(number) if peer != own}) for own in range(number)]


def in_thread(run, *arguments):
    """The coming result of a function, in a thread that keeps nobody from ending if it hangs."""
    result = Future()

    def outcome():
        try:
            result.set_result(run(*arguments))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=outcome, daemon=True).start()
    return result


def in_threads(number, run):
    """The results of all slots, each in a thread of its own."""
    results = [in_thread(run, own) for own in range(number)]
    wait(results, SECONDS, FIRST_EXCEPTION)
    for result in sorted(results, key=Future.done, reverse=True):  # one that failed says more than one that hangs
        result.result(0)
    return [result.result() for result in results]


def test_only_many_slots_have_a_hub():
    kinds = {number: [type(one) for one in meshes(number)] for number in SLOTS}
    assert kinds[2] == [Mesh] * 2 and kinds[mesh.FEW_SLOTS] == [Mesh] * mesh.FEW_SLOTS
    assert kinds[MANY] == [Spoke] * (MANY - 1) + [Hub]


# --- everything arrives ---
SIZES = st.sampled_from([0, 0, 0, 1, 100, LARGE - 1, LARGE, 70_000, 300_000])


@st.composite
def traffic(draw):
    """By stage, sender and receiver, what is sent: much, little or nothing."""
    number = draw(st.integers(2, 7))
    usual = draw(st.sampled_from([st.just(0), SIZES, st.just(LARGE)]))
    sizes = draw(st.lists(st.lists(usual, min_size=number**2, max_size=number**2), min_size=1, max_size=4))
    noise = random.Random(draw(st.integers(0, 1000)))
    return [
        [[noise.randbytes(size) for size in stage[i : i + number]] for i in range(0, number**2, number)]
        for stage in sizes
    ]


def exchanged(number, make, stages):
    made = meshes(number, make)

    def run(own):
        return [made[own].exchange(Tag(0, 0, stage), sent[own]) for stage, sent in enumerate(stages)]

    try:
        return in_threads(number, run)
    finally:
        for one in made:
            one.close()


@given(traffic())
@settings(max_examples=60, deadline=None)
def test_through_a_hub_comes_what_comes_directly(stages):
    number = len(stages[0])
    found = exchanged(number, through_hub, stages)
    assert found == exchanged(number, directly, stages)
    for own, seen in enumerate(found):
        assert seen == [[sent[peer][own] for peer in range(number) if peer != own] for sent in stages]


@pytest.mark.parametrize("number", SLOTS)
@pytest.mark.parametrize("size", [10, 200_000])
def test_all_send_at_once_and_nobody_waits_for_ever(number, size):
    rounds = 3
    made = meshes(number)

    def run(own):
        seen = []
        for stage in range(rounds):
            outgoing = [bytes([own, peer, stage]) * size for peer in range(number)]
            seen.append([bytes(message[:3]) for message in made[own].exchange(Tag(0, 0, stage), outgoing)])
        return seen

    for own, seen in enumerate(in_threads(number, run)):
        others = [peer for peer in range(number) if peer != own]
        assert seen == [[bytes([peer, own, stage]) for peer in others] for stage in range(rounds)]


def test_what_is_small_needs_only_the_links_to_the_hub():
    made = meshes(MANY)
    for one in made[:-1]:
        for peer in range(MANY - 1):
            if peer in one._inlets:
                one._inlets[peer].sock.close()
    outgoing = [bytes([peer]) * 100 for peer in range(MANY)]
    for own, seen in enumerate(in_threads(MANY, lambda own: made[own].exchange(Tag(0, 0, 0), outgoing))):
        assert seen == [outgoing[own]] * (MANY - 1)


def test_what_is_large_only_is_announced_to_the_hub():
    first, *_ = meshes(MANY)
    outgoing = [b"", b"x" * mesh.MOST_RIDING, *[b"x" * LARGE] * (MANY - 2)]
    assert first._letter(outgoing) == {1: outgoing[1]} | dict.fromkeys(range(2, MANY))


# --- a slot that is slow ---
@pytest.mark.parametrize("number", SLOTS)
@pytest.mark.parametrize("slow", [0, -1], ids=["first", "last, the hub of many"])
@pytest.mark.parametrize("size", [10, 1_000_000])
def test_nobody_gets_more_than_one_message_ahead_of_a_slow_slot(number, slow, size):
    made = meshes(number)
    slow %= number
    stages, outgoing = 4, [b"x" * size] * number
    begun = [threading.Semaphore(0) for _ in made]
    behind = [0]

    def run(own):
        for stage in range(stages):
            assert stage <= behind[0], "ahead of the slow slot"
            begun[own].release()
            made[own].exchange(Tag(0, 0, stage), outgoing)

    fast = [own for own in range(number) if own != slow]
    others = [in_thread(run, own) for own in fast]
    for stage in range(stages):
        for own in fast:
            assert begun[own].acquire(timeout=SECONDS)
        time.sleep(0.02)  # for someone to get ahead
        behind[0] = stage + 1
        seen = in_thread(made[slow].exchange, Tag(0, 0, stage), outgoing).result(SECONDS)
        assert [len(one) for one in seen] == [size] * (number - 1)
    for other in others:
        other.result(SECONDS)


def test_a_slot_that_waits_for_a_slow_one_costs_no_processor_time():
    """Another slot has sent this stage's message and more, which must not wake the one that waits."""
    made = meshes(3)

    def processor_seconds():
        began = time.thread_time()
        made[0].exchange(NOW, [b"", b"small", b"x" * 20_000])
        return time.thread_time() - began

    for receiver in (0, 2):
        inject(made[1], receiver, NOW)
    spent = in_thread(processor_seconds)
    time.sleep(0.3)  # until the first message has been read
    inject(made[1], 0, NOW._replace(stage=1))
    time.sleep(1)
    in_thread(made[2].exchange, NOW, [b"late"] * 3).result(SECONDS)
    assert spent.result(SECONDS) < 0.05


# --- links that are lost, and messages out of place ---
def ends(made, body=b"small", gone=None):
    """How an exchange ends in each slot but one; whoever fails lets go of its links, as at the end of an attempt."""

    def run(own):
        if own == gone:
            return None
        try:
            made[own].exchange(NOW, [body] * len(made))
        except LinkLost as lost:
            made[own].close()
            return str(lost)
        return "well"

    return in_threads(len(made), run)


def inject(one, peer, tag, length=3):
    """Let a slot send a message that it should not send, or only its beginning."""
    one._inlets[peer].sock.send(links._HEADER.pack(length, *tag) + b"old")


@pytest.mark.parametrize("body", [b"small", b"x" * LARGE, b"x" * 1_000_000], ids=["small", "large", "huge"])
@pytest.mark.parametrize("number", SLOTS)
@pytest.mark.parametrize("lost", [0, -1], ids=["first", "last, the hub of many"])
def test_a_slot_that_is_gone_is_named(number, lost, body):
    made = meshes(number)
    made[lost].close()
    lost %= number
    said = ends(made, body, gone=lost)
    said.pop(lost)
    assert any(text.startswith(f"the link to slot {lost}: ") for text in said)
    assert "well" not in said


def test_everyone_names_a_hub_that_is_gone():
    made = meshes(MANY)
    made[-1].close()
    assert all(said.startswith(f"the link to slot {MANY - 1}: ") for said in ends(made, gone=MANY - 1)[:-1])


def test_a_letter_that_is_cut_off_is_no_letter():
    made = meshes(MANY)
    inject(made[1], MANY - 1, NOW, length=1000)
    made[1].close()
    said = ends(made, gone=1)
    assert said[-1] == "the link to slot 1: the connection ended in the middle of a message"


@pytest.mark.parametrize("old", [Tag(3, 7, 0), Tag(4, 6, 0), Tag(4, 7, 1)], ids=["attempt", "epoch", "stage"])
@pytest.mark.parametrize(
    ("sender", "receiver", "body"),
    [(1, MANY - 1, b"small"), (MANY - 1, 1, b"small"), (1, 0, b"x" * LARGE)],
    ids=["a letter to the hub", "a letter from the hub", "what comes directly"],
)
def test_a_message_out_of_place_ends_the_exchange(sender, receiver, body, old):
    made = meshes(MANY)
    inject(made[sender], receiver, old)
    said = ends(made, body)
    assert said[receiver] == f"the link to slot {sender}: it sent {old} instead of {NOW}"


def test_a_message_of_another_attempt_ends_the_exchange_of_two():
    one, other = meshes(2)
    in_thread(one.exchange, Tag(3, 0, 0), [b"", b"old"])
    with pytest.raises(LinkLost, match=r"slot 0: it sent Tag\(attempt=3.* instead of Tag\(attempt=4"):
        in_thread(other.exchange, Tag(4, 0, 0), [b"new", b""]).result(SECONDS)
    other.close()
