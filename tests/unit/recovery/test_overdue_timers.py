"""Processing-time timers whose time came while the job was down."""

from penstock.common import Configuration
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.testing import ManualClock, in_process, pause, scripted

WAIT, DOWN = 5_000, 60_000


class Alarm(KeyedProcessFunction):
    """Sets a timer with the first record, and dies once at the second."""

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value, ctx):
        service = ctx.timer_service()
        if value == "first":
            service.register_processing_time_timer(service.current_processing_time() + WAIT)
        elif self.attempt == 0:
            raise ValueError("down for a while")
        yield value

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.timer_service().current_processing_time() - timestamp


def test_they_fire_at_once_after_the_recovery():
    """They fire before the record that is read again, although it came before they were due."""
    with in_process(epoch_records=1, clock=ManualClock(now=1_000_000, tick=1)):
        env = StreamExecutionEnvironment.get_execution_environment(Configuration())
        env.enable_checkpointing(10).set_parallelism(1)
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, DOWN))
        stream = scripted(env, "first", *[pause()] * 5, "second").key_by(lambda _: 0).process(Alarm())
        first, timer, second = stream.execute_and_collect()
    assert (first, second) == ("first", "second")
    assert timer[0] == "timer" and DOWN - WAIT < timer[1] <= DOWN
