"""SIGTERM before a job has its slots: the process ends, and the job has no owner that others would wait for."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

STARTING = """
import sys, time
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.service.launch.submission import with_defaults

def slow(settings, deployment):
    print("starts", flush=True)
    time.sleep(600)

configuration = Configuration()
configuration.set_string("pipeline.job-id", "5107" * 8)
configuration.set_string("execution.checkpointing.dir", sys.argv[1])
configuration.set_string("execution.checkpointing.interval", "1 s")
with with_defaults(cluster=slow):
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    env.from_sequence(1, 3).print()
    env.execute()
"""

FORKED = """
import os, signal, time
from penstock.service.launch.termination import suspend_on_sigterm

suspend_on_sigterm()
runs, says = os.pipe()
child = os.fork()
if child == 0:
    os.write(says, b"!")  # Python forgets signals that a process gets while it is being forked
    time.sleep(600)
os.read(runs, 1)
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

OWN_HANDLER = """
import os, signal
from penstock.service.launch.termination import suspend_on_sigterm

signal.signal(signal.SIGTERM, lambda *_: print("the program's own"))
suspend_on_sigterm()
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_job_that_is_about_to_start_is_given_back(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "starts\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    (token,) = [path for path in tmp_path.glob("*/owner/*") if path.name.isdigit()]
    assert token.with_name(f"{token.name}.over").exists()


def test_a_forked_process_ends_as_it_would_without_penstock() -> None:
    assert _output(FORKED) == f"{-signal.SIGTERM}\n"


def test_a_program_keeps_a_handler_of_its_own() -> None:
    assert _output(OWN_HANDLER) == "the program's own\n"


def _output(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT).stdout
