"""The example, and those that PyFlink ships, against a real broker."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.testing import in_process
from tests.compat.run_pyflink_examples import examples_folder, flink_environment
from tests.services.kafka import Kafka

ROOT = Path(__file__).parents[3]


def test_the_example_counts(kafka, capsys):
    kafka.create_topic("page-views", 2)
    kafka.create_topic("views-per-minute", 2)
    spec = importlib.util.spec_from_file_location("example_kafka_counts", ROOT / "examples" / "kafka_counts.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    with in_process():
        module.main(kafka.bootstrap)
    assert capsys.readouterr().out.splitlines() == [
        "minute 0: home 2",
        "minute 0: shop 1",
        "minute 1: home 1",
        "minute 1: shop 2",
        "minute 2: home 1",
    ]


@pytest.mark.soak
@pytest.mark.parametrize("form", ["json", "csv", "avro"])
def test_pyflinks_examples_run_unchanged(form):
    """They write seven records to localhost:9092 and read them back for ever."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 9092)) == 0:
            pytest.skip("something else listens at port 9092, where the examples expect Kafka")
    program = examples_folder(flink_environment()) / "connectors" / f"kafka_{form}_format.py"
    service = Kafka(port=9092)
    try:
        service.start()
        service.create_topic(f"test_{form}_topic")
        found = sorted(lines_of(program, 7))
    finally:
        service.remove()
    assert found == sorted(f"+I[{n}, {'hi' if n % 2 else 'hello'}]" for n in (1, 2, 3, 4, 5, 6, 6))


def lines_of(program: Path, number: int) -> list[str]:
    """The first rows that a program prints; then it is stopped."""
    command = [sys.executable, "-m", "penstock", "run", "--pyflink", str(program)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    found: list[str] = []
    everything = ""
    try:
        for line in process.stdout:
            everything += line
            if "+I[" in line:
                found.append(line[line.index("+I[") :].strip())
            if len(found) == number:
                return found
        raise AssertionError(f"it ended early:\n{everything}")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
