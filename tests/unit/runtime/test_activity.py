"""Every record that enters or leaves a chain is counted once."""

import pytest

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.observe.slot_activity import Figures
from penstock.service.launch.submission import start
from penstock.testing import in_process

RECORDS = 1000


def activity(build, parallelism=2):
    """By uid: (records in, records out) over all slots, of a job that has ended."""
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        build(env, env.from_collection(list(range(RECORDS)), Types.INT()).uid("source"))
        handle = start(env, "counted")
        handle.result(60)
    found = {}
    for report in handle.view.reports:
        for uid, values in report.activity.items():
            figures = Figures(*values)
            read, sent = found.get(uid, (0, 0))
            found[uid] = read + figures.records_in, sent + figures.records_out
            assert (figures.records_in > 0) <= (figures.bytes_in > 0 or parallelism == 1)
    return found


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_keyed_job(parallelism):
    def build(env, source):
        source.key_by(lambda n: n % 7).reduce(lambda a, b: a + b).uid("sums").print().uid("out")

    assert activity(build, parallelism) == {"source": (0, RECORDS), "sums": (RECORDS, 0)}


def test_what_is_sent_to_all_counts_once_where_it_leaves():
    def build(env, source):
        source.broadcast().map(lambda n: n).uid("map").print().uid("out")

    assert activity(build) == {"source": (0, RECORDS), "map": (2 * RECORDS, 0)}


def test_chains_that_meet_in_one_slot():
    def build(env, source):
        source.map(lambda n: n).uid("first").filter(lambda n: n % 2 == 0).uid("second").start_new_chain().print()

    found = activity(build, 1)
    assert found["second"] == (RECORDS, 0)
