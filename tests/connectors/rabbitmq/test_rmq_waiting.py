"""A queue that is waited for between epochs, as on Spark: nothing is lost or doubled, and the broker hears of it."""

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.rabbitmq import RMQSource
from penstock.service.launch.submission import with_defaults
from penstock.testing import in_process
from tests.connectors.rabbitmq.queues import UntilEnd
from tests.unit.runtime.test_bell import RingingCluster


@pytest.fixture
def environment(tmp_path):
    with in_process(), with_defaults(cluster=lambda settings, deployment: RingingCluster()):

        def make(**options):
            usual = {
                "execution.checkpointing.interval": "50 ms",
                "execution.checkpointing.dir": f"file://{tmp_path}/checkpoints",
            }
            return StreamExecutionEnvironment(Configuration.from_dict(usual | options)).set_parallelism(1)

        yield make


def messages(env, queues, queue, **settings):
    source = RMQSource(queues.config(**settings), queue, True, UntilEnd())
    return env.add_source(source).uid("messages")


def test_what_was_read_is_acknowledged_while_nothing_comes(environment, queues, queue):
    """The broker sends ten ahead; the rest comes only when those were acknowledged."""
    texts = [str(n) for n in range(100)]
    queues.publish(queue, *texts)
    with messages(environment(), queues, queue, prefetch_count=10).execute_and_collect() as results:
        assert [next(results) for _ in texts] == texts
    assert set(queues.contents(queue)) <= set(texts[-10:])


def test_a_savepoint_holds_what_was_read_ahead(environment, queues, queue, tmp_path):
    texts = [str(n) for n in range(200)]
    queues.publish(queue, *texts[:100])
    results = messages(environment(), queues, queue).execute_and_collect()
    seen = [next(results)]
    queues.publish(queue, *texts[100:])
    path = results._job.trigger_savepoint(str(tmp_path / "savepoints"), stop=True, drain=False)
    seen.extend(results)
    again = environment(**{"execution.state-recovery.path": path})
    with messages(again, queues, queue).execute_and_collect() as results:
        while len(seen) < len(texts):
            seen.append(next(results))
    assert seen == texts
