"""A loop in resident slots on Spark: feedback crosses processes, and a lost slot changes nothing."""

import os
import signal

import pytest

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

pytestmark = pytest.mark.spark
ROUNDS = 30


class CountVisits(KeyedProcessFunction):
    """Counts the visits of a key, and dies once on the way if there is a file to delete first."""

    def __init__(self, flag):
        self.flag = flag

    def open(self, context):
        self.visits = context.get_state(ValueStateDescriptor("visits", Types.INT()))

    def process_element(self, value, ctx):
        visits = (self.visits.value() or 0) + 1
        self.visits.update(visits)
        if visits == ROUNDS // 2 and os.path.exists(self.flag):
            os.remove(self.flag)
            os.kill(os.getpid(), signal.SIGKILL)
        yield value[0], visits


def test_a_loop_survives_a_lost_slot(tmp_path):
    flag = tmp_path / "flag"
    flag.touch()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    loop = env.from_collection([(n, 0) for n in range(50)]).iterate().uid("loop")
    visits = loop.key_by(lambda r: r[0]).process(CountVisits(str(flag))).uid("visits")
    loop.close_with(visits.filter(lambda r: r[1] < ROUNDS).rebalance())
    results = sorted(visits.filter(lambda r: r[1] == ROUNDS).execute_and_collect())
    assert not flag.exists(), "no slot was lost"
    assert results == [(n, ROUNDS) for n in range(50)]
