"""Connections of links one call at a time: their settings, their errors, and strangers that are half known."""

import errno
import os
import selectors
import socket
import ssl
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from penstock.spark.links import door as entry
from penstock.spark.links import links
from penstock.spark.links.door import Applicant, Door, Listener
from penstock.spark.links.encryption import encrypt, new_identity
from penstock.spark.links.handshake import Guest
from penstock.spark.links.links import (
    Address,
    Inlet,
    LinkLost,
    Outlet,
    Tag,
    close_all,
    connect,
    host_towards,
    limit_silence,
    loss_of,
    receive,
    say_farewell,
    send,
    silence_of,
)
from penstock.spark.links.mesh import mesh_of
from tests.waiting import until

SECRET = b"of this attempt"
TAG = Tag(1, 2, 3)


@pytest.fixture
def network():
    """The two ends of a connection over the network, and what its listener listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far, _ = listening.accept()
        yield near, far
        near.close()
        far.close()


@pytest.fixture
def listener():
    opened = Listener(SECRET, "127.0.0.1", "127.0.0.1")
    yield opened
    opened.close()


# --- addresses ---
def test_a_listener_for_one_machine_has_no_port():
    listener = Listener(SECRET)
    path = listener.address.path
    assert listener.address == Address(links.this_machine(), path) and len(listener.sockets) == 1
    assert (listener.address.host, listener.address.port) == ("", 0)
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    assert not any(sock.getblocking() for sock in listener.sockets)
    listener.close()
    assert not os.path.exists(os.path.dirname(path))
    listener.close()


def test_a_listener_on_the_network_listens_where_it_was_told(listener):
    local, remote = listener.sockets
    assert remote.getsockname() == ("127.0.0.1", listener.address.port) and listener.address.host == "127.0.0.1"
    assert not local.getblocking() and not remote.getblocking()


@pytest.mark.skipif(not socket.has_ipv6, reason="this system has no IPv6")
def test_a_listener_may_be_bound_to_an_address_of_ipv6():
    try:
        listener = Listener(SECRET, "::1", "::1")
    except OSError:
        pytest.skip("this system has no address ::1")
    assert listener.sockets[1].family == socket.AF_INET6
    listener.close()


@pytest.mark.parametrize(
    ("usual", "writable", "chosen"),
    [("/t" * 29, True, "usual"), ("/t" * 30, True, "/tmp"), ("/t" * 30, False, "usual")],
)
def test_sockets_lie_in_a_short_folder(monkeypatch, usual, writable, chosen):
    monkeypatch.setattr(entry.tempfile, "gettempdir", lambda: usual)
    monkeypatch.setattr(entry.os, "access", lambda folder, mode: writable)
    assert entry._short_folder() == (usual if chosen == "usual" else "/tmp")


def test_the_own_address_towards_another(monkeypatch):
    address = Address("m", "/p", "127.0.0.1", 9)
    assert host_towards(address) == "127.0.0.1"

    def unknown(*_, **__):
        raise OSError("no such name")

    monkeypatch.setattr(links.socket, "getaddrinfo", unknown)
    with pytest.raises(LinkLost, match=r"127\.0\.0\.1:9 cannot be reached: no such name"):
        host_towards(address)


def test_nobody_is_heard_once_a_listener_is_closed():
    listener = Listener(SECRET, "127.0.0.1", "127.0.0.1")
    listener.close()
    assert [sock.fileno() for sock in listener.sockets] == [-1, -1]


# --- connecting ---
def test_a_path_is_preferred_on_the_same_machine(listener):
    with connect_through(listener) as made:
        assert made.family == socket.AF_UNIX


def connect_through(listener, address=None, identity=None):
    door = Door(listener)
    made = connect(address or listener.address, SECRET, identity)
    send(made, TAG, b"hello")
    assert door.guest(60) is not None
    door.close()
    return made


@pytest.mark.parametrize("change", [{"machine": "another"}, {"path": "/no/such/path"}])
def test_another_machine_is_reached_over_the_network(listener, change):
    with connect_through(listener, replace(listener.address, **change)) as made:
        assert made.family == socket.AF_INET


def test_a_path_at_which_nobody_listens():
    listener = Listener(SECRET, "127.0.0.1", "127.0.0.1")
    local, remote = listener.sockets
    local.close()
    with pytest.raises(LinkLost, match="the listener is closed"):
        links._by_path(replace(listener.address, port=0))
    assert links._by_path(listener.address) is None, "the network is left"
    remote.close()
    with pytest.raises(LinkLost, match=f"127.0.0.1:{listener.address.port} cannot be reached"):
        connect(listener.address, SECRET)
    listener.close()


@pytest.mark.parametrize("kind", ["path", "network", "encrypted"])
def test_a_connection_waits_as_long_as_it_takes_and_sends_at_once(kind):
    identity = new_identity() if kind == "encrypted" else None
    listener = Listener(SECRET, None if kind == "path" else "127.0.0.1", identity=identity)
    if kind != "path":
        listener.address = replace(listener.address, machine="another")
    door = Door(listener)
    made = connect(listener.address, SECRET, identity)
    send(made, TAG, b"hello")
    _, accepted = door.guest(60)
    for sock in (made, accepted):
        assert sock.gettimeout() is None
        own = getattr(sock, "network", sock)
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > 150_000
        if kind != "path":
            assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    # An encrypted link closes itself as soon as the other end is closed.
    made.close()
    accepted.close()
    door.close()


# --- silence ---
@pytest.mark.parametrize(
    ("seconds", "between", "millis"), [(30, 10, 30_000), (0.5, 1, 500), (4, 1, 4_000), (0.0001, 1, 1)]
)
def test_a_silent_host_is_given_up_in_time(network, seconds, between, millis):
    near, _ = network
    limit_silence(near, seconds)
    options = [socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT]
    assert [near.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [between, between, 3, millis]
    assert near.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_path_has_no_silent_host():
    near, far = socket.socketpair()
    limit_silence(near, 1)
    near.sendall(b"x")
    assert silence_of(near) == 0.0
    near.close()
    far.close()


def test_the_silence_of_a_host_is_that_of_the_kernel():
    class Told:
        def __init__(self, unacknowledged, millis):
            self.told = links._TCP_INFO.pack(unacknowledged, millis)

        def getsockopt(self, level, option, size):
            assert (level, option, size) == (socket.IPPROTO_TCP, socket.TCP_INFO, len(self.told))
            return self.told

    assert silence_of(Told(0, 5000)) == 0.0
    assert silence_of(Told(1, 5000)) == 5.0


def test_a_host_that_acknowledges_is_not_silent(network):
    near, far = network
    near.sendall(b"x")
    assert far.recv(1) == b"x"
    until(lambda: silence_of(near) == 0.0)
    near.close()
    assert silence_of(near) == 0.0


@pytest.mark.parametrize("code", [errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNRESET])
def test_a_host_that_cannot_be_reached_is_told_from_a_process_that_ended(code):
    lost = loss_of(OSError(code, "words of the system"))
    assert lost.is_unreachable is (code != errno.ECONNRESET) and "words of the system" in str(lost)
    assert str(lost).startswith("its host acknowledges nothing") is lost.is_unreachable
    assert not LinkLost("why").is_unreachable and LinkLost("why").slot is None


# --- messages ---
@pytest.mark.parametrize(
    ("sent", "why"),
    [(b"", "the connection was closed"), (b"half a header", "in the middle"), (bytes(32), "was closed")],
)
def test_where_a_connection_was_cut_off(sent, why):
    near, far = socket.socketpair()
    near.sendall(sent)
    near.close()
    inlet = Inlet(far)
    if len(sent) == 32:
        assert inlet.read() and inlet.message() == (Tag(0, 0, 0), b"")
    with pytest.raises(LinkLost, match=why):
        inlet.read()
    far.close()


@pytest.mark.parametrize("act", [lambda sock: send(sock, TAG, b"x"), lambda sock: Outlet(sock, TAG, [b"x"]).write()])
def test_a_message_to_nobody_is_a_loss(act):
    near, far = socket.socketpair()
    far.close()
    with pytest.raises(LinkLost, match="Broken pipe"):
        act(near)
    near.close()


def test_a_length_above_the_greatest_is_refused():
    inlet = Inlet(socket.socket())
    inlet._unparsed = links._HEADER.pack(links.LONGEST_BODY + 1, *TAG)
    with pytest.raises(LinkLost, match=f"a message cannot have {links.LONGEST_BODY + 1} bytes"):
        inlet.is_complete()


@pytest.mark.parametrize("size", [links._AT_ONCE - 1, links._AT_ONCE, links._AT_ONCE + 1])
def test_a_large_message_is_sent_once(size):
    near, far = socket.socketpair()
    body = b"x" * size
    with ThreadPoolExecutor(1) as sender:
        sender.submit(lambda: [send(near, TAG, one) for one in (body, b"end")])
        assert receive(far) == (TAG, body) and receive(far) == (TAG, b"end")
    near.close()
    far.close()


def test_an_outlet_sends_several_messages_in_order():
    near, far = socket.socketpair()
    bodies = [b"", b"a" * 10, b"b" * (links._READ_AHEAD - 1), b"c" * links._READ_AHEAD, b""]
    outlet = Outlet(near, TAG, bodies)
    inlet, found = Inlet(far), []
    while not outlet.write():
        assert inlet.read()
        found.append(inlet.message())
    near.close()
    while len(found) < len(bodies):
        assert inlet.read()
        found.append(inlet.message())
    assert found == [(TAG, body) for body in bodies]
    assert Outlet(near, TAG, []).write()
    far.close()


def test_an_inlet_that_may_not_read_ahead_takes_one_message():
    near, far = socket.socketpair()
    send(near, TAG, b"one")
    near.sendall(b"next")
    assert receive(far) == (TAG, b"one")
    assert far.recv(10) == b"next"
    near.close()
    far.close()


# --- the links of a slot ---
@pytest.mark.parametrize(
    ("hosts", "place"), [(["here", "there"], " on there"), (["here", ""], ""), ([], "")], ids=["known", "one", "none"]
)
def test_a_link_that_is_lost_names_slot_and_host(hosts, place):
    near, far = socket.socketpair()
    far.close()
    links_of_slot = mesh_of(0, {1: near}, hosts)
    with pytest.raises(LinkLost, match=f"the link to slot 1{place}: ") as raised:
        links_of_slot.exchange(TAG, [b"", b"message"])
    assert raised.value.slot == 1 and not raised.value.is_unreachable
    links_of_slot.close()
    assert near.fileno() == -1


def test_a_host_that_cannot_be_reached_stays_one():
    near, far = socket.socketpair()
    made = mesh_of(0, {1: near})

    def lost(tag, outgoing):
        raise LinkLost("nothing comes", is_unreachable=True)

    made._exchange = lost
    with pytest.raises(LinkLost) as raised:
        made.exchange(TAG, [b"", b""])
    assert raised.value.is_unreachable
    made.close()
    far.close()


# --- ends ---
def test_closing_ends_a_connection_that_another_holds():
    near, far = socket.socketpair()
    other = near.dup()
    far.settimeout(60)
    close_all([near, far.dup()])
    assert near.fileno() == -1 and far.recv(1) == b"" == other.recv(1)
    close_all([near])
    for sock in (far, other):
        sock.close()


def test_a_farewell_over_a_path_closes_it():
    near, far = socket.socketpair()
    near.sendall(b"last words")
    say_farewell(near)
    assert near.fileno() == -1 and far.recv(100) == b"last words"
    far.close()


# --- strangers ---
@pytest.fixture
def applicant():
    """Someone who begins a handshake, and the two ends of the connection."""
    listener = Listener(SECRET)
    near, far = socket.socketpair()
    made = listener.applicant(far)
    yield made, near, far
    listener.close()
    near.close()
    far.close()


def test_a_handshake_may_come_in_pieces(applicant):
    made, near, far = applicant
    assert not far.getblocking()
    guest = Guest(SECRET, near.recv(links.CHALLENGE_BYTES))
    assert not made.advance()
    near.sendall(guest.reply[:5])
    assert not made.advance()
    near.sendall(guest.reply[5:])
    assert not made.advance() and made.hello == b""
    assert guest.trusts(near.recv(links.PROOF_BYTES))
    send(near, TAG, b"hello")
    near.sendall(b"next")
    assert made.advance() and made.hello == b"hello" and far.getblocking()
    assert far.recv(100) == b"next"


def test_a_guest_may_say_everything_at_once(applicant):
    made, near, _ = applicant
    guest = Guest(SECRET, near.recv(links.CHALLENGE_BYTES))
    near.sendall(guest.reply)
    send(near, TAG, b"hello")
    assert made.advance() and made.hello == b"hello"


@pytest.mark.parametrize("reply", [b"", b"x" * entry.REPLY_BYTES])
def test_a_stranger_is_refused(applicant, reply):
    made, near, _ = applicant
    near.sendall(reply)
    near.shutdown(socket.SHUT_WR)
    with pytest.raises(LinkLost, match="does not know the secret" if reply else "closed"):
        made.advance()


def test_a_peer_gets_no_thread_before_it_has_shown_its_certificate():
    near, far = socket.socketpair()
    made = Applicant(far, SECRET, new_identity())
    near.sendall(b"\x16\x03\x01")
    assert not made.advance() and isinstance(made.sock, ssl.SSLSocket)
    near.setblocking(False)
    with pytest.raises(BlockingIOError):
        near.recv(links.CHALLENGE_BYTES)
    made.sock.close()
    near.close()


def test_the_time_for_a_handshake_begins_with_the_connection(applicant):
    made, *_ = applicant
    assert 0 < made.deadline - entry.time.monotonic() <= links.HANDSHAKE_SECONDS


@pytest.mark.parametrize("says", ["nothing", "half of a message"])
def test_a_peer_with_the_certificate_that_falls_silent_keeps_nobody_waiting(monkeypatch, says):
    monkeypatch.setattr(entry, "HANDSHAKE_SECONDS", 600)
    identity = new_identity()
    listener = Listener(SECRET, "127.0.0.1", "127.0.0.1", identity)
    door = Door(listener)
    address = replace(listener.address, machine="another")
    silent = encrypt(socket.create_connection((address.host, address.port)), identity, False, 60)
    guest = Guest(SECRET, links._exactly(silent, links.CHALLENGE_BYTES))
    if says != "nothing":
        silent.sendall(guest.reply)
        assert guest.trusts(links._exactly(silent, links.PROOF_BYTES))
        silent.sendall(links._HEADER.pack(5, *TAG) + b"he")
    made = connect(address, SECRET, identity)
    send(made, TAG, b"hello")
    said, accepted = door.guest(60)
    assert said == b"hello"
    for sock in (silent, made, accepted):
        sock.close()
    door.close()


def test_the_thread_of_a_door_keeps_no_process_alive():
    door = Door(Listener(SECRET))
    threads = [one for one in threading.enumerate() if one.name == "penstock door"]
    assert threads and all(one.daemon for one in threads)
    door.close()


def test_a_door_closes_what_nobody_has_fetched():
    door = Door(Listener(SECRET))
    waiting = connect(door.address, SECRET)
    send(waiting, TAG, b"hello")
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect(door.address.path)
    until(lambda: door._guests.qsize() == 1 and len(door._applicants) == 1)
    door.close()
    for sock in (waiting, stranger):
        sock.settimeout(60)
        while sock.recv(100):
            pass
        sock.close()


class Tired:
    """Listens, and has no more descriptors."""

    def __init__(self, code):
        self.code = code

    def accept(self):
        raise OSError(self.code, "no more")


@pytest.mark.parametrize(("code", "left"), [(errno.EMFILE, 1), (errno.ENFILE, 1), (errno.ECONNABORTED, 2)])
def test_the_oldest_stranger_makes_room_where_descriptors_are_short(code, left):
    door = Door.__new__(Door)
    door._selector = selectors.DefaultSelector()
    door._applicants = {}
    door._accept(Tired(code))
    ends = [socket.socketpair() for _ in range(2)]
    listener = Listener(SECRET)
    for _, far in ends:
        door._await(listener.applicant(far))
    door._accept(Tired(code))
    assert list(door._applicants) == [far for _, far in ends][2 - left :]
    assert (ends[0][1].fileno() == -1) is (left == 1)
    listener.close()
    for near, far in ends:
        near.close()
        far.close()


def test_a_stranger_is_shown_out_at_its_first_wrong_word():
    door = Door.__new__(Door)
    door._selector = selectors.DefaultSelector()
    door._applicants = {}
    listener = Listener(SECRET)
    near, far = socket.socketpair()
    door._await(listener.applicant(far))
    near.sendall(b"x" * entry.REPLY_BYTES)
    door._hear(far)
    assert door._applicants == {} and far.fileno() == -1 and not door._selector.get_map()
    listener.close()
    near.close()


def test_whoever_does_not_know_the_secret_is_left():
    near, far = socket.socketpair()
    far.sendall(b"c" * links.CHALLENGE_BYTES + b"p" * links.PROOF_BYTES)
    assert not links._shake_hands(near, SECRET) and near.fileno() == -1
    near, other = socket.socketpair()
    other.close()
    assert not links._shake_hands(near, SECRET) and near.fileno() == -1
    far.close()


def test_only_overdue_strangers_are_shown_out(monkeypatch):
    door = Door.__new__(Door)
    door._selector = selectors.DefaultSelector()
    door._applicants = {}
    listener = Listener(SECRET)
    ends = [socket.socketpair() for _ in range(3)]
    for number, (_, far) in enumerate(ends):
        applicant = listener.applicant(far)
        applicant.deadline = 100.0 + number
        door._await(applicant)
    monkeypatch.setattr(entry.time, "monotonic", lambda: 101.0)
    door._show_out()
    assert list(door._applicants) == [ends[2][1]]
    assert len(door._selector.get_map()) == 1
    listener.close()
    for near, far in ends:
        near.close()
        far.close()
