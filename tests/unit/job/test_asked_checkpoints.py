"""A client asks for a checkpoint outside its turn."""

import pytest

from penstock.api.functions.source_functions import SourceFunction
from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import CheckpointFailed, UnsupportedOperation
from penstock.service.launch.submission import start
from penstock.testing import in_process


class Ticks(SourceFunction):
    """Counts until it is cancelled."""

    def run(self, context):
        self.going = True
        while self.going:
            context.collect(1)

    def cancel(self):
        self.going = False


def job(checkpoints, folder):
    env = StreamExecutionEnvironment.get_execution_environment()
    if checkpoints:
        env.enable_checkpointing(3_600_000)
        env.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{folder}")
    env.add_source(Ticks(), type_info=Types.INT()).key_by(lambda n: n).reduce(lambda a, b: a + b).print()
    return start(env, "ticks")


@pytest.mark.parametrize("full", [False, True])
def test_it_is_taken_at_once_and_its_number_returned(tmp_path, full, capsys):
    with in_process():
        handle = job(True, tmp_path)
        numbers = [handle.trigger_checkpoint(full) for _ in range(3)]
        completed = [record.number for record in handle.view.checkpoints.completed]
        handle.cancel()
    assert numbers == [1, 2, 3] == completed
    with pytest.raises(CheckpointFailed, match="no checkpoint can be taken"):
        handle.trigger_checkpoint()


def test_a_job_without_checkpoints_refuses(tmp_path, capsys):
    with in_process():
        handle = job(False, tmp_path)
        with pytest.raises(UnsupportedOperation, match=r"execution\.checkpointing\.interval"):
            handle.trigger_checkpoint()
        handle.cancel()
