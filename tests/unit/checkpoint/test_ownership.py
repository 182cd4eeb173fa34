"""Who owns a job: taking it, taking it over, keeping it, giving it back."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from penstock.base.storage import Storage
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.ownership import NoOwnership, Ownership, last_start
from penstock.engine.checkpoint.process_identity import Whereabouts
from penstock.engine.checkpoint.rules import Ending, Start
from penstock.errors import CorruptSnapshot, JobDisplaced, JobRunning, StorageError

LIMIT = 50_000


def of(number, owner):
    return Metadata(number, 0, "job", "job", {}, [], owner=owner)


@pytest.fixture
def folder(tmp_path):
    return tmp_path.as_uri()


@pytest.fixture
def clock():
    return time


@pytest.fixture
def driver(folder, clock):
    """Makes drivers of one job, which are gone after the test."""
    made = []

    def make(takeover=None, limit=LIMIT, found_again=True):
        made.append(Ownership(folder, "counting", limit, found_again, clock))
        if takeover is not None:
            made[-1].take(takeover)
        return made[-1]

    yield make
    for one in made:
        one.let_go()


def names(folder):
    return Storage(f"{folder}/owner").names()


class TestTaking:
    def test_the_first_driver_owns_the_job(self, driver, folder):
        first = driver(takeover=False)
        first.check()
        assert first.number == 1 and names(folder) == ["00000001"]
        token = json.loads(first.token.text)
        assert (token["pid"], token["job"], token["number"]) == (os.getpid(), "counting", 1)

    def test_a_second_one_is_told_who_owns_it_and_what_to_do(self, driver, folder):
        first = driver(takeover=False)
        with pytest.raises(JobRunning) as refused:
            driver(takeover=False)
        told = str(refused.value)
        host, since = (json.loads(first.token.text)[name] for name in ("host", "since"))
        assert f"process {os.getpid()} on {host}, since {since}" in told and "'counting'" in told
        assert "execution.takeover=true" in told and "JobDisplaced" in told
        first.check()
        assert names(folder) == ["00000001"]

    def test_one_that_is_asked_to_takes_it_over_and_the_first_is_told_who_has_it(self, driver, folder):
        first, second = driver(takeover=False), driver(takeover=True)
        second.check()
        assert (second.number, names(folder)) == (2, ["00000002"])
        with pytest.raises(JobDisplaced) as displaced:
            first.check()
        assert f"new owner: process {os.getpid()} on " in str(displaced.value)
        assert "token 2; this driver had 1" in str(displaced.value) and "changes nothing more" in str(displaced.value)

    def test_what_is_gone_without_a_successor_is_no_right_either(self, driver, folder):
        first = driver(takeover=False)
        Storage(f"{folder}/owner").delete("00000001")
        with pytest.raises(JobDisplaced, match="token 1 of the job is gone from"):
            first.check()

    def test_a_token_of_which_a_part_is_read_is_read_again(self, driver, monkeypatch):
        first, read, parts = driver(takeover=False), Storage.read, [5, 1]

        def torn(storage, name):
            return read(storage, name)[: parts.pop() if parts else None]

        monkeypatch.setattr(Storage, "read", torn)
        first.check()
        assert parts == []

    def test_a_token_that_stays_torn_does_not_say_who_owns_the_job(self, driver, folder):
        first = driver(takeover=False)
        Storage(f"{folder}/owner").write("00000001", [first.token.text[:-1]])
        with pytest.raises(StorageError, match=r"/owner/00000001' cannot be read to its end"):
            first.check()

    def test_numbers_grow_as_long_as_the_folder_is_there(self, driver):
        assert [driver(takeover=True).number for _ in range(4)] == [1, 2, 3, 4]

    def test_one_that_was_given_back_is_free(self, driver):
        first = driver(takeover=False)
        first.end(finished=False)
        assert driver(takeover=False).number == 2

    def test_one_whose_driver_died_in_a_process_that_lives_is_free(self, driver):
        first = driver(takeover=False)
        first.let_go()
        assert driver(takeover=False).number == 2

    def test_a_token_that_cannot_be_read_is_passed_over(self, driver, folder, caplog):
        Storage(f"{folder}/owner").create("00000007", b"?")
        assert driver(takeover=False).number == 8
        assert "token 7" in caplog.text


class TestProcesses:
    """Drivers in other processes of this machine."""

    PROGRAM = """
import sys, time
from penstock.engine.checkpoint.ownership import Ownership
Ownership(sys.argv[1], "counting", 50000).take(False)
print("taken", flush=True)
time.sleep(600)
"""

    @pytest.fixture
    def process(self, folder):
        started = subprocess.Popen([sys.executable, "-c", self.PROGRAM, folder], stdout=subprocess.PIPE)
        assert started.stdout.readline() == b"taken\n"
        yield started
        started.kill()
        started.wait()

    def test_a_living_one_keeps_the_job_and_a_stopped_one_lives(self, process, driver):
        with pytest.raises(JobRunning, match=f"process {process.pid} on"):
            driver(takeover=False)
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(JobRunning, match=f"process {process.pid} on"):
            driver(takeover=False)
        assert driver(takeover=True).number == 2

    @pytest.mark.parametrize("is_dead", [True, False])
    def test_the_application_of_a_dead_one_is_to_be_ended(self, process, driver, folder, is_dead):
        """One that lives and is displaced may have other jobs in its application, and ends it by itself."""
        Storage(f"{folder}/owner").write("00000001.application", [b"application 7"])
        if is_dead:
            process.kill()
            process.wait()
        next_one = driver(takeover=True)
        assert list(next_one.earlier) == ([b"application 7"] if is_dead else [])
        next_one.note_application(b"application 8")
        next_one.begin([])
        assert Storage(f"{folder}/owner").read("00000002.application") == b"application 8"
        assert "00000001.application" not in names(folder)

    @pytest.mark.parametrize("reaped", [True, False])
    def test_from_a_dead_one_it_is_taken_at_once(self, process, driver, reaped):
        process.kill()
        if reaped:
            process.wait()
        else:
            psutil.wait_procs([psutil.Process(process.pid)], timeout=20)
        assert driver(takeover=False).number == 2

    def test_another_process_with_the_same_number_is_another_process(self, process):
        there = replace(Whereabouts.here(), pid=process.pid)
        assert there.lives() is False, "it began at another time"
        assert Whereabouts.here().lives() and Whereabouts.here().is_here()


class TestOtherMachines:
    """Drivers whose processes cannot be seen show that they live by writing a file again and again."""

    @pytest.fixture
    def elsewhere(self, driver, folder):
        """A driver on another machine, as its files look."""
        owner = driver(takeover=False)
        storage = Storage(f"{folder}/owner")
        text = json.dumps({**json.loads(owner.token.text), "machine": "another", "host": "far"}).encode()
        storage.delete("00000001")
        storage.create("00000001", text)
        return storage

    @pytest.fixture
    def clock(self):
        """A clock that only sleeping advances; `meanwhile` is called at each sleep."""

        class Clock:
            now = time.time()
            slept = 0.0

            def time(self):
                return self.now

            monotonic = time

            def sleep(self, seconds):
                self.now += seconds
                self.slept += seconds
                self.meanwhile()

            def meanwhile(self):
                pass

        return Clock()

    def pulse(self, storage, at):
        storage.write("00000001.pulse", [json.dumps({"at": at}).encode()])

    def make_old(self, storage, name):
        """Let a file have been written longer ago than the limit, by the clock of the storage."""
        past = time.time() - LIMIT / 1000 - 1
        os.utime(storage.path(name), (past, past))

    def test_one_that_was_silent_for_long_is_dead(self, elsewhere, driver, clock):
        self.pulse(elsewhere, clock.now)
        self.make_old(elsewhere, "00000001.pulse")
        assert driver(takeover=False).number == 2 and clock.slept == 0

    def test_one_that_gave_no_sign_for_long_is_dead(self, elsewhere, driver, clock):
        self.make_old(elsewhere, "00000001")
        assert driver(takeover=False).number == 2 and clock.slept == 0

    @pytest.mark.parametrize("ahead", [3600, -3600])
    def test_a_clock_that_is_wrong_by_an_hour_displaces_nobody(self, elsewhere, driver, clock, ahead):
        self.pulse(elsewhere, clock.now)
        clock.now += ahead
        clock.meanwhile = lambda: self.pulse(elsewhere, clock.now - ahead) if clock.slept > 9 else None
        with pytest.raises(JobRunning, match="on far"):
            driver(takeover=False)

    def test_a_storage_without_times_is_asked_for_a_sign(self, elsewhere, driver, clock, monkeypatch):
        monkeypatch.setattr(Storage, "age", lambda self, name: None)
        self.pulse(elsewhere, clock.now)
        self.make_old(elsewhere, "00000001.pulse")
        assert driver(takeover=False).number == 2 and clock.slept >= LIMIT / 1000

    def test_one_that_falls_silent_is_dead_after_its_limit(self, elsewhere, driver, clock, caplog):
        self.pulse(elsewhere, clock.now)
        assert driver(takeover=False).number == 2
        assert LIMIT / 1000 <= clock.slept < LIMIT / 1000 + 2
        assert "waiting up to 50 s" in caplog.text and "on far" in caplog.text

    def test_one_that_gave_no_sign_yet_has_its_limit_from_the_beginning(self, elsewhere, driver, clock):
        assert driver(takeover=False).number == 2 and clock.slept >= LIMIT / 1000

    def test_one_that_gives_a_sign_lives(self, elsewhere, driver, clock):
        self.pulse(elsewhere, clock.now)
        clock.meanwhile = lambda: self.pulse(elsewhere, clock.now) if clock.slept > 9 else None
        with pytest.raises(JobRunning, match="on far"):
            driver(takeover=False)
        assert clock.slept < 12

    def test_one_that_ends_meanwhile_has_ended(self, elsewhere, driver, clock):
        self.pulse(elsewhere, clock.now)
        clock.meanwhile = lambda: elsewhere.exists("00000001.over") or elsewhere.create("00000001.over", b"{}")
        assert driver(takeover=False).number == 2 and clock.slept < 2

    def test_nobody_waits_who_takes_over(self, elsewhere, driver, clock):
        self.pulse(elsewhere, clock.now)
        assert driver(takeover=True).number == 2 and clock.slept == 0


class TestKeeping:
    def test_every_attempt_has_a_token_of_its_own(self, driver, folder):
        owner = driver(takeover=False)
        before = owner.token
        owner.renew()
        owner.check()
        assert (owner.number, names(folder)) == (2, ["00000002"])
        with pytest.raises(JobDisplaced):
            before.check()

    def test_who_was_displaced_cannot_renew(self, driver, folder):
        first, second = driver(takeover=False), driver(takeover=True)
        with pytest.raises(JobDisplaced, match="new owner"):
            first.renew()
        second.check()
        assert names(folder) == ["00000002"]

    def test_renewing_again_after_a_call_that_failed(self, driver, folder, monkeypatch):
        """The failed call has created the next token, but could not delete the last one."""
        owner = driver(takeover=False)

        delete = Storage.delete

        def fail(self, name):
            if name == "00000001":
                raise OSError(5, "Input/output error")
            delete(self, name)

        with monkeypatch.context() as broken:
            broken.setattr(Storage, "delete", fail)
            with pytest.raises(OSError):
                owner.renew()
        assert owner.number == 1
        owner.renew()
        owner.check()
        assert (owner.number, names(folder)) == (2, ["00000002"])

    def test_a_watch_shows_life_and_tells_of_the_end(self, driver, folder):
        told = []
        first = driver(takeover=False)
        first.watch(0.01, told.append)
        deadline = time.monotonic() + 60
        while "00000001.pulse" not in names(folder) and time.monotonic() < deadline:
            time.sleep(0.01)
        driver(takeover=True)
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
        assert isinstance(told[0], JobDisplaced)

    def test_a_watch_is_not_deceived_by_a_renewal(self, driver):
        told = []
        owner = driver(takeover=False)
        owner.watch(0.0, told.append)
        for _ in range(50):
            owner.renew()
        assert told == []


class TestRecords:
    def test_how_the_last_owner_began_and_ended(self, driver, folder):
        assert last_start(folder) is None
        first = driver(takeover=False)
        assert last_start(folder) is None
        first.begin([of(3, 0), of(5, 0)])
        assert last_start(folder) == Start(1, frozenset({(0, 3), (0, 5)}))
        first.renew()
        first.begin([of(5, 0), of(6, 1)])
        assert last_start(folder) == Start(2, frozenset({(0, 5), (1, 6)}))
        assert names(folder) == ["00000002", "00000002.began"], "what is known of earlier ones is contained in it"
        first.end(True, [of(6, 1)])
        assert last_start(folder) == Start(2, frozenset({(0, 5), (1, 6)}), Ending(True, frozenset({(1, 6)})))

    @pytest.mark.parametrize("kind", ["began", "over", "newest"])
    def test_a_torn_record_is_an_error_that_says_so(self, driver, folder, kind):
        owner = driver(takeover=False)
        owner.begin([of(3, 0)])
        owner.note_published(12)
        owner.end(True, [of(3, 0)])
        Storage(f"{folder}/owner").write(f"00000001.{kind}", [b"{"])
        with pytest.raises(CorruptSnapshot, match=r"a record of '.*/owner/00000001' is truncated or changed"):
            last_start(folder)

    def test_an_owner_that_did_not_begin_has_changed_nothing(self, driver, folder):
        first = driver(takeover=False)
        first.begin([of(3, 0)])
        second = driver(takeover=True)
        assert last_start(folder).owner == 1
        second.end(finished=False)
        assert last_start(folder) == Start(1, frozenset({(0, 3)}))

    def test_who_was_displaced_before_it_began_does_not_begin(self, driver):
        first = driver(takeover=False)
        driver(takeover=True)
        with pytest.raises(JobDisplaced):
            first.begin([])

    def test_a_job_that_nobody_can_find_again_leaves_nothing(self, driver, folder):
        owner = driver(takeover=False, found_again=False)
        owner.begin([])
        owner.end(False, [])
        owner.forget()
        assert names(folder) == []
        kept = driver(takeover=False)
        kept.forget()
        assert names(folder) == ["00000001"]

    def test_an_end_is_noted_once(self, driver, folder):
        owner = driver(takeover=False)
        owner.begin([])
        owner.end(True, [])
        owner.end(finished=False)
        assert last_start(folder).ending == Ending(True, frozenset())


def test_a_job_without_a_folder_has_nobody_to_fear():
    nobody = NoOwnership()
    nobody.check()
    nobody.renew()
    nobody.begin([])
    nobody.end(True)
    nobody.forget()
    nobody.let_go()
    assert nobody.token is None and nobody.number == 0
