"""Links: who is let in, whole messages whatever their size, nobody waits for ever, and nothing piles up."""

import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from penstock.spark.links import door as entry
from penstock.spark.links import links
from penstock.spark.links.door import Door, Listener
from penstock.spark.links.encryption import encrypt, new_identity
from penstock.spark.links.handshake import Guest, Host
from penstock.spark.links.links import Inlet, LinkLost, Tag, connect, has_news, limit_silence, receive, send
from penstock.spark.slots import worker
from tests.waiting import until

SECRET = b"of this attempt"
ALLOWS_NETWORKS = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture(params=["path", "network", "encrypted"])
def door(request):
    """A door whose guests come by path, or over the network as from another machine, with or without encryption."""
    identity = new_identity() if request.param == "encrypted" else None
    listener = Listener(SECRET, None if request.param == "path" else "127.0.0.1", identity=identity)
    if request.param != "path":
        listener.address = replace(listener.address, machine="another")
    opened = Door(listener)
    opened.identity = identity
    yield opened
    opened.close()


def visit(door, secret=SECRET, said=b"hello"):
    made = connect(door.address, secret, getattr(door, "identity", None))
    send(made, Tag(1, 2, 3), said)
    return made


def pair():
    one, other = socket.socketpair()
    for sock in (one, other):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return one, other


# --- who is let in ---
def test_a_guest_who_knows_the_secret_is_heard(door):
    made = visit(door, said=b"slot 7")
    said, accepted = door.guest(60)
    assert said == b"slot 7"
    send(accepted, Tag(4, 5, 6), b"order")
    assert receive(made) == (Tag(4, 5, 6), b"order")
    for sock in (made, accepted):
        sock.close()


def test_a_wrong_secret_is_refused_on_both_sides(door):
    with pytest.raises(LinkLost, match="does not know the secret"):
        visit(door, secret=b"of another attempt")
    assert door.guest(0.2) is None


def test_strangers_who_say_nothing_or_nonsense_keep_nobody_waiting(door, monkeypatch):
    """The first one is still being waited for when a guest is let in who came later."""
    monkeypatch.setattr(entry, "HANDSHAKE_SECONDS", 600)
    strangers = [stranger_at(door) for _ in range(3)]
    strangers[1].sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
    strangers[2].close()
    visit(door).close()
    said, accepted = door.guest(60)
    assert said == b"hello"
    accepted.close()
    assert door.guest(0.1) is None
    for stranger in strangers:
        stranger.close()


def test_strangers_cost_no_threads_and_keep_nobody_out(door, monkeypatch):
    monkeypatch.setattr(entry, "HANDSHAKE_SECONDS", 600)
    monkeypatch.setattr(entry, "MOST_STRANGERS", 20)
    before = threading.active_count()
    strangers = [stranger_at(door) for _ in range(60)]
    until(lambda: len(door._applicants) == 20)
    assert threading.active_count() <= before  # threads of earlier tests may end meanwhile
    made = visit(door)
    said, accepted = door.guest(60)
    assert said == b"hello"
    strangers[0].settimeout(60)
    while strangers[0].recv(100):
        pass
    for sock in (made, accepted, *strangers):
        sock.close()


def test_a_stranger_who_says_a_little_now_and_then_is_shown_out(door, monkeypatch):
    """The time limit is for the whole handshake, and not for each byte of it."""
    monkeypatch.setattr(entry, "HANDSHAKE_SECONDS", 3)
    stranger = stranger_at(door)
    began = time.monotonic()
    with pytest.raises(OSError):
        while time.monotonic() < began + 300:
            stranger.sendall(b"\x16" if door.identity else b"x")
            time.sleep(0.3)
    stranger.close()
    assert door.guest(0.1) is None


def test_a_proof_is_good_for_one_role_and_one_challenge():
    host, other = Host(SECRET), Host(SECRET)
    guest = Guest(SECRET, host.challenge)
    assert other.answer(guest.reply) is None, "a reply that was overheard is of no use"
    proof = host.answer(guest.reply)
    assert proof is not None and guest.trusts(proof)
    assert not guest.trusts(guest.reply[-len(proof) :]), "its own proof sent back proves nothing"
    assert Host(b"of another attempt").answer(guest.reply) is None


def test_a_stranger_who_says_nothing_is_shown_out(door, monkeypatch):
    monkeypatch.setattr(entry, "HANDSHAKE_SECONDS", 1)
    stranger = stranger_at(door)
    stranger.settimeout(60)
    while stranger.recv(100):
        pass
    stranger.close()
    assert door.guest(0.1) is None


@pytest.fixture
def encrypted_pair():
    """The two ends of an encrypted connection."""
    identity = new_identity()
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as other_side:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
        far = other_side.submit(encrypt, accepted, identity, True, 60)
        yield encrypt(client, identity, False, 60), far.result()


def test_much_goes_both_ways_at_once_through_an_encrypted_link(encrypted_pair):
    one, other = encrypted_pair
    there, back = os.urandom(5_000_000), os.urandom(7_000_000)
    with ThreadPoolExecutor(2) as senders:
        senders.submit(send, one, Tag(1, 2, 3), there)
        senders.submit(send, other, Tag(4, 5, 6), back)
        assert receive(other) == (Tag(1, 2, 3), there)
        assert receive(one) == (Tag(4, 5, 6), back)


def test_the_end_of_an_encrypted_link_is_seen_after_everything_before_it(encrypted_pair):
    one, other = encrypted_pair
    send(one, Tag(1, 2, 3), b"last words" * 100_000)
    one.close()
    assert receive(other) == (Tag(1, 2, 3), b"last words" * 100_000)
    with pytest.raises(LinkLost):
        receive(other)


def test_last_words_are_on_their_way_before_the_process_ends(encrypted_pair):
    one, other = encrypted_pair
    with ThreadPoolExecutor(1) as reader:
        heard = reader.submit(receive, other)
        send(one, Tag(1, 2, 3), b"farewell" * 100_000)
        links.say_farewell(one)
        assert not one._tunnel.is_alive(), "nothing is left to be sent"
        assert heard.result(60) == (Tag(1, 2, 3), b"farewell" * 100_000)


def test_who_has_another_certificate_learns_nothing(monkeypatch):
    door = Door(Listener(SECRET, "127.0.0.1", identity=new_identity()))
    monkeypatch.setattr(links, "this_machine", lambda: "another")
    for stranger in (new_identity(), None):
        with pytest.raises(LinkLost):
            receive(connect(door.address, SECRET, stranger))
    assert door.guest(0.2) is None
    door.close()


def test_what_is_said_over_an_encrypted_link_cannot_be_read_on_the_way(monkeypatch):
    """A proxy between the two sees everything that passes, and the words are not in it."""
    identity, seen = new_identity(), bytearray()
    door = Door(Listener(SECRET, "127.0.0.1", identity=identity))
    monkeypatch.setattr(links, "this_machine", lambda: "another")
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def overhear():
            near, _ = proxy.accept()
            far = socket.create_connection((door.address.host, door.address.port))
            ways = [threading.Thread(target=carry, args=way) for way in ((near, far), (far, near))]
            for way in ways:
                way.start()

        def carry(source, target):
            while data := source.recv(65536):
                seen.extend(data)
                target.sendall(data)

        threading.Thread(target=overhear, daemon=True).start()
        on_the_way = replace(door.address, port=proxy.getsockname()[1])
        made = connect(on_the_way, SECRET, identity)
        send(made, Tag(1, 2, 3), b"attack at dawn")
        assert door.guest(60)[0] == b"attack at dawn"
        made.close()
    door.close()
    assert len(seen) > 1000 and b"attack" not in seen


def stranger_at(door):
    address = door.address
    kind, where = (socket.AF_INET, (address.host, address.port)) if address.port else (socket.AF_UNIX, address.path)
    stranger = socket.socket(kind, socket.SOCK_STREAM)
    stranger.connect(where)
    return stranger


def test_a_long_path_for_temporary_files_is_no_hindrance(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    door = Door(Listener(SECRET))
    visit(door).close()
    assert door.guest(60) is not None
    door.close()


def test_nobody_is_let_in_by_a_closed_door():
    door = Door(Listener(SECRET))
    address = door.address
    door.close()
    assert not os.path.exists(address.path)
    with pytest.raises((LinkLost, OSError)):
        connect(address, SECRET)


def test_the_end_of_a_guest_is_news(door):
    made = visit(door)
    _, accepted = door.guest(60)
    send(accepted, Tag(4, 5, 6), b"go on")
    receive(made)
    assert not has_news(accepted)
    made.close()
    until(lambda: has_news(accepted))
    accepted.close()


# --- whole messages ---
@pytest.mark.parametrize("size", [0, 1, 4096, links._AT_ONCE - 1, links._AT_ONCE, 3 * links._AT_ONCE + 7])
def test_a_message_of_any_size_arrives_whole(size):
    one, other = pair()
    body = os.urandom(min(size, 1024)) * (size // 1024 + 1)
    body = body[:size]
    with ThreadPoolExecutor(1) as sender:
        sender.submit(send, one, Tag(1, 2, 3), body)
        assert receive(other) == (Tag(1, 2, 3), body)


def test_a_link_that_is_cut_in_the_middle_of_a_message_is_lost():
    one, other = pair()
    one.sendall(links._HEADER.pack(1000, 1, 2, 3) + b"half of it")
    one.close()
    with pytest.raises(LinkLost, match="in the middle of a message"):
        receive(other)


def test_a_length_that_cannot_be_is_refused():
    one, other = pair()
    one.sendall(links._HEADER.pack(1 << 50, 1, 2, 3))
    with pytest.raises(LinkLost, match="cannot have"):
        receive(other)


def test_who_receives_takes_nothing_of_the_next_message():
    one, other = pair()
    send(one, Tag(1, 1, 1), b"first")
    send(one, Tag(1, 1, 2), b"second")
    assert receive(other) == (Tag(1, 1, 1), b"first")
    assert receive(other) == (Tag(1, 1, 2), b"second")


@pytest.mark.parametrize("sizes", [(0, 0, 5), (70_000, 3), (3, 70_000, 3), (32, 33, 90_000, 0)])
def test_an_inlet_keeps_what_comes_behind_a_message(sizes):
    one, other = pair()
    other.setblocking(False)
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    inlet = Inlet(other)
    with ThreadPoolExecutor(1) as sender:
        sender.submit(lambda: [send(one, Tag(1, 1, number), body) for number, body in enumerate(bodies)])
        for number, body in enumerate(bodies):
            while not inlet.read():
                pass
            assert inlet.message() == (Tag(1, 1, number), body)
    assert not inlet.read()


@pytest.mark.parametrize("cut", [1, 31, 32, 40])
def test_an_inlet_puts_together_what_comes_in_pieces(cut):
    one, other = pair()
    other.setblocking(False)
    whole = struct.pack("!Qqqq", 20, 1, 2, 3) + b"x" * 20
    inlet = Inlet(other)
    one.sendall(whole[:cut])
    assert not inlet.read()
    one.sendall(whole[cut:])
    assert inlet.read() and inlet.message() == (Tag(1, 2, 3), b"x" * 20)


# --- where and how ---
def test_an_address_travels():
    address = links.Address("machine", "/path", "host", 7)
    assert pickle.loads(pickle.dumps(address)) == address


def test_a_machine_that_is_gone_without_a_word_is_noticed(door):
    made = visit(door)
    limit_silence(made, 30)
    if made.family == socket.AF_INET:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
    made.close()


PARTITION = """
import fcntl, socket, struct, sys
from penstock.spark.links.links import Inlet, LinkLost, Tag, limit_silence, send

def set_loopback(up):
    SIOCSIFFLAGS, IFF_UP = 0x8914, 1
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP if up else 0))

set_loopback(True)
listening = socket.create_server(("127.0.0.1", 0))
ours = socket.create_connection(listening.getsockname())
theirs, _ = listening.accept()
for sock in (ours, theirs):
    limit_silence(sock, 2)
send(ours, Tag(1, 2, 3), b"before")
assert Inlet(theirs).read()
set_loopback(False)
if sys.argv[1] == "sender":
    send(ours, Tag(1, 3, 3), b"lost")
try:
    Inlet(ours).read()
except LinkLost as lost:
    print(lost)
"""


@pytest.mark.parametrize("role", ["sender", "waiter"])
@pytest.mark.skipif(not ALLOWS_NETWORKS, reason="this system allows no networks of one's own (unshare -rn)")
def test_a_link_between_hosts_that_cannot_reach_each_other_is_lost(role):
    """In a network of its own, which then carries nothing any more. Without a limit this takes a quarter of an hour."""
    ended = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", PARTITION, role], capture_output=True, text=True, timeout=300
    )
    assert "its host acknowledges nothing" in ended.stdout, ended.stderr


# --- a slot's process ---
def test_an_order_of_an_earlier_attempt_ends_the_slot():
    door = Door(Listener(SECRET))
    invitation = worker.Invitation(
        job_id="job", attempt=4, slots=1, secret=SECRET, driver=door.address, on_network=False, silence=60
    )
    task = threading.Thread(target=worker._fork_slot, args=(invitation, 0), daemon=True)
    task.start()
    guests = [door.guest(60) for _ in range(3)]
    control = next(sock for said, sock in guests if pickle.loads(said).kind == worker.CONTROL)
    send(control, Tag(3, 0, -1), worker.RELEASE)
    with pytest.raises(LinkLost, match="closed"):
        receive(control)
    task.join(60)
    assert not task.is_alive()
    door.close()
