"""Runs PyFlink programs, unchanged, on Penstock and on PyFlink itself, and compares what they print.

    make compat

They are the examples that ship with PyFlink, and those in `programs/` beside this file: programs of several modules,
with packages, relative imports and class hierarchies of their own.

The examples are taken from the apache-flink package, which is installed into a virtual environment of its own under
.venvs/ (or found in the folder that PENSTOCK_BENCH_VENVS names). Lines are compared without the number of the subtask
that printed them and without regard to order; numbers may differ in the last bits.

The Kafka examples write to a broker at localhost:9092 and then read for ever; they get a broker of their own there and
are stopped when the rows have come. Of these, what they wrote into the topic is compared, too, byte by byte. PyFlink
cannot run them as they are: the jars they name, under /path/to, are for the reader to fill in. So PyFlink's environment
is given the real one, from Maven Central, and those in the program are passed over; the program itself is unchanged.
The Avro example does not run on PyFlink even so, because PyFlink asks for a class AvroRowSerializationSchema that the
Avro jar of its version does not have. It is compared with what its own data implies.

Of Table programs that is compared which the systems promise: see `table_outputs.py`. One of the examples fails on
PyFlink halfway, because `from pyflink.table.expressions import *` hides the module json that it has imported before. It
has to fail here, too, and to print the same until then.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.compat.table_outputs import forms, kinds_of_changes, settled  # noqa: E402

FLINK = "apache-flink==2.3.0"
REMARKS = ("No module named google", "PYFLINK_CYTHON_ENABLED", "Using Any for unsupported type", "Sending: ", "job '")
"""What PyFlink's own dependencies, and a job that waits for its slots, log into the examples' output, and what an
example's function prints in a worker."""
EXAMPLES = [
    "word_count.py",
    "basic_operations.py",
    "event_time_timer.py",
    "state_access.py",
    "windowing/tumbling_time_window.py",
    "windowing/tumbling_count_window.py",
    "windowing/sliding_time_window.py",
    "windowing/session_with_gap_window.py",
    "windowing/session_with_dynamic_gap_window.py",
]


@dataclass(frozen=True)
class TableExample:
    name: str
    compared: Callable[[list[str]], list[str]] = settled
    lines: int | None = None
    """How many are looked at if it never ends; None if it ends."""
    fails: bool = False
    """Whether it ends with an error, on PyFlink itself."""


TABLE_EXAMPLES = [
    TableExample("table/word_count.py"),
    TableExample("table/basic_operations.py", fails=True),
    TableExample("table/multi_sink.py"),
    TableExample("table/process_json_data.py"),
    TableExample("table/process_json_data_with_udf.py"),
    TableExample("table/mixing_use_of_datastream_and_table.py", forms),
    TableExample("table/streaming_word_count.py", kinds_of_changes, lines=60),
    TableExample("table/windowing/over_window.py"),
    TableExample("table/windowing/session_window.py"),
    TableExample("table/windowing/sliding_window.py"),
    TableExample("table/windowing/tumble_window.py"),
    TableExample("table/pandas/conversion_from_dataframe.py", forms),
    TableExample("table/pandas/pandas_udaf.py"),
    TableExample("table/async/async_scalar_function.py", forms),
]

OWN_PROGRAMS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/compat/programs/*/main.py"))

Outcome = tuple[list[str], list[tuple[bytes, bytes]]]
"""What an example printed, and the keys and values it wrote, both sorted."""


@dataclass(frozen=True)
class KafkaExample:
    name: str
    topic: str
    lines: int | None
    """How many it prints before it only waits; None if it ends by itself."""
    implied: Outcome | None = None
    """What it must print and write, if PyFlink cannot run it."""


STEPS = ("writing data to", "reading data from")
AVRO_ROWS = [(1, "hi"), (2, "hello"), (3, "hi"), (4, "hello"), (5, "hi"), (6, "hello"), (6, "hello")]
AVRO_IMPLIED = (
    sorted([*(f"+I[{n},{text}]" for n, text in AVRO_ROWS), *(f"start {what} kafka" for what in STEPS)]),
    # Avro doubles small numbers, and puts the length of a text, as such a number, before it.
    sorted((b"", bytes([2 * n, 2 * len(text)]) + text.encode()) for n, text in AVRO_ROWS),
)
KAFKA_PORT = 9092
KAFKA_EXAMPLES = [
    KafkaExample("connectors/kafka_json_format.py", "test_json_topic", 9),
    KafkaExample("connectors/kafka_csv_format.py", "test_csv_topic", 9),
    KafkaExample("connectors/kafka_avro_format.py", "test_avro_topic", 9, AVRO_IMPLIED),
    KafkaExample("connectors/kafka_bytearray_format.py", "test_bytearray_topic", 5),
    KafkaExample("connectors/kafka_row_field_extractor_example.py", "row-extractor-example", None),
]
KAFKA_JAR = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
"""The newest there is."""
WITH_JARS = """
import runpy, sys
from pyflink.datastream import StreamExecutionEnvironment as Environment

program, *jars = sys.argv[1:]
make, add_jars = Environment.get_execution_environment, Environment.add_jars

def make_with_jars(*arguments, **named):
    environment = make(*arguments, **named)
    add_jars(environment, *jars)
    return environment

Environment.get_execution_environment = staticmethod(make_with_jars)
Environment.add_jars = lambda self, *paths: None
sys.argv = [program]
runpy.run_path(program, run_name="__main__")
"""
"""Runs a program on PyFlink with jars that are there instead of those it names."""
PATIENCE = 180.0
A_MOMENT = 2.0
"""Seconds in which a program could print what it should not, after its last line."""


def flink_environment() -> Path:
    """The virtual environment that holds PyFlink; made on first use."""
    home = Path(os.environ.get("PENSTOCK_BENCH_VENVS", ROOT / ".venvs")) / "flink"
    if not (home / "bin" / "python").exists():
        print(f"installing {FLINK} into {home} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "python"), "-m", "pip", "install", "-q", FLINK], check=True)
    return home


def examples_folder(home: Path) -> Path:
    return next(home.glob("lib/python*/site-packages/pyflink/examples/datastream"))


def printed(command: list[str], **environment: str) -> list[str]:
    """The sorted lines of a program's output, without subtask numbers."""
    return sorted(lines_of(command, environment))


def lines_of(command: list[str], environment: dict[str, str], fails: bool = False) -> list[str]:
    """The lines of a program's output, without subtask numbers. With `fails` it has to end with an error."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment}
    )
    if (done.returncode != 0) is not fails:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return list(map(without_subtask, filter(is_output, done.stdout.splitlines())))


def is_output(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(REMARKS)


def without_subtask(line: str) -> str:
    return re.sub(r"^\d+> ", "", line).rstrip("\n")


def printed_until(command: list[str], number: int, **environment: str) -> list[str]:
    """The sorted lines of a program that does not end: it is stopped when so many have come, and a moment passed."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            start_new_session=True,
        )
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        assert process.stdout is not None
        threading.Thread(target=_pass_on, args=(process.stdout, lines), daemon=True).start()
        try:
            found = _first(lines, number)
        finally:
            _end(process)
        if len(found) < number:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} printed only {found}:\n{errors.read()[-5000:]}")
    return sorted(map(without_subtask, found))


def _pass_on(output: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    for line in output:
        lines.put(line)
    lines.put(None)


def _first(lines: queue.SimpleQueue[str | None], number: int) -> list[str]:
    found: list[str] = []
    until = time.monotonic() + PATIENCE
    with suppress(queue.Empty):
        while (line := lines.get(timeout=max(0.01, until - time.monotonic()))) is not None:
            if is_output(line):
                found.append(line)
                if len(found) == number:
                    until = time.monotonic() + A_MOMENT
    return found


def _end(process: subprocess.Popen[str]) -> None:
    """As Ctrl-C would; what has not ended after a while is killed."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def same(ours: str, theirs: str) -> bool:
    """Equal texts, or texts that differ in the last digits of their numbers only."""
    number = re.compile(r"-?\d+\.\d+(?:[eE]-?\d+)?")
    if number.sub("#", ours) != number.sub("#", theirs):
        return False
    pairs = zip(number.findall(ours), number.findall(theirs), strict=True)
    return all(abs(float(a) - float(b)) <= 1e-5 * max(1.0, abs(float(b))) for a, b in pairs)


def on_penstock(program: str) -> list[str]:
    return [sys.executable, "-m", "penstock", "run", "--pyflink", program]


def on_flink(home: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    return [str(home / "bin" / "python"), *arguments], {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def judge(name: str, ours: list[str], theirs: list[str], wrote: str = "") -> bool:
    """Say whether both printed the same; `wrote` tells what else differs."""
    fine = len(ours) == len(theirs) > 0 and all(map(same, ours, theirs)) and not wrote
    print(f"{'ok  ' if fine else 'FAIL'} {name} ({len(ours)} lines)", flush=True)
    if not fine:
        print("  Penstock:", *ours, "  expected:", *theirs, wrote, sep="\n    ")
    return fine


def run_examples(home: Path, names: list[str]) -> list[bool]:
    folder, verdicts = examples_folder(home), []
    for name in names:
        program = str(ROOT / name if name in OWN_PROGRAMS else folder / name)
        command, environment = on_flink(home, program)
        verdicts.append(judge(name, printed(on_penstock(program)), printed(command, **environment)))
    return verdicts


def run_table_examples(home: Path, examples: list[TableExample]) -> list[bool]:
    folder, verdicts = examples_folder(home).parent, []
    for example in examples:
        program = str(folder / example.name)
        command, environment = on_flink(home, program)
        ours = table_output(example, on_penstock(program), {})
        verdicts.append(judge(example.name, ours, table_output(example, command, environment)))
    return verdicts


def table_output(example: TableExample, command: list[str], environment: dict[str, str]) -> list[str]:
    if example.lines is None:
        return example.compared(lines_of(command, environment, example.fails))
    return example.compared(printed_until(command, example.lines, **environment))


# --- Kafka ---
def run_kafka_examples(home: Path, examples: list[KafkaExample]) -> list[bool]:
    """All examples on Penstock with one broker, and on PyFlink with another."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", KAFKA_PORT)) == 0:
            print(f"skip the Kafka examples: something else listens at port {KAFKA_PORT}, where they expect a broker")
            return []
    folder = examples_folder(home)
    ours = with_broker(examples, lambda example: (on_penstock(str(folder / example.name)), {}))
    jars = [f"file://{jar}" for jar in kafka_jars()]
    theirs = with_broker(
        [example for example in examples if example.implied is None],
        lambda example: on_flink(home, "-c", WITH_JARS, str(folder / example.name), *jars),
    )
    verdicts = []
    for example in examples:
        our_lines, our_records = ours[example.name]
        their_lines, their_records = example.implied or theirs[example.name]
        wrote = "" if our_records == their_records else f"wrote {our_records} instead of {their_records}"
        verdicts.append(judge(example.name, our_lines, their_lines, wrote))
    return verdicts


def kafka_jars() -> list[Path]:
    from tests.services.maven import jars

    return sorted(jars(f"flink-kafka-{KAFKA_JAR.rpartition(':')[2]}", KAFKA_JAR).glob("*.jar"))


def with_broker(
    examples: list[KafkaExample], command_of: Callable[[KafkaExample], tuple[list[str], dict[str, str]]]
) -> dict[str, Outcome]:
    from tests.services.kafka import Kafka

    kafka = Kafka(port=KAFKA_PORT)
    outcomes: dict[str, Outcome] = {}
    if not examples:
        return outcomes
    try:
        kafka.start()
        for example in examples:
            kafka.create_topic(example.topic)
            command, environment = command_of(example)
            if example.lines is None:
                lines = printed(command, **environment)
            else:
                lines = printed_until(command, example.lines, **environment)
            messages = kafka.read(example.topic)
            outcomes[example.name] = (
                lines,
                sorted((message.key() or b"", message.value() or b"") for message in messages),
            )
    finally:
        kafka.remove()
    return outcomes


def main() -> int:
    """Runs all examples, or those whose names have one of the arguments in them."""
    wanted = sys.argv[1:] or [""]
    names = [name for name in [*EXAMPLES, *OWN_PROGRAMS] if any(part in name for part in wanted)]
    kafka_examples = [example for example in KAFKA_EXAMPLES if any(part in example.name for part in wanted)]
    home = flink_environment()
    verdicts = run_examples(home, names)
    verdicts += run_table_examples(home, [one for one in TABLE_EXAMPLES if any(part in one.name for part in wanted)])
    if kafka_examples:
        verdicts += run_kafka_examples(home, kafka_examples)
    print(f"{verdicts.count(True)} passed, {verdicts.count(False)} failed")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
