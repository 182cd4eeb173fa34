"""What a job still does between its last savepoint and its end belongs to whoever goes on from that savepoint."""

from penstock.common import Configuration, Types
from penstock.common.job import JobClient
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import in_process, scripted


class Ticking(KeyedProcessFunction):
    """Counts its timers, and always sets the next one: every epoch has a result."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.on_timer(0, ctx)

    def on_timer(self, timestamp, ctx):
        service = ctx.timer_service()
        service.register_processing_time_timer(service.current_processing_time() + 1)
        self.count.update((self.count.value() or 0) + 1)
        return [self.count.value()]


def test_results_behind_the_savepoint_are_not_handed_out(tmp_path):
    collected, path = [], None
    for _ in range(3):
        configuration = Configuration()
        if path is not None:
            configuration.set_string("execution.state-recovery.path", path)
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment(configuration)
            env.set_parallelism(1).set_buffer_timeout(5).enable_checkpointing(10)
            source = scripted(env, "start", stay=True).uid("start").key_by(lambda _: 0)
            with source.process(Ticking()).uid("ticking").execute_and_collect() as results:
                collected += [next(results) for _ in range(5)]
                path = JobClient(results._job).stop_with_savepoint(False, tmp_path.as_uri()).result(60)
                collected += results
    assert collected == list(range(collected[0], collected[0] + len(collected)))
