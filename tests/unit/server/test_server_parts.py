"""Parts of a server one by one: options, the control link, logs, environments, programs, task managers, standbys."""

import asyncio
import os
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from penstock.engine.job.job_record import JobRecord, Settings, SlotRecord, VertexRecord
from penstock.errors import ConfigurationError, CorruptSnapshot, PenstockError, ProgramError
from penstock.service.options.server_options import OPTIONS, ServerSettings
from penstock.service.server import cli, control
from penstock.service.server.control import ControlServer, DriverUnreachable, ask, key_in, socket_path
from penstock.service.server.home import Home, running_server
from penstock.service.server.leadership.standby_middleware import LeaderOnly
from penstock.service.server.log_files import rotate
from penstock.service.server.program_files import check_program, entries, requirements_of
from penstock.service.server.task_managers import task_managers
from penstock.service.server.virtual_environments import python_for


# --- options ---
def test_every_default_can_be_read():
    for option in OPTIONS:
        option.of({})
    settings = ServerSettings.of(Path("/data"), {})
    assert (settings.ha_type, settings.jobs_expire, settings.storage) == (
        "none",
        3_600_000,
        "file:///data/storage/default",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"high-availability.type": "kubernetes"}, r"high-availability.type cannot be 'kubernetes': it must be one of"),
        ({"high-availability.type": "storage"}, r"storageDir is not set"),
        ({"jobstore.max-capacity": "-1"}, r"jobstore.max-capacity cannot be '-1'"),
        (
            {"high-availability.storage.lease-duration": "5 s"},
            r"a lease of 5000 ms cannot be renewed every 3000 ms: .*retry-period must be at most half",
        ),
    ],
)
def test_options_that_do_not_fit_are_named(given, said):
    with pytest.raises(ConfigurationError, match=said):
        ServerSettings.of(Path("/data"), given)


# --- the control link ---
def test_a_start_warns_of_options_that_nothing_reads(fresh_warnings, capsys):
    chosen = cli._configuration(["akka.ask.timeout=1 s", "rest.prt=1", "rest.port=8082"], {})
    warnings = capsys.readouterr().err.splitlines()
    assert [line.startswith("warning: ") for line in warnings] == [True, True] and chosen["rest.port"] == "8082"
    assert "'akka.ask.timeout' (command line) has no effect" in warnings[0]
    assert "there is no option 'rest.prt'" in warnings[1] and "did you mean 'rest.port'?" in warnings[1]


@pytest.fixture
def door(tmp_path):
    def fail(asked):
        raise CorruptSnapshot("torn")

    def surprise(asked):
        raise ZeroDivisionError("x")

    handlers = {"echo": lambda asked: asked["text"], "fail": fail, "surprise": surprise}
    key = key_in(tmp_path)
    address = socket_path(tmp_path, "driver")
    made = ControlServer(address, str(key), handlers)
    yield address, str(key)
    made.close()


def test_questions_are_answered_and_errors_keep_their_kind(door):
    address, key = door
    assert ask(address, key, {"do": "echo", "text": "ä" * 100_000}) == "ä" * 100_000
    with pytest.raises(CorruptSnapshot, match=r"torn"):
        ask(address, key, {"do": "fail"})
    with pytest.raises(PenstockError, match=r"ZeroDivisionError: x"):
        ask(address, key, {"do": "surprise"})


def test_a_wrong_key_opens_nothing(door, tmp_path):
    (tmp_path / "other").write_text("wrong")
    with pytest.raises(DriverUnreachable, match=r"digest"):
        ask(door[0], str(tmp_path / "other"), {"do": "echo", "text": "x"})


def test_nobody_there_and_nobody_answering(tmp_path, monkeypatch):
    key = str(key_in(tmp_path))
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    with pytest.raises(DriverUnreachable):
        ask(str(tmp_path / "none.sock"), key, {"do": "ping"})
    import socket

    deaf = socket.socket(socket.AF_UNIX)
    deaf.bind(str(tmp_path / "deaf.sock"))
    deaf.listen(1)
    monkeypatch.setattr(control, "CONNECT_SECONDS", 0.05)
    with pytest.raises(DriverUnreachable, match=r"no message has arrived for 0.05 s"):
        ask(str(tmp_path / "deaf.sock"), key, {"do": "ping"})
    deaf.close()


def test_a_socket_in_a_deep_folder_gets_a_shorter_path(tmp_path):
    deep = tmp_path / ("x" * 120)
    assert len(socket_path(deep, "1")) < control.LONGEST_PATH


# --- the folder ---
def test_a_folder_has_one_server(tmp_path):
    home = Home(tmp_path)
    home.announce("http://here", "/socket")
    assert running_server(tmp_path).address == "http://here"
    with pytest.raises(ConfigurationError, match=rf"process {os.getpid()}, http://here"):
        Home(tmp_path)
    home.leave()
    assert running_server(tmp_path) is None
    Home(tmp_path).leave()


# --- logs ---
def test_logs_do_not_grow_without_end(tmp_path):
    path = tmp_path / "driver.log"
    with path.open("ab") as file:
        for number in range(6):
            file.write(f"{number}".encode() * 20)
            file.flush()
            assert rotate(path, 10, 3)
            assert not rotate(path, 10, 3)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["driver.log", "driver.log.1", "driver.log.2"]
    assert (tmp_path / "driver.log.1").read_text() == "5" * 20 and path.read_text() == ""


# --- programs ---
@pytest.fixture
def archive(tmp_path):
    def make(name, **files):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as made:
            for file, text in files.items():
                made.writestr(file.replace("__dot__", ".").replace("__slash__", "/"), text)
        return path

    return make


def test_programs_are_looked_at_before_they_are_run(archive, tmp_path):
    check_program(archive("a.zip", **{"__main__.py": ""}))
    with pytest.raises(ProgramError, match=r"has no __main__.py"):
        check_program(archive("b.zip", **{"jobs.py": ""}))
    check_program(archive("b.zip", **{"jobs.py": ""}), "jobs:main")
    (tmp_path / "c.zip").write_text("no zip")
    (tmp_path / "d.jar").touch()
    for name, said in (("c.zip", "is not a zip file"), ("d.jar", "must be a Python file, a zip or a wheel")):
        with pytest.raises(ProgramError, match=said):
            check_program(tmp_path / name)
    wheel = archive("w.whl", **{"w-1.dist-info/entry_points.txt": "[console_scripts]\nrun = pack.jobs:main\n"})
    assert entries(wheel) == ("pack.jobs:main",)
    assert requirements_of(archive("r.zip", **{"requirements.txt": "six\n"})) == "six\n"


def test_requirements_that_cannot_be_installed_say_why(tmp_path, monkeypatch):
    assert python_for(None, tmp_path) == python_for(" \n", tmp_path) == sys.executable
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ConfigurationError, match=r"requirements cannot be installed(.|\n)*no-such-package"):
        python_for("no-such-package==1.0\n", tmp_path)


# --- task managers ---
def test_slots_are_reported_by_place():
    vertex = VertexRecord("v", "name", 3, 128, "default", ())
    slots = tuple(SlotRecord(number, 1, False, {}, {}, place) for number, place in enumerate(["x:1", "y:2", "x:1"]))
    local = JobRecord("1" * 32, "", False, "RUNNING", (), vertices=(vertex,), settings=Settings(master="local[2]"))
    remote = JobRecord("2" * 32, "", False, "RUNNING", (), slots=slots, settings=Settings(master="spark://m:7077"))
    over = JobRecord("3" * 32, "", False, "FINISHED", (), slots=slots)
    found = {
        manager.id: (manager.host, manager.slots, manager.free_slots)
        for manager in task_managers([local, remote, over], "here", 4)
    }
    assert found == {
        "1" * 32 + "-0": ("here", 3, 0),
        "x:1": ("x", 2, 0),
        "y:2": ("y", 1, 0),
        "here-free": ("here", 1, 1),
    }


# --- standbys ---
class Voting:
    def __init__(self, leads, leader):
        self.leads, self.leader = (lambda: leads), (lambda: leader)


@pytest.mark.parametrize(
    ("election", "status", "location"),
    [
        (Voting(True, {}), 200, None),
        (Voting(False, {"address": "http://other:1"}), 307, b"http://other:1/jobs/x?a=1"),
        (Voting(False, {"address": "http://own"}), 503, None),
        (Voting(False, {}), 503, None),
    ],
)
def test_a_standby_sends_clients_to_the_leader(election, status, location):
    sent = []

    async def send(message):
        sent.append(message)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    gate = LeaderOnly(app, lambda: election, lambda: "http://own")
    scope = {"type": "http", "path": "/jobs/x", "raw_path": b"/jobs/x", "query_string": b"a=1"}
    asyncio.run(gate(scope, None, send))
    assert sent[0]["status"] == status
    assert dict(sent[0]["headers"]).get(b"location") == location
