"""What a program brings along reaches the slots, and the demo starts, shows results and stops on Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import urllib.request
import zipfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import MapFunction
from penstock.errors import ConfigurationError


def results_of(stream) -> list:
    with stream.execute_and_collect() as results:
        return sorted(results)


def test_a_python_file_can_be_imported_in_the_slots(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    (tmp_path / "brought_along.py").write_text("def double(x):\n    return 2 * x\n")
    env.add_python_file(str(tmp_path / "brought_along.py"))

    def use(value: int) -> int:
        import brought_along

        return brought_along.double(value)

    assert results_of(env.from_sequence(1, 3).map(use)) == [2, 4, 6]


def test_an_archive_is_unpacked_where_the_slots_run(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "words.zip", "w") as archive:
        archive.writestr("greeting.txt", "hello")
    env.add_python_archive(str(tmp_path / "words.zip"), "data")
    assert results_of(env.from_elements(1).map(lambda _: Path("data/greeting.txt").read_text())) == ["hello"]


def test_requirements_are_installed_for_the_slots(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    wheel = tmp_path / "penstock_test_fruit-1.0-py3-none-any.whl"
    info = "penstock_test_fruit-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("penstock_test_fruit.py", "NAME = 'quince'\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: penstock-test-fruit\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    (tmp_path / "requirements.txt").write_text("penstock-test-fruit==1.0\n")
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path))

    def use(_: int) -> str:
        import penstock_test_fruit

        return penstock_test_fruit.NAME

    assert results_of(env.from_elements(1).map(use)) == ["quince"]


def test_what_is_not_there_or_cannot_be_installed_is_told(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no file or folder"):
        env.add_python_file(str(tmp_path / "missing.py"))
    (tmp_path / "requirements.txt").write_text("penstock-no-such-package==9\n")
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path))
    env.from_elements(1).discard()
    with pytest.raises(ConfigurationError, match="cannot be installed"):
        env.execute()


def test_the_demo_shows_results_and_its_page_and_stops_on_ctrl_c() -> None:
    """In a terminal, since it draws its table there and nowhere else. The usual port is taken."""
    terminal, its_end = pty.openpty()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # somebody else has it already
            taken.bind(("127.0.0.1", 8081))
            taken.listen()
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.service.demo"], stdout=its_end, stderr=its_end, start_new_session=True
        )
        os.close(its_end)
        shown = b""
        while b"sensor-3" not in shown:
            shown += os.read(terminal, 1 << 16)
    family = psutil.Process(process.pid).children(recursive=True)
    address = re.search(rb"http://127\.0\.0\.1:(\d+)", shown)
    assert address is not None and shown.index(address[0]) < shown.index(b"sensor-3") and address[1] != b"8081"
    with urllib.request.urlopen(f"{address[0].decode()}/jobs/overview", timeout=60) as answer:
        assert [job["name"] for job in json.load(answer)["jobs"]] == ["sensors"]
    os.killpg(process.pid, signal.SIGINT)
    with suppress(OSError):  # which is how a terminal tells that nobody writes to it any more
        while more := os.read(terminal, 1 << 16):
            shown += more
    os.close(terminal)
    output = shown.decode()
    assert process.wait(600) == 0, output
    assert "stopped cleanly" in output and "Traceback" not in output
    assert not psutil.wait_procs(family, timeout=60)[1]


def test_cached_files_reach_the_slots(env, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "words.txt").write_text("to be")
    (tmp_path / "words.txt").write_text("or not")
    env.register_cached_file(str(tmp_path / "one"), "folder")
    env.register_cached_file(str(tmp_path / "one" / "words.txt"), "first")
    env.register_cached_file(str(tmp_path / "words.txt"), "second")

    class Reads(MapFunction):
        def map(self, value):
            path = self.get_runtime_context().get_distributed_cache().get_file(value)
            assert not path.startswith(str(tmp_path))
            return Path(path, "words.txt").read_text() if value == "folder" else Path(path).read_text()

    results = env.from_collection(["folder", "first", "second"]).map(Reads()).execute_and_collect()
    assert sorted(results) == ["or not", "to be", "to be"]
