"""Clients that ask all the time see exactly what dicts say for the cut that the answer names, and the job nothing."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.datastream import EmbeddedRocksDBStateBackend, HashMapStateBackend, StreamExecutionEnvironment
from penstock.engine.state.key_groups import key_group
from penstock.errors import StateUnavailable
from penstock.service.launch.submission import with_defaults
from penstock.testing import ManualClock, in_process, pause, scripted
from tests.model.queryable_parts import APPLIED, KEYS, KINDS, AskingCluster, EveryKind, Model, in_full

RECORDS = st.tuples(st.sampled_from(KEYS), st.sampled_from(KINDS), st.integers(0, 9) | st.none())
SCRIPTS = st.lists(RECORDS | st.just(None), min_size=5, max_size=40)
RUNS = {HashMapStateBackend: 300, EmbeddedRocksDBStateBackend: 40}


@pytest.mark.parametrize("backend", RUNS, ids=lambda backend: backend.__name__)
def test_every_answer_is_what_the_cut_it_names_holds(backend):
    answered = within = 0

    @settings(max_examples=RUNS[backend], deadline=None, database=None)
    @given(
        script=SCRIPTS,
        parallelism=st.integers(1, 3),
        records=st.integers(1, 6),
        ttl=st.none() | st.integers(2, 6),
        seed=st.integers(0, 2**32),
    )
    def play(script, parallelism, records, ttl, seed):
        nonlocal answered, within
        cluster = AskingCluster(Random(seed))
        with (
            in_process(epoch_records=records, clock=ManualClock(now=1000, tick=1)),
            with_defaults(cluster=lambda settings, deployment: cluster),
        ):
            environment = StreamExecutionEnvironment().set_parallelism(parallelism)
            environment.set_state_backend(backend()).set_buffer_timeout(seed % 4)
            steps = [pause() if step is None else step for step in script]
            scripted(environment, *steps).key_by(lambda record: record[0]).process(EveryKind(ttl)).discard()
            handle = environment.execute_async()._job
            cluster.start(handle)
            handle.result(60)
        cuts = check(cluster, ttl)
        answered += len(cuts)
        within += sum(cut.slot is not None for cut in cuts)

    play()
    assert answered > 10 * RUNS[backend] / 2 and within > RUNS[backend]


def check(cluster, ttl):
    """The cuts of the answers, each of which is right."""
    cuts = []
    for request, future in cluster.asked:
        if isinstance(future.exception(60), StateUnavailable):
            continue  # the job has ended before it could answer
        answer, entries = in_full(cluster.handle, request, future)
        check_entries(request, entries, shown_at(answer.cut, answer.kind, cluster, ttl))
        assert f"q-{answer.kind}" == request.name
        cuts.append(answer.cut)
    return cuts


def shown_at(cut, kind, cluster, ttl):
    """What the model shows at a cut."""
    model = Model(ttl)
    for record, now in APPLIED[: cluster.cuts[cut.attempt, cut.epoch, cut.slot, cut.step]]:
        model.apply(record, now)
    return model.shown(kind, cut.processing_time)


def check_entries(request, entries, shown):
    if request.keys is not None:
        assert [entry.key for entry in entries] == list(request.keys)
        assert {entry.key: entry.value for entry in entries if entry.found} == {
            key: value for key, value in shown.items() if key in request.keys
        }
        return
    first, last = request.key_groups or (0, 127)
    expected = {key: value for key, value in shown.items() if first <= key_group(key, 128) <= last}
    assert {entry.key: entry.value for entry in entries} == expected and len(entries) == len(expected)
