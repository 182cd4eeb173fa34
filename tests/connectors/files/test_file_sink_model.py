"""Random writes, checkpoints and crashes: readers see every record of complete checkpoints once, and nothing twice."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Encoder
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
)
from tests.connectors.files.driving import KINDS, SinkJob, base_of, hidden, lines


class ByRest(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"rest={element % 3}"


ASSIGNERS = [BucketAssigner.base_path_bucket_assigner(), ByRest()]
POLICIES = [
    RollingPolicy.on_checkpoint_rolling_policy(),
    RollingPolicy.default_rolling_policy(),
    RollingPolicy.default_rolling_policy(part_size=8, rollover_interval=100, inactivity_interval=60),
]
STRATEGIES = [
    None,
    FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build(),
    FileCompactStrategy.builder().set_size_threshold(10).build(),
]
STEPS = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 4), st.integers(0, 3)),
    st.tuples(st.just("checkpoint")),
    st.tuples(st.just("savepoint")),
    st.tuples(st.just("complete")),
    st.tuples(st.just("time"), st.integers(1, 80)),
    st.tuples(st.just("crash"), st.integers(1, 3)),
)


class Model:
    """A sink job beside what readers have to see."""

    def __init__(self, sink, base):
        self.base = base
        self.job = SinkJob(sink, parallelism=2)
        self.written = 0
        self.savepoints = 0
        self.taken = {}
        """By number: a checkpoint and how many records it covers."""
        self.newest = None
        """The last complete checkpoint."""

    def write(self, count, subtask):
        self.job.write(*range(self.written, self.written + count), subtask=subtask)
        self.written += count

    def checkpoint(self):
        taken = self.job.checkpoint()
        self.taken[self.job.number] = (taken, self.written)

    def savepoint(self):
        """Take a savepoint; nobody is told that it is complete."""
        self.savepoints += 1
        self.job.checkpoint(savepoint=True)

    def complete(self):
        """The newest checkpoint is complete, and the job hears of it."""
        if self.taken:
            number = max(self.taken)
            self.newest = self.taken[number]
            self.taken.clear()
            self.job.complete(number)

    def time(self, millis):
        self.job.pass_time(millis)

    def crash(self, parallelism):
        """All processes die. A checkpoint may be complete without anybody having heard of it; the source goes on from
        it."""
        if self.taken and self.written % 2:
            self.newest = self.taken[max(self.taken)]
        self.taken.clear()
        checkpoint, self.written = self.newest or (None, 0)
        self.job.crash(checkpoint, parallelism)

    def nothing_comes_twice(self):
        seen = Counter(map(int, lines(self.base)))
        covered = self.newest[1] if self.newest else 0
        assert not seen or (max(seen.values()) == 1 and max(seen) < covered)

    def end(self):
        self.job.checkpoint_and_complete(end=True)
        assert Counter(map(int, lines(self.base))) == Counter(range(self.written))
        if self.savepoints == 0:
            assert hidden(self.base) == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_record_of_a_complete_checkpoint_is_seen_once(kind):
    @settings(max_examples=200, deadline=None)
    @given(
        st.lists(STEPS, max_size=25),
        st.sampled_from(ASSIGNERS),
        st.sampled_from(POLICIES),
        st.sampled_from(STRATEGIES),
    )
    def check(steps, assigner, policy, strategy):
        with tempfile.TemporaryDirectory() as folder:
            base = base_of(kind, Path(folder))
            builder = FileSink.for_row_format(base, Encoder.simple_string_encoder())
            builder.with_bucket_assigner(assigner).with_rolling_policy(policy).with_bucket_check_interval(50)
            if strategy is not None:
                builder.enable_compact(strategy, FileCompactor.concat_file_compactor())
            model = Model(builder.build(), base)
            for name, *arguments in steps:
                getattr(model, name)(*arguments)
                model.nothing_comes_twice()
            model.end()

    check()
