"""Thread dumps: of this process, and of another one by what faulthandler tells."""

import faulthandler
import threading

import pytest

from penstock.engine.observe.stacks import own_threads, threads_in


@pytest.fixture
def waiting():
    """A thread that waits in a function of this name."""
    go = threading.Event()

    def wait_for_the_test():
        begun.set()
        go.wait()

    begun = threading.Event()
    thread = threading.Thread(target=wait_for_the_test, name="waits", daemon=True)
    thread.start()
    begun.wait()
    yield thread
    go.set()
    thread.join()


def test_the_threads_of_this_process(waiting):
    found = own_threads()
    assert found[0][0] == "MainThread" and "test_the_threads_of_this_process" in found[0][1]
    text = dict(found)["waits"]
    assert text.startswith(f'"waits" daemon Id={waiting.native_id}\n\tat wait (') and "wait_for_the_test" in text


def test_the_threads_of_another_process(waiting, tmp_path):
    with (tmp_path / "dump").open("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        found = threads_in(file.read())
    assert len(found) >= len(own_threads()) and found[0][0] == "main"
    assert sum("\tat test_the_threads_of_another_process (" in text for _, text in found) == 1
    assert sum("\tat wait_for_the_test (" in text for _, text in found[1:]) == 1
    assert threads_in("") == threads_in("nothing of the kind") == []
