"""Whole jobs between two queues: through a restart of the broker, and through crashes of every kind."""

import logging
import threading
from collections import Counter

import pytest

from penstock.common import Configuration, SimpleStringSchema
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.rabbitmq import RMQSink, RMQSource
from penstock.datastream.functions import MapFunction
from penstock.testing import in_process
from penstock.testing.crashes import StoreSink, crash_point, simulate
from tests.connectors.rabbitmq.queues import END, UntilEnd, sever
from tests.waiting import until

SEEDS = range(1, 13)


def environment(tmp_path, interval="50 ms"):
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path))
    configuration.set_string("execution.checkpointing.interval", interval)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def test_from_one_queue_to_another(queues, queue, tmp_path):
    numbers = [str(n) for n in range(500)]
    queues.publish(queue, *numbers, END)
    with in_process(epoch_records=50):
        env = environment(tmp_path)
        env.set_parallelism(2)
        stream = env.add_source(queues.source(queue), "queue")
        stream.map(lambda text: text + "!").add_sink(RMQSink(queues.config(), f"{queue}-out", SimpleStringSchema()))
        env.execute()
    assert Counter(queues.contents(f"{queue}-out")) == Counter(f"{n}!" for n in numbers)
    assert queues.contents(queue) == []


def test_a_job_without_checkpoints_acknowledges_as_it_reads(queues, queue):
    queues.publish(queue, "a", "b", END)
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
        assert sorted(env.add_source(queues.source(queue), "queue").execute_and_collect()) == ["a", "b"]
    assert queues.contents(queue) == []


def test_a_broker_that_restarts_in_the_middle(broker, queues, queue, tmp_path):
    first, second = [f"a{n}" for n in range(50)], [f"b{n}" for n in range(50)]
    queues.publish(queue, *first)

    def restart():
        until(lambda: queues.ready(f"{queue}-out"), every=0.1)
        broker.stop()
        broker.start()
        queues.publish(queue, *second, END)

    patient = queues.config(network_recovery_interval=1000)
    with in_process(epoch_records=20):
        env = environment(tmp_path)
        source = RMQSource(patient, queue, True, UntilEnd())
        with_queue = RMQSink(patient, f"{queue}-out", SimpleStringSchema())
        queues.publish(f"{queue}-out")
        env.add_source(source, "queue").add_sink(with_queue)
        thread = threading.Thread(target=restart)
        thread.start()
        try:
            env.execute()
        finally:
            thread.join()
    assert sorted(set(queues.contents(f"{queue}-out"))) == sorted(first + second)


class Simulated(RMQSource):
    """When a reader is made, the slots that lived before are dead, and their sockets with them."""

    alive = []

    def create_reader(self, context):
        while Simulated.alive:
            for consumer in Simulated.alive.pop()._consumers:
                sever(consumer._link)
        reader = super().create_reader(context)
        told = reader.notify_checkpoint_complete

        def notify(checkpoint_id):
            crash_point("before the acknowledgement")
            told(checkpoint_id)
            crash_point("after the acknowledgement")

        reader.notify_checkpoint_complete = notify
        Simulated.alive.append(reader)
        return reader


class Fragile(MapFunction):
    def map(self, value):
        crash_point("mapping")
        return value


@pytest.fixture
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_no_message_is_lost_or_counted_twice_whatever_dies(queues, queue, quiet):
    numbers = [str(n) for n in range(40)]

    def run(name, seed, steps=None):
        queues.publish(name, *numbers, END)

        def build(env):
            env.set_parallelism(1)
            source = Simulated(queues.config(), name, True, UntilEnd())
            env.add_source(source, "queue").map(Fragile()).sink_to(StoreSink("numbers"))

        return simulate(build, seed, steps=steps)

    whole = run(queue, 0)
    assert whole.store.visible("numbers") == numbers
    crashes = 0
    for seed in SEEDS:
        outcome = run(f"{queue}-{seed}", seed, whole.steps)
        seen = Counter(outcome.store.visible("numbers"))
        assert seen == Counter(numbers), f"seed {seed}, {outcome.crashes}, {outcome.settings}"
        crashes += len(outcome.crashes)
    assert crashes > len(SEEDS) / 2
