"""Clients over TCP: every kind of state, many keys, pages; and clients that do not keep to the protocol."""

import json
import socket
import struct
import threading

import pytest

from penstock.common import Configuration, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.engine.queryable import server as serving
from penstock.engine.queryable import wire
from penstock.errors import (
    AccessDenied,
    ConfigurationError,
    QueryError,
    QueryTimeout,
    StateUnavailable,
    TypeMismatch,
    UnknownJob,
    UnknownKey,
    UnknownState,
    UnsupportedKey,
    UnsupportedOperation,
)
from penstock.queryable import QueryableStateClient, QueryRequest
from penstock.service.launch.submission import with_defaults
from penstock.testing import InProcessCluster, in_process, scripted
from tests.model.queryable_parts import EveryKind
from tests.waiting import until

TOKEN = "only for friends"
RECORDS = [
    *(("a", kind, number) for kind in ("value", "list", "map", "reducing", "aggregating") for number in (1, 5, 3)),
    *((f"k{number}", "value", number) for number in range(30)),
    (("t", 1), "value", {"deep": [1, (2.5, None)]}),
]


class Held(InProcessCluster):
    """Does not end an epoch while it is held."""

    def __init__(self):
        super().__init__()
        self.free = threading.Event()
        self.free.set()

    def run(self, command):
        assert self.free.wait(60)
        return super().run(command)


def configuration(**options):
    made = Configuration()
    for name, value in {"enable": "true", "proxy.ports": "0", **options}.items():
        made.set_string(f"queryable-state.{name}", value)
    return made


def start(cluster=None, **options):
    environment = StreamExecutionEnvironment(configuration(**options)).set_parallelism(2).set_buffer_timeout(1)
    numbers = scripted(environment, *RECORDS, stay=True).key_by(lambda record: record[0])
    numbers.process(EveryKind()).discard()
    with with_defaults(cluster=lambda settings, deployment: cluster or InProcessCluster()):
        return environment.execute_async()


@pytest.fixture(scope="module")
def job():
    with in_process():
        started = start(token=TOKEN)
    until(lambda: len(started._job.queryable_states()) == 5)
    until(lambda: ("t", 1) in started.query(QueryRequest("q-value")).result(60).values())
    yield started
    started.cancel().result()


@pytest.fixture
def client(job):
    with QueryableStateClient(*job.get_queryable_state_address(), token=TOKEN) as client:
        yield client


@pytest.fixture
def raw(job):
    """A connection that has been greeted."""
    with socket.create_connection(job.get_queryable_state_address(), timeout=60) as made:
        yield made, receive(made)


def receive(sock):
    """A whole message; None when the other side has closed."""
    head = sock.recv(4, socket.MSG_WAITALL)
    return json.loads(sock.recv(struct.unpack("!I", head)[0], socket.MSG_WAITALL)) if head else None


# --- what is found ---
def test_every_kind_of_state(client, job):
    def state(kind):
        return client.get_kv_state(job.get_job_id(), f"q-{kind}", "a", Types.STRING()).result(60)

    assert state("value").value() == 3
    assert state("list").get() == [1, 5, 3] and list(state("list")) == [1, 5, 3]
    assert state("reducing").get() == 5 and state("aggregating").get() == 3.0
    mapped = state("map")
    assert (mapped.get(1), mapped.get(7), mapped.contains(2), mapped.is_empty()) == (1, None, True, False)
    assert sorted(mapped.items()) == [(0, 3), (1, 1), (2, 5)] and sorted(mapped) == [0, 1, 2]
    assert sorted(mapped.values()) == [1, 3, 5] and mapped[2] == 5 and 2 in mapped
    assert mapped.cut.attempt == 0 and "ReadOnlyMapState({" in repr(mapped)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("value", ["update(1)", "clear()"]),
        ("list", ["add(1)", "add_all([1])", "update([1])", "clear()"]),
        ("map", ["put(1, 1)", "put_all({})", "remove(1)", "clear()", "__setitem__(1, 1)", "__delitem__(1)"]),
        ("reducing", ["add(1)", "clear()"]),
        ("aggregating", ["add(1)", "clear()"]),
    ],
)
def test_nothing_can_be_changed(client, job, kind, changes):
    state = client.get_kv_state(job.get_job_id(), f"q-{kind}", "a").result(60)
    for change in changes:
        with pytest.raises(UnsupportedOperation, match="is a copy"):
            eval(f"state.{change}", {"state": state})


def test_many_keys_and_any_value(client, job):
    answer = client.get_many(job.get_job_id(), "q-value", ["k1", "nobody", ("t", 1)]).result(60)
    assert [entry.found for entry in answer.entries] == [True, False, True]
    assert answer.values() == {"k1": 1, ("t", 1): {"deep": [1, (2.5, None)]}}


def test_all_keys_at_once_and_in_pages(client, job):
    everything = client.get_all(job.get_job_id(), "q-value").result(60).values()
    pages = list(client.scan(job.get_job_id(), "q-value", page_size=7))
    assert [len(page.entries) for page in pages] == [7, 7, 7, 7, 4] and len({page.cut for page in pages}) == 1
    assert {key: value for page in pages for key, value in page.values().items()} == everything
    halves = [client.get_all(job.get_job_id(), "q-value", groups).result(60) for groups in ((0, 63), (64, 127))]
    assert {**halves[0].values(), **halves[1].values()} == everything
    assert all(0 < len(half.entries) < len(everything) for half in halves)


def test_states_and_many_questions_at_once(client, job):
    assert client.states(job.get_job_id())["q-map"] == "map"
    asked = [client.get_kv_state(job.get_job_id(), "q-value", f"k{number % 30}") for number in range(3000)]
    assert [future.result(60).value() for future in asked] == [number % 30 for number in range(3000)]


# --- errors ---
def test_errors_are_those_of_the_job(client, job):
    ask = client.get_kv_state
    number = job.get_job_id()
    errors = {
        UnknownJob: ask("0" * 32, "q-value", "a"),
        UnknownState: ask(number, "q-vlaue", "a"),
        UnknownKey: ask(number, "q-value", "nobody"),
        UnsupportedKey: ask(number, "q-value", [1]),
        TypeMismatch: ask(number, "q-value", 1, Types.STRING()),
        QueryError: ask(number, "q-value", "a", None, ListStateDescriptor("any")),
    }
    for kind, future in errors.items():
        assert type(future.exception(60)) is kind, future.exception()
    assert "'q-aggregating', 'q-list', 'q-map', 'q-reducing', 'q-value'" in str(errors[UnknownState].exception())
    assert str(number) in str(errors[UnknownJob].exception())
    assert "is a value state, and was looked up with a ListStateDescriptor" in str(errors[QueryError].exception())
    assert ask(number, "q-value", "a", None, ValueStateDescriptor("any")).result(60).value() == 3
    assert ask(number, "q-map", "a", None, MapStateDescriptor("any")).result(60).get(1) == 1


def test_a_job_that_does_not_come_to_a_cut():
    cluster = Held()
    with in_process():
        job = start(cluster)
    with QueryableStateClient(*job.get_queryable_state_address(), timeout=0.3) as client:
        until(lambda: client.get_kv_state(job.get_job_id(), "q-value", "a").exception(60) is None)
        cluster.free.clear()
        late = client.get_kv_state(job.get_job_id(), "q-value", "a").exception(60)
        cluster.free.set()
        if late is not None:  # the question may have come before the next epoch
            assert isinstance(late, QueryTimeout) and "has not reached the end of an epoch within 300 ms" in str(late)
        until(lambda: client.get_kv_state(job.get_job_id(), "q-value", "a").exception(60) is None)
        job.cancel().result()
        gone = until(lambda: client.get_kv_state(job.get_job_id(), "q-value", "a").exception(60))
        assert isinstance(gone, StateUnavailable | UnknownJob)
        until(
            lambda: "no server of queryable state" in str(client.get_kv_state(job.get_job_id(), "q", "a").exception(60))
        )


def test_jobs_of_one_process_share_a_server():
    with in_process():
        jobs = [start(), start()]
    first, second = (job.get_queryable_state_address() for job in jobs)
    assert first == second
    with QueryableStateClient(*first) as client:
        for job in jobs:
            until(lambda job=job: client.get_kv_state(job.get_job_id(), "q-value", "a").exception(60) is None)
        jobs[0].cancel().result()
        assert isinstance(client.get_kv_state(jobs[0].get_job_id(), "q-value", "a").exception(60), UnknownJob)
        assert client.get_kv_state(jobs[1].get_job_id(), "q-value", "a").result(60).value() == 3
    jobs[1].cancel().result()


def test_options():
    with in_process():
        taken = start()
        port = taken.get_queryable_state_address()[1]
        with pytest.raises(ConfigurationError, match=f"none of its ports can be opened: {port} .*proxy.ports"):
            start(**{"proxy.ports": str(port)})
        other = start(**{"proxy.ports": f"{port},0"})
        assert other.get_queryable_state_address()[1] not in (0, port)
        with pytest.raises(ConfigurationError, match=r"other machines can reach: set queryable-state\.token"):
            start(**{"bind-host": "0.0.0.0"})
        everywhere = start(**{"bind-host": "0.0.0.0", "token": TOKEN})
        silent = start(enable="false")
        assert everywhere.get_queryable_state_address()[0] == "0.0.0.0"
        assert silent.get_queryable_state_address() is None
        for job in (taken, other, everywhere, silent):
            job.cancel().result()
    for wrong in ("x", "-1", "70000", "9-8", ""):
        with pytest.raises(ConfigurationError, match="such as 9069"):
            StreamExecutionEnvironment(configuration(**{"proxy.ports": wrong}))


# --- strangers ---
@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_without_the_token_nothing_is_told(job, token):
    with QueryableStateClient(*job.get_queryable_state_address(), token=token) as client:
        assert isinstance(client.get_kv_state(job.get_job_id(), "q-value", "a").exception(60), AccessDenied)


def test_a_server_that_does_not_know_the_token_is_not_trusted():
    """It could answer what it likes; and it learns nothing of the token."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def pretend():
            with listening.accept()[0] as made:
                made.sendall(wire.pack({"server": wire.GREETING, "version": 1, "nonce": "n", "token": True}))
                said.append(receive(made))
                made.sendall(wire.pack({"proof": "0" * 64}))

        said = []
        thread = threading.Thread(target=pretend)
        thread.start()
        client = QueryableStateClient(*listening.getsockname(), token=TOKEN)
        error = client.get_kv_state("0" * 32, "q", "a").exception(60)
        thread.join()
    assert isinstance(error, AccessDenied) and "rejected the token" in str(error)
    assert TOKEN not in json.dumps(said)


def test_a_proof_cannot_be_used_again(job, raw):
    sock, greeting = raw
    sock.sendall(wire.pack({"nonce": "x", "proof": wire.proof(TOKEN, "client", ("another", "x"))}))
    assert receive(sock)["error"]["kind"] == "AccessDenied" and receive(sock) is None
    assert greeting["nonce"] != "another"


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xff\xff\xff",
        struct.pack("!I", wire.MOST_REQUEST_BYTES + 1),
        struct.pack("!I", 3) + b"abc",
        struct.pack("!I", 2) + b"[]",
        struct.pack("!I", 100_000) + b"[" * 100_000,
        struct.pack("!I", 4) + b"\xff\xfe\x00\x00",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=range(7),
)
def test_what_is_no_message_ends_the_connection(raw, client, job, sent):
    sock, _ = raw
    sock.sendall(sent)
    assert "error" in receive(sock) and receive(sock) is None
    assert client.states(job.get_job_id()), "others do not notice"


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"job": None},
        {"job": ["x"]},
        {"request": None},
        {"request": []},
        {"request": {"name": 3}},
        {"request": {"name": "q-value", "keys": 3}},
        {"request": {"name": "q-value", "keys": [{"t": "eval", "v": 1}]}},
        {"request": {"name": "q-value", "keys": [{"t": "dict", "v": []}]}},
        {"request": {"name": "q-value", "groups": [0]}},
        {"request": {"name": "q-value", "limit": -1}},
        {"request": {"name": "q-value", "token": "x.1"}},
        {"request": {"name": "q-value", "token": 7}},
    ],
    ids=str,
)
def test_a_strange_question_is_answered_with_an_error(job, raw, asked):
    sock, greeting = raw
    nonces = (greeting["nonce"], "mine")
    sock.sendall(wire.pack({"nonce": "mine", "proof": wire.proof(TOKEN, "client", nonces)}))
    assert receive(sock) == {"proof": wire.proof(TOKEN, "server", nonces)}
    sock.sendall(wire.pack({"id": 1, "job": str(job.get_job_id()), "timeout": "soon", **asked}))
    assert receive(sock)["error"]["message"]
    sock.sendall(wire.pack({"id": 2, "job": str(job.get_job_id()), "states": True}))
    assert receive(sock)["id"] == 2, "and the next one as usual"


def test_a_client_that_says_nothing_is_let_go(job, monkeypatch):
    monkeypatch.setattr(serving, "GREETING_SECONDS", 0.05)
    with socket.create_connection(job.get_queryable_state_address(), timeout=60) as made:
        assert receive(made)["server"] == wire.GREETING and receive(made) is None


def test_there_are_not_too_many_clients(job, client, monkeypatch):
    assert client.states(job.get_job_id())
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 1)
    with socket.create_connection(job.get_queryable_state_address(), timeout=60) as made:
        assert "clients, its maximum" in receive(made)["error"]["message"] and receive(made) is None
    assert client.states(job.get_job_id())


def test_a_client_that_leaves_its_answers_unread_does_not_hold_up_others(job, client, raw, monkeypatch):
    monkeypatch.setattr(serving, "SLOW_SECONDS", 0.2)
    sock, greeting = raw
    sock.sendall(wire.pack({"nonce": "x", "proof": wire.proof(TOKEN, "client", (greeting["nonce"], "x"))}))
    asked = {"job": str(job.get_job_id()), "request": {"name": "q-value"}}
    with pytest.raises(OSError):
        for number in range(1_000_000):  # far more than all buffers hold: it is read less and less, and cut off at last
            sock.sendall(wire.pack({"id": number, **asked}))
            if number % 1000 == 0:
                assert client.get_kv_state(job.get_job_id(), "q-value", "a").result(60).value() == 3


def test_answers_have_a_limit(job, client, monkeypatch):
    monkeypatch.setattr(wire, "MOST_MESSAGE_BYTES", 300)
    monkeypatch.setattr(wire.pack, "__defaults__", (300,))
    error = client.get_all(job.get_job_id(), "q-value").exception(60)
    assert isinstance(error, QueryError) and "above the limit of 300 bytes: ask for fewer" in str(error)
    assert len(list(client.scan(job.get_job_id(), "q-value", page_size=5))) == 7


def test_a_question_has_a_limit(job, client):
    error = client.get_many(job.get_job_id(), "q-value", ["x" * 1000] * 2000).exception(60)
    assert isinstance(error, QueryError) and "above the limit" in str(error)
    assert client.get_kv_state(job.get_job_id(), "q-value", "a").result(60).value() == 3
