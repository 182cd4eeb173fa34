"""Any order of messages, checkpoints, cut cables and crashes: what survives holds every message once."""

import uuid

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.connectors.rabbitmq.queues import Reading, sever
from tests.waiting import Patience

STEPS = st.lists(
    st.sampled_from(["publish", "publish", "read", "read", "snapshot", "complete", "complete", "cut", "crash"]),
    min_size=5,
    max_size=16,
)


class World:
    """A reader, and what a job would hold: what was read, what each snapshot holds, and the last that is complete."""

    def __init__(self, queues):
        self.queues = queues
        self.queue = f"queue-{uuid.uuid4().hex[:8]}"
        self.published = []
        self.held = []
        self.number = 0
        self.snapshots = {}
        self.safe = ([], None)
        self.reading = Reading(queues.source(self.queue))

    def publish(self):
        texts = [f"m{len(self.published) + n}" for n in range(3)]
        self.queues.publish(self.queue, *texts)
        self.published += texts

    def read(self, wait=0.05):
        fetched = self.reading.reader.fetch(2, wait)
        self.held += [value for part in fetched for value in part.values]

    def snapshot(self):
        self.number += 1
        self.reading.reader.checkpoint_id = self.number
        self.snapshots[self.number] = list(self.held), list(self.reading.reader.snapshot_state())

    def complete(self):
        """Complete the oldest checkpoint under way; those taken later may still fail."""
        if self.snapshots:
            number = min(self.snapshots)
            self.safe = self.snapshots.pop(number)
            self.reading.reader.notify_checkpoint_complete(number)

    def cut(self):
        for consumer in self.reading.reader._consumers:
            sever(consumer._link)

    def crash(self):
        self.cut()
        self.snapshots.clear()
        held, splits = self.safe
        self.held = list(held)
        self.reading = Reading(self.queues.source(self.queue), splits)

    def finish(self):
        patience = Patience()
        while len(self.held) < len(self.published):
            assert not patience.spent(len(self.held)), f"{len(self.held)} of {len(self.published)}"
            self.read(0.5)
        self.read(0.05)
        self.snapshot()
        while self.snapshots:
            self.complete()
        self.reading.die()


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_every_message_is_held_once(queues, steps):
    world = World(queues)
    for step in steps:
        getattr(world, step)()
    world.finish()
    assert sorted(world.held) == sorted(world.published)
