"""The programs whose results were recorded from Flink, through crashes and through a savepoint: the results stay."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.common.job import JobClient
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.cluster_protocol import Cluster
from penstock.engine.messages.commands_and_reports import Deployment
from penstock.service.launch.execution_settings import EnvironmentSettings
from penstock.service.launch.submission import defaults, with_defaults
from penstock.testing import ManualClock, in_process
from tests.golden.test_golden_in_process import FILES, harness, recorded
from tests.recovery.conftest import Job, Stage, SteeredCluster

CASES = [(file, case) for file in FILES for case in recorded(file)]
LATE = {"allowed_lateness_updates", "allowed_lateness_side_output"}
"""Which records are late depends on how many subtasks give out watermarks: these cases keep their parallelism."""


class Clusters:
    """Makes the clusters of a test's jobs; all of them crash at the same epochs."""

    def __init__(self, hold_at: int | None = None, crashes: Mapping[int, str] | None = None) -> None:
        self._settings = (hold_at, crashes)
        self.made: list[SteeredCluster] = []

    def __call__(self, settings: EnvironmentSettings, deployment: Deployment) -> Cluster:
        self.made.append(SteeredCluster(*self._settings))
        return self.made[-1]

    def crashed(self) -> int:
        """How many crashes really happened."""
        return sum(epoch < cluster.ran for cluster in self.made for epoch in cluster.crashes)


@contextmanager
def jobs_on(stage: Stage, clusters: Clusters, options: Mapping[str, Any] | None = None) -> Iterator[Clusters]:
    """Environments made in this block have the stage's options, and their jobs run on these clusters."""
    with (
        in_process(epoch_records=stage.epoch_records, clock=stage.clock),
        with_defaults(configuration=stage.options(options), cluster=clusters),
    ):
        yield clusters


def as_bag(results: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: sorted(rows, key=json.dumps) for name, rows in results.items()}


def stage_of(folder: Path, chance: random.Random) -> Stage:
    """Everything that must not matter is left to chance; watermarks are as rare as in Flink, since they do matter."""
    options = {
        "pipeline.auto-watermark-interval": "200 ms",
        "execution.checkpointing.interval": chance.choice(["10 ms", "25 ms"]),
        "execution.checkpointing.max-concurrent-checkpoints": chance.choice([1, 2]),
        "execution.checkpointing.incremental": chance.choice(["true", "true", "false"]),
        "execution.checkpointing.snapshot-compression": chance.choice(["true", "false"]),
        "execution.checkpointing.data-inline-threshold": chance.choice(["0 b", "20 kb"]),
        "execution.checkpointing.local-backup.enabled": chance.choice(["true", "false"]),
    }
    if chance.random() < 0.3:
        options["execution.checkpointing.dir"] = None
    return Stage(folder, ManualClock(1_000_000, tick=chance.choice([1, 3, 6])), chance.choice([1, 1, 2, 3]), options)


def epochs_of(file: str, case: str, stage: Stage) -> int:
    """How many epochs a case has when nothing happens."""
    with jobs_on(stage, Clusters()) as clusters:
        harness(file).run(case)
    return min(cluster.ran for cluster in clusters.made)


# --- crashes ---
def check_crashes(file: str, case: str, folder: Path, seed: int) -> None:
    chance = random.Random(f"{case} {seed}")
    stage = stage_of(folder, chance)
    epochs = epochs_of(file, case, stage)
    when = {chance.randrange(epochs): chance.choice(["before", "after"]) for _ in range(chance.choice([1, 1, 2, 3]))}
    with jobs_on(stage, Clusters(crashes=when)) as clusters:
        assert harness(file).run(case) == recorded(file)[case], f"crashes: {when}"
    assert clusters.crashed() > 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("file", "case"), CASES)
def test_recorded_result_through_crashes(file: str, case: str, seed: int, tmp_path: Path) -> None:
    check_crashes(file, case, tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 160))
@pytest.mark.parametrize(("file", "case"), CASES)
def test_recorded_result_through_many_crashes(file: str, case: str, seed: int, tmp_path: Path) -> None:
    check_crashes(file, case, tmp_path, seed)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("file", "case"), CASES)
def test_recorded_result_with_a_crash_in_the_last_epoch(file: str, case: str, when: str, tmp_path: Path) -> None:
    stage = stage_of(tmp_path, random.Random(1))
    last = epochs_of(file, case, stage) - 1
    with jobs_on(stage, Clusters(crashes={last: when})) as clusters:
        assert harness(file).run(case) == recorded(file)[case]
    assert clusters.crashed() > 0


# --- savepoints ---
def outputs_of(file: str, case: str, parallelism: int) -> dict[str, Any]:
    """The streams of a case, on a new environment."""
    function, _, _, mode = harness(file).CASES[case]
    env: StreamExecutionEnvironment = harness(file).fresh_environment(
        harness(file).module("datastream"), parallelism, mode
    )
    streams = function(env)
    return streams if isinstance(streams, dict) else {"main": streams}


def collected(file: str, case: str, output: str, parallelism: int, stop: Stage | None = None) -> tuple[list[Any], str]:
    """The results of one output to the end, or up to a savepoint whose path is given along."""
    results = outputs_of(file, case, parallelism)[output].execute_and_collect()
    path = ""
    if stop is not None:
        path = Job(JobClient(results._job), defaults().cluster.made[-1]).stop(stop.savepoints)
    return [harness(file).plain(result) for result in results], path


def in_two_parts(file: str, case: str, output: str, folder: Path, parallelisms: tuple[int, int], seed: int) -> Any:
    """The results of one output, from before a savepoint and from after it."""
    chance = random.Random(f"{case} {seed}")
    # With one record an epoch nothing is reordered on its way through several subtasks.
    stage = Stage(folder, ManualClock(now=1_000_000, tick=3), 1, {"pipeline.auto-watermark-interval": "200 ms"})
    with jobs_on(stage, Clusters()) as clusters:
        whole, _ = collected(file, case, output, parallelisms[0])
    hold_at = chance.randrange(clusters.made[0].ran - 2)
    with jobs_on(stage, Clusters(hold_at)):
        first, path = collected(file, case, output, parallelisms[0], stop=stage)
    with jobs_on(stage, Clusters(), {"execution.state-recovery.path": path}):
        second, _ = collected(file, case, output, parallelisms[1])
    return whole, first + second


STREAMING = [
    (file, case, output)
    for file, case in CASES
    for output in recorded(file)[case]
    if harness(file).CASES[case][3] != "BATCH"
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("file", "case", "output"), STREAMING)
def test_recorded_result_in_two_parts(file: str, case: str, output: str, seed: int, tmp_path: Path) -> None:
    _, order, parallelism, _ = harness(file).CASES[case]
    _, got = in_two_parts(file, case, output, tmp_path, (parallelism, parallelism), seed)
    expected = recorded(file)[case][output]
    assert got == expected if order == "list" else as_bag({output: got}) == as_bag({output: expected})


@pytest.mark.parametrize("parallelisms", [(1, 3), (3, 1), (2, 5)])
@pytest.mark.parametrize(("file", "case", "output"), [each for each in STREAMING if each[1] not in LATE])
def test_recorded_result_in_two_parts_of_other_parallelism(
    file: str, case: str, output: str, parallelisms: tuple[int, int], tmp_path: Path
) -> None:
    whole, got = in_two_parts(file, case, output, tmp_path, parallelisms, sum(parallelisms))
    expected = as_bag({output: recorded(file)[case][output]})
    assert as_bag({output: whole}) == expected, "the parallelism alone changes the results"
    assert as_bag({output: got}) == expected
