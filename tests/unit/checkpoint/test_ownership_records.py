"""What owners of a job write down for each other, and what they refuse to do."""

import json
import threading
from types import SimpleNamespace

import pytest

from penstock.base.storage import Storage
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.ownership import TRIES, NoOwnership, Ownership, last_start
from penstock.engine.checkpoint.process_identity import Whereabouts
from penstock.engine.checkpoint.rules import Ending, Start
from penstock.errors import AlreadyThere, JobDisplaced, JobRunning, StorageError
from tests.waiting import until


def of(number, owner):
    return Metadata(number, 0, "job", "job", {}, [], owner=owner)


@pytest.fixture
def folder(tmp_path):
    return tmp_path.as_uri()


@pytest.fixture
def storage(folder):
    return Storage(f"{folder}/owner")


@pytest.fixture
def driver(folder):
    """Makes drivers of one job, which are gone after the test."""
    made = []

    def make(takeover=None, found_again=True, **more):
        made.append(Ownership(folder, "counting", 50_000, found_again, **more))
        if takeover is not None:
            made[-1].take(takeover)
        return made[-1]

    yield make
    for one in made:
        one.let_go()


def refuse(monkeypatch, method, *names):
    """Let calls of a storage's method fail for some files."""
    call = getattr(Storage, method)

    def refusing(self, name, *more):
        if name in names:
            raise StorageError(f"{method} {name}: Input/output error")
        return call(self, name, *more)

    monkeypatch.setattr(Storage, method, refusing)


# --- taking ---
def test_a_job_that_others_always_take_first_is_given_up(driver, monkeypatch):
    tried = []
    monkeypatch.setattr(Ownership, "_claim", lambda self, tokens: tried.append(tokens))
    with pytest.raises(JobRunning, match=f"'counting' is run by another driver: in {TRIES} attempts, another driver"):
        driver(takeover=True)
    assert len(tried) == TRIES


def test_a_job_that_another_takes_once_is_tried_again(driver, storage, monkeypatch):
    create, others = Storage.create, [b"another"]

    def faster(self, name, text):
        if others:
            create(self, name, others.pop())
        create(self, name, text)

    monkeypatch.setattr(Storage, "create", faster)
    assert driver(takeover=True).number == 2 and storage.names() == ["00000002"]


def test_a_token_that_was_replaced_meanwhile_is_not_followed(driver, storage):
    first = driver(takeover=False)
    tokens = {1: b"the token that lay there before"}
    assert not driver()._claim(tokens) and storage.names() == ["00000001"]
    first.check()
    assert not driver()._claim({5: b"long gone"}) and storage.names() == ["00000001"]
    assert not driver()._claim({}), "the first one's token is there"
    assert driver()._claim({1: first.token.text}) and storage.names() == ["00000002"]


def test_a_number_that_has_become_free_again_is_not_taken(driver, storage):
    storage.create("00000009", b"later")
    assert not driver()._claim({}) and storage.names() == ["00000009"]


def test_who_cannot_renew_and_was_not_displaced_ends_all_the_same(driver, monkeypatch):
    owner = driver(takeover=False)
    monkeypatch.setattr(Ownership, "_claim", lambda self, tokens: False)
    with pytest.raises(JobDisplaced, match="'counting' is run by another driver: another driver is about to become"):
        owner.renew()


# --- the application ---
def test_an_application_is_noted_once_for_each_owner(driver, storage, monkeypatch):
    written, write = [], Storage.write
    monkeypatch.setattr(Storage, "write", lambda self, name, parts: written.append(name) or write(self, name, parts))
    owner = driver()
    owner.note_application(b"seven")
    assert written == [], "nobody owns the job yet"
    owner.take(False)
    for described in (None, b"seven", b"seven", b"eight"):
        owner.note_application(described)
    owner.renew()
    owner.note_application(b"eight")
    assert written == ["00000001.application"] * 2 + ["00000002.application"]
    assert storage.read("00000002.application") == b"eight"


def test_an_application_that_could_not_be_noted_is_noted_later(driver, storage, monkeypatch):
    owner = driver(takeover=False)
    with monkeypatch.context() as broken:
        refuse(broken, "write", "00000001.application")
        owner.note_application(b"seven")
    assert "00000001.application" not in storage.names()
    owner.note_application(b"seven")
    assert storage.read("00000001.application") == b"seven"


def test_applications_of_unreadable_owners_are_passed_over(driver, storage):
    storage.create("00000001", b"?")
    storage.create("00000001.application", b"seven")
    assert list(driver(takeover=False).earlier) == []


def test_the_application_of_an_invisible_owner_may_be_ended(driver, storage):
    first = driver(takeover=False)
    text = json.dumps({**json.loads(first.token.text), "machine": "another"}).encode()
    storage.write("00000001", [text])
    storage.create("00000001.application", b"seven")
    assert Whereabouts.of(json.loads(text)).lives() is None
    assert list(driver(takeover=True).earlier) == [b"seven"]


# --- results that cannot be taken back ---
def test_who_has_decided_cannot_be_displaced_and_another_is_refused(driver, storage):
    owner = driver(takeover=False)
    owner.decide()
    assert storage.read("00000001.commits") == owner.token.text
    with pytest.raises(JobRunning, match=r"It is committing the results of the job and can no longer be displaced"):
        driver(takeover=True)
    owner.check()
    owner.decide()


def test_who_was_displaced_decides_nothing(driver):
    first, _ = driver(takeover=False), driver(takeover=True)
    with pytest.raises(JobDisplaced):
        first.decide()
    with pytest.raises(JobDisplaced):
        first.check()


def test_the_decision_is_that_of_one_attempt(driver):
    owner = driver(takeover=False)
    owner.decide()
    owner.renew()
    driver_after = Ownership(owner._storage.url().removesuffix("/owner"), "counting", 50_000)
    owner._storage.delete("00000001.commits")
    driver_after.take(True)
    with pytest.raises(JobDisplaced):
        owner.check()
    driver_after.let_go()


def test_a_decision_whose_driver_has_ended_refuses_nobody(driver, caplog):
    owner = driver(takeover=False)
    owner.decide()
    owner.end(finished=True)
    assert driver(takeover=False).number == 2 and caplog.text == ""


def test_a_decision_whose_driver_died_is_told(driver, storage, caplog):
    owner = driver(takeover=False)
    owner.decide()
    owner.let_go()
    assert driver(takeover=False).number == 2
    assert "died while it committed the results of this job: some results may already be visible" in caplog.text
    storage.create("other.commits", b"not one of ours")


def test_who_has_not_taken_the_job_decides_nothing(driver, storage):
    driver().decide()
    assert storage.names() == []


# --- the newest checkpoint ---
def test_the_newest_checkpoint_is_noted_for_whoever_finds_the_job_again(driver, folder, storage):
    driver().note_published(3)
    assert storage.names() == []
    owner = driver(takeover=False)
    owner.begin([])
    assert last_start(folder) == Start(1)
    owner.note_published(3)
    owner.note_published(12)
    assert last_start(folder).newest == 12
    hidden = driver(takeover=True, found_again=False)
    hidden.begin([])
    hidden.note_published(13)
    assert last_start(folder).newest is None


@pytest.mark.parametrize(("kept", "stays"), [([], False), ([of(12, 1)], True), (None, True)])
def test_the_newest_checkpoint_is_forgotten_where_none_is_kept(driver, folder, storage, kept, stays):
    owner = driver(takeover=False)
    owner.begin([])
    owner.note_published(12)
    owner.end(True, kept)
    assert ("00000001.newest" in storage.names()) is stays
    assert last_start(folder).ending == Ending(
        True, None if kept is None else frozenset((m.owner, m.number) for m in kept)
    )


def test_who_has_not_taken_the_job_does_not_end_it(driver, storage):
    driver().end(True)
    assert storage.names() == []


# --- records ---
def test_a_start_may_be_noted_again_and_not_changed(driver):
    owner = driver(takeover=False)
    owner.begin([of(3, 0)])
    owner.begin([of(3, 0)])
    with pytest.raises(AlreadyThere):
        owner.begin([of(4, 0)])


def test_only_records_of_earlier_owners_are_deleted(driver, storage):
    kinds = [".began", ".over", ".commits", ".pulse", ".newest", ".application"]
    for number in (1, 2):
        for kind in [*kinds, ".other", ""]:
            if (number, kind) != (2, ".began"):
                storage.create(f"{number:08d}{kind}", b"{}")
    owner = driver()
    owner.number = 2
    owner.begin([])
    left = storage.names()
    assert [name for name in left if name.startswith("00000001")] == ["00000001", "00000001.other"]
    assert len(left) == 2 + len(kinds) + 2


def test_records_that_cannot_be_deleted_stay(driver, storage, monkeypatch):
    storage.create("00000000.over", b"{}")
    owner = driver(takeover=False)
    with monkeypatch.context() as broken:
        refuse(broken, "delete", "00000000.over")
        owner.begin([])
    owner.check()
    assert "00000000.over" in storage.names()


def test_a_start_that_a_later_owner_deletes_meanwhile_is_not_read(driver, folder, monkeypatch):
    first = driver(takeover=False)
    first.begin([of(3, 0)])
    names = Storage.names

    def listing(self):
        found = names(self)
        monkeypatch.setattr(Storage, "names", names)
        driver(takeover=True).begin([of(5, 0)])
        return found

    monkeypatch.setattr(Storage, "names", listing)
    assert last_start(folder) == Start(2, frozenset({(0, 5)}))


# --- signs of life ---
class Clock(SimpleNamespace):
    now = 1000.0

    def time(self):
        return self.now

    monotonic = time

    def sleep(self, seconds):
        self.naps.append(seconds)
        self.now += seconds


@pytest.mark.parametrize(("limit", "nap", "naps"), [(5_000, 0.5, 10), (50_000, 1.0, 50)])
def test_a_sign_of_life_is_looked_for_often_enough(driver, storage, folder, limit, nap, naps):
    first = driver(takeover=False)
    storage.write("00000001", [json.dumps({**json.loads(first.token.text), "machine": "x", "limit": limit}).encode()])
    clock = Clock(naps=[])
    second = driver(clock=clock)
    second.take(False)
    assert clock.naps == [nap] * naps


@pytest.mark.parametrize(("age", "waits"), [(50.0, True), (50.1, False)])
def test_a_sign_as_old_as_the_limit_is_not_too_old(driver, storage, monkeypatch, age, waits):
    first = driver(takeover=False)
    storage.write("00000001", [json.dumps({**json.loads(first.token.text), "machine": "x"}).encode()])
    monkeypatch.setattr(Storage, "age", lambda self, name: age if name == "00000001.pulse" else 0.0)
    clock = Clock(naps=[])
    driver(takeover=False, clock=clock)
    assert bool(clock.naps) is waits


def test_a_watch_goes_on_when_the_storage_fails(driver, storage, monkeypatch):
    owner, told = driver(takeover=False), []
    with monkeypatch.context() as broken:
        failed = []
        broken.setattr(Storage, "write", lambda self, name, parts: failed.append(name) or refuse_all())
        owner.watch(0.001, told.append)
        until(lambda: len(failed) > 1)
    (thread,) = [one for one in threading.enumerate() if one.name == "penstock owner"]
    assert thread.daemon
    until(lambda: "00000001.pulse" in storage.names())
    assert told == []
    owner.let_go()
    thread.join(60)
    assert not thread.is_alive()


def refuse_all():
    raise StorageError("full")


def test_a_job_that_nobody_finds_again_gives_no_sign(driver):
    driver(takeover=False, found_again=False).watch(0.001, lambda displaced: None)
    assert "penstock owner" not in {one.name for one in threading.enumerate()}


def test_a_job_that_nobody_finds_again_leaves_no_folder(driver, tmp_path):
    owner = driver(takeover=False, found_again=False)
    owner.forget()
    assert not (tmp_path / "owner").exists()


def test_a_job_in_memory_can_do_everything_and_notes_nothing():
    nobody = NoOwnership()
    nobody.decide()
    nobody.note_published(1)
    nobody.note_application(b"seven")
    nobody.watch(0.0, print)
    assert nobody.earlier == () and nobody.number == 0
