"""Jobs whose parallelism follows the cores: they go on with fewer, grow again, and lose and double nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from penstock.common import Configuration, Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import ConfigurationError, NotEnoughSlots, SlotLost
from penstock.service.launch.submission import with_defaults
from penstock.testing.cluster import InProcessCluster
from tests.server.helping import check_counts
from tests.spark.kill_job import FolderSink
from tests.waiting import until

KEYS = 8


class Cores(InProcessCluster):
    """A cluster whose number of cores changes. A job that has more slots than there are cores loses one."""

    def __init__(self, cores: int) -> None:
        super().__init__()
        self.cores = cores
        self.deployed: list[int] = []
        """The number of slots of each attempt."""

    def capacity(self) -> int:
        return self.cores

    def deploy(self, deployment):
        if deployment.plan.slots > self.cores:
            raise NotEnoughSlots(f"there are {self.cores} cores")
        self.deployed.append(deployment.plan.slots)
        return super().deploy(deployment)

    def run(self, command):
        if len(self.slots) > self.cores:
            raise SlotLost("its core is gone")
        return super().run(command)


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value} {value % KEYS} {count}"


def options(folder: Path, **more: str | None) -> Configuration:
    """Usual options, and others; those that are None are not set."""
    chosen = {
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "jobmanager.scheduler": "adaptive",
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "50 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **more,
    }
    return Configuration.from_dict({name: value for name, value in chosen.items() if value is not None})


def started(cores: Cores, folder: Path, **more: str):
    for part in ("prepared", "visible"):
        (folder / part).mkdir(parents=True)
    with with_defaults(cluster=lambda settings, deployment: cores):
        env = StreamExecutionEnvironment.get_execution_environment(options(folder, **more)).set_parallelism(4)
        env.set_max_parallelism(16)
        numbers = env.generate(rate=500).uid("numbers")
        counted = numbers.key_by(lambda number: number % KEYS).process(Count()).uid("count")
        counted.sink_to(FolderSink(folder)).uid("sink")
        return env.execute_async("adaptive")


def await_slots(handle, cores: Cores, slots: int) -> None:
    """Wait until the job runs with so many slots, and has taken checkpoints with them."""
    seen = len(cores.deployed)
    until(lambda: cores.deployed[-1:] == [slots], progress=lambda: len(cores.deployed))
    assert len(cores.deployed) >= seen
    view = handle._job.view
    until(
        lambda: handle._job.view.checkpoints.completed_in_all >= 2 and handle._job.view.plan.slots == slots,
        progress=lambda: (handle._job.view.epoch, handle._job.view.checkpoints.completed_in_all),
    )
    assert view.failures == () or all(failure.kind in ("SlotLost", "NotEnoughSlots") for failure in view.failures)


@pytest.mark.parametrize("setting", [{}, {"jobmanager.scheduler": "default", "scheduler-mode": "reactive"}])
def test_a_job_goes_on_with_fewer_cores_and_grows_again(tmp_path, setting):
    cores = Cores(4)
    handle = started(cores, tmp_path, **setting)
    await_slots(handle, cores, 4)
    cores.cores = 2
    await_slots(handle, cores, 2)
    cores.cores = 1
    await_slots(handle, cores, 1)
    cores.cores = 9
    await_slots(handle, cores, 4)
    handle.cancel().result()
    until(lambda: handle.get_job_status().result().is_terminal_state())
    shown = [change.status.name for change in handle._job.view.changes]
    assert "SUSPENDED" not in shown and "FAILED" not in shown
    assert shown[-1] == "CANCELED"
    assert handle._job.view.attempt >= 3
    check_counts(tmp_path, 1)


def test_a_job_starts_with_the_cores_that_there_are(tmp_path):
    cores = Cores(3)
    handle = started(cores, tmp_path)
    await_slots(handle, cores, 3)
    assert cores.deployed == [3]
    handle.cancel().result()


def test_cores_that_are_still_coming_are_waited_for(tmp_path):
    cores = Cores(0)
    more = {"jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "1 h"}
    handle = started(cores, tmp_path, **more)
    threading.Timer(0.3, lambda: setattr(cores, "cores", 2)).start()
    until(lambda: cores.cores == 2)
    assert cores.deployed == []
    cores.cores = 4
    await_slots(handle, cores, 4)
    handle.cancel().result()


def test_without_the_adaptive_scheduler_the_restart_strategy_decides(tmp_path):
    cores = Cores(4)
    handle = started(cores, tmp_path, **{"jobmanager.scheduler": "default"})
    await_slots(handle, cores, 4)
    cores.cores = 2
    until(lambda: any(failure.kind == "NotEnoughSlots" for failure in handle._job.view.failures))
    assert set(cores.deployed) == {4}
    cores.cores = 4
    await_slots(handle, cores, 4)
    handle.cancel().result()


# --- what cannot be ---
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"jobmanager.scheduler": "magic"}, r"jobmanager.scheduler.*'magic'.*default, adaptive"),
        ({"scheduler-mode": "proactive"}, r"scheduler-mode.*'proactive'.*reactive"),
        ({"heartbeat.timeout": "0 s"}, r"heartbeat.timeout.*at least 1 ms"),
        ({"slot.request.timeout": "0 s"}, r"slot.request.timeout.*at least 1 ms"),
        ({"heartbeat.interval": "51 s"}, r"heartbeat.interval is 51000 ms, and heartbeat.timeout is 50000 ms"),
        ({"execution.checkpointing.dir": None}, r"execution.checkpointing.dir is not set"),
    ],
)
def test_settings_that_contradict_each_other(tmp_path, setting, said):
    cores = Cores(4)
    with pytest.raises(ConfigurationError, match=said):
        started(cores, tmp_path, **setting)
    assert cores.deployed == []
