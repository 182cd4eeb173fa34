"""A job with a loop that is stopped while records are under way, and goes on with another parallelism."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from penstock.testing import pause, scripted
from tests.recovery.conftest import Stage
from tests.recovery.programs import STORES, StoreSink

NUMBERS = range(1, 40)
ROUNDS = 25


def rounds(store):
    """Each number goes through the loop 25 times before it leaves it."""

    def build(env):
        numbers = scripted(env, *[(n, 0) for n in NUMBERS], *[pause()] * 3).uid("numbers").set_parallelism(1)
        loop = numbers.rebalance().iterate().uid("loop")
        step = loop.map(lambda r: (r[0], r[1] + 1)).uid("step")
        loop.close_with(step.filter(lambda r: r[1] < ROUNDS).uid("back").rebalance())
        done = step.filter(lambda r: r[1] == ROUNDS).map(lambda r: ("done", *r)).uid("done")
        done.sink_to(StoreSink(store)).uid("sink").set_parallelism(1)

    return build


def results(store):
    return Counter(record for records in STORES[store].committed.values() for record in records)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 2)])
@pytest.mark.parametrize("epoch", [9, 17])
def test_records_on_their_way_back_are_in_savepoints(stage: Stage, before, after, epoch):
    store = f"loop {before} {after} {epoch}"
    path = stage.start(rounds(store), before, hold_at=epoch).stop(stage.savepoints)
    assert sum(results(store).values()) < len(NUMBERS)
    stage.run(rounds(store), after, execution_state__recovery_path=path)
    assert results(store) == Counter(("done", n, ROUNDS) for n in NUMBERS)


def test_a_drained_loop_says_that_no_record_returns(stage: Stage, caplog):
    with caplog.at_level(logging.WARNING):
        stage.start(rounds("drained"), 2, hold_at=9).stop(stage.savepoints, drain=True)
    assert any("do not return" in record.getMessage() for record in caplog.records)
