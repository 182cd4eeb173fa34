"""Types in the editor: no errors in correct programs, mistakes found with a clear message, names to complete."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from tests.typing.checkers import HERE, Finding, run_mypy, run_pyright

MISTAKES = HERE / "mistakes.py", HERE / "mistakes_in_tables.py"
CORRECT = HERE / "correct.py", HERE / "correct_tables.py"
T = TypeVar("T")
LEAST = 60
"""The fewest mistakes that the file must have."""


class Mistake(NamedTuple):
    """The lines of a mistake, and a part of what each type checker says about one of them."""

    file: str
    first: int
    last: int
    messages: dict[str, str]


def planted(file: Path) -> list[Mistake]:
    lines = file.read_text().splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        if (mypy := re.match(r"\s*# by mypy: (.*)", line)) is not None:
            pyright = re.match(r"\s*# by pyright: (.*)", lines[number])
            assert pyright is not None, f"line {number + 1} has to say what pyright says"
            last = next(n for n in range(number + 2, len(lines) + 1) if n == len(lines) or not lines[n].strip())
            found.append(Mistake(str(file), number + 2, last, {"mypy": mypy[1], "pyright": pyright[1]}))
    return found


def pyright(*files: Path) -> list[Finding]:
    return installed(run_pyright, *files)


def installed(run: Callable[..., T], *files: Path) -> T:
    """Call a function of pyright; skip the test if pyright cannot be installed."""
    try:
        return run(*files)
    except OSError as error:
        if os.environ.get("PENSTOCK_REQUIRE_SERVICES"):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize(("checker", "run"), [("mypy", run_mypy), ("pyright", pyright)])
def test_mistakes_are_found_and_nothing_else(checker: str, run: Callable[..., list[Finding]]) -> None:
    found = run(*CORRECT, *MISTAKES)
    assert not [one for one in found if one.file in map(str, CORRECT)]
    mistakes = [mistake for file in MISTAKES for mistake in planted(file)]
    assert len(mistakes) >= LEAST
    missed = [
        f"{mistake.file}:{mistake.first}: {mistake.messages[checker]}"
        for mistake in mistakes
        if not any(mistake.messages[checker] in one.message for one in found if is_about(one, mistake))
    ]
    assert not missed, "\n".join(missed)
    assert not [one for one in found if not any(is_about(one, mistake) for mistake in mistakes)]


def is_about(one: Finding, mistake: Mistake) -> bool:
    return one.file == mistake.file and mistake.first <= one.line <= mistake.last


FLUENT = {
    "words.name('w')": "uid",
    "words.uid('w')": "set_parallelism",
    "words.set_parallelism(2).set_max_parallelism(4)": "disable_chaining",
    "words.disable_chaining().start_new_chain()": "slot_sharing_group",
    "words.slot_sharing_group('g').force_non_parallel()": "map",
    "words.set_description('d').set_uid_hash('h').set_buffer_timeout(3)": "key_by",
    "words.map(len)": "filter",
    "words.flat_map(str.split).filter(bool)": "union",
    "words.rebalance().rescale().shuffle().global_().forward()": "print",
    "words.print()": "set_parallelism",
    "words.print().name('p').uid('p')": "disable_chaining",
    "words.key_by(len)": "process",
    "words.key_by(len).reduce(max)": "name",
    "words.key_by(len).sum(0)": "uid",
    "words.key_by(len).window(tens)": "aggregate",
    "words.key_by(len).window(tens).allowed_lateness(3).trigger(CountTrigger.of(3))": "side_output_late_data",
    "words.key_by(len).window(tens).evictor(CountEvictor.of(3))": "allowed_lateness",
    "words.key_by(len).count_window(3).reduce(max)": "uid",
    "words.connect(words)": "process",
    "words.join(words)": "where",
    "words.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())": "execute_and_collect",
    "words.execute_and_collect()": "close",
    "environment.set_parallelism(2).enable_checkpointing(10)": "from_collection",
    "environment.set_runtime_mode(RuntimeExecutionMode.BATCH).set_buffer_timeout(3)": "execute",
    "WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(3))": "with_timestamp_assigner",
    "KafkaSource.builder().set_bootstrap_servers('a')": "set_topics",
    "KafkaSource.builder().set_topics('a').set_group_id('g').set_property('a', 'b')": "build",
    "Pattern.begin('a').where(bool).times(2).optional()": "within",
}
BEFORE = """from penstock.cep import Pattern
from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors.kafka import KafkaSource
from penstock.datastream.window import CountEvictor, CountTrigger, TumblingEventTimeWindows
tens = TumblingEventTimeWindows.of(10)
environment = StreamExecutionEnvironment.get_execution_environment()
words = environment.from_collection(["a"])
"""


def test_every_fluent_call_has_a_type_whose_names_an_editor_completes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    lines = [f"print({chain}.{name}.nothing)" for chain, name in FLUENT.items()]
    program.write_text(BEFORE + "\n".join(lines))
    found = pyright(program)
    # Where the name is known, the type checker complains of the attribute that it has not. Of Any it never complains.
    first = BEFORE.count("\n") + 1
    messages = [[one.message for one in found if one.line == first + number] for number in range(len(lines))]
    wrong = [
        f"{line}: {said}"
        for line, said in zip(lines, messages, strict=True)
        if len(said) != 1 or 'Cannot access attribute "nothing"' not in said[0]
    ]
    assert not wrong, "\n".join(wrong)
