"""What is seen of a job while it runs and after its end."""

import dataclasses

import pytest

from penstock.common import Configuration
from penstock.common.job import JobStatus
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.engine.checkpoint.checkpoint_history import CheckpointStatus
from penstock.testing import ManualClock, in_process

FAILED = []


class FailsOnce(MapFunction):
    def open(self, runtime_context):
        self.counter = runtime_context.get_metrics_group().counter("seen")

    def map(self, value):
        self.counter.inc()
        if value == 60 and not FAILED:
            FAILED.append(value)
            raise ValueError("once")
        return value


@pytest.fixture
def view(tmp_path):
    FAILED.clear()
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "20 ms")
    configuration.set_string("execution.checkpointing.dir", tmp_path.as_uri())
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "3 s")
    with in_process(epoch_records=10, clock=ManualClock(now=5_000, tick=5)):
        env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
        env.from_sequence(1, 200).map(FailsOnce()).uid("fails").name("Fails").discard()
        client = env.execute_async("watched")
        client.get_job_execution_result().result(60)
    return client._job.view


def test_every_change_of_status_has_its_time(view):
    statuses = [change.status for change in view.changes]
    assert statuses == [JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.RUNNING, JobStatus.FINISHED]
    times = [change.when for change in view.changes]
    assert times == sorted(times) and times[2] - times[1] >= 3_000
    assert view.time_of(JobStatus.FINISHED) == times[3] and view.time_of(JobStatus.CANCELED) is None
    assert view.status is JobStatus.FINISHED and view.attempt == 1 and view.restart_at is None


def test_a_failure_names_its_operator_slot_and_record(view):
    (failure,) = view.failures
    assert (failure.operator, failure.uid, failure.slot, failure.record) == ("Fails", "fails", 0, "60")
    assert failure.kind == "JobFailed" and failure.attempt == 0 and "ValueError: once" in failure.traceback
    assert failure.when == view.time_of(JobStatus.RESTARTING)


def test_operators_have_figures_for_each_subtask(view):
    operator = next(operator for operator in view.operators if operator.uid == "fails")
    assert (operator.name, operator.parallelism, [s.slot for s in operator.subtasks]) == ("Fails", 2, [0, 1])
    assert all(0 < subtask.metrics["seen"] <= 100 for subtask in operator.subtasks)
    assert operator.watermark == view.watermarks["fails"]


def test_checkpoints_have_the_share_of_each_slot(view):
    checkpoints = view.checkpoints
    assert checkpoints.completed_in_all == len(checkpoints.completed) > 1 and not checkpoints.in_progress
    for record in checkpoints.completed:
        assert record.status is CheckpointStatus.COMPLETED and record.path and record.ended >= record.started
        assert [share.slot for share in record.slots] == [0, 1] and record.expected == 2
        assert record.size == sum(share.size for share in record.slots) > 0
        assert all(record.started <= share.acknowledged <= record.ended for share in record.slots)
    restored = checkpoints.restored
    assert restored is not None and checkpoints.restored_in_all == 1
    assert restored.path == {record.number: record.path for record in checkpoints.completed}[restored.number]


def test_the_share_of_a_slot_is_divided_up_by_operators(view):
    uids = {operator.uid for operator in view.operators}
    for record in view.checkpoints.completed:
        for share in record.slots:
            assert set(share.operators) <= uids and 0 < sum(share.operators.values()) < share.size


def test_it_cannot_be_changed(view):
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.epoch = 0
