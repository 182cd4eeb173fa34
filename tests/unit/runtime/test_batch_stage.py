"""The stages of a BATCH job one by one, as the tasks of a Spark job run them, with parcels that come in any order."""

import pickle
import random

import pytest

from penstock.common.job import JobID
from penstock.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors.base import Committer, Sink, SinkWriter
from penstock.datastream.functions import CoMapFunction, KeyedProcessFunction, ProcessFunction
from penstock.engine.batch.parcels import Arrivals, Origin, Parcel
from penstock.engine.batch.stage import BatchStage, InputCut, reports_of
from penstock.engine.job.deploying import deployment_of
from penstock.engine.records.failures import OperatorFailed
from penstock.service.launch.submission import plan_of

ODD = OutputTag("odd")


def environment(parallelism):
    env = StreamExecutionEnvironment()
    env.set_parallelism(parallelism)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env


def run(build, parallelism=2, seed=0, **settings):
    """The results of a job by sink, every task run by itself on what a shuffle in random order gives it."""
    env = environment(parallelism)
    build(env)
    deployment = deployment_of(plan_of(env, None), JobID().hex, **settings)
    plan, chance = deployment.plan, random.Random(seed)
    arriving = {slot: [] for slot in range(plan.slots)}
    for stage in range(plan.stages):
        sent = {slot: [] for slot in range(plan.slots)}
        for slot in range(plan.slots):
            task = BatchStage(slot, pickle.loads(pickle.dumps(deployment)), stage)
            for target, parcel in task.run(arriving[slot], {}):
                sent[target].append(pickle.loads(pickle.dumps(parcel)))
        for parcels in sent.values():
            chance.shuffle(parcels)
        arriving = sent
    parcels = [parcel for slot in sorted(arriving) for parcel in arriving[slot]]
    reports = reports_of(plan, parcels, 0)
    assert all(report.finished for report in reports)
    return [value for report in reports for _, payload in report.results for value in pickle.loads(payload)]


def collecting(stream):
    from penstock.engine.operators.sinks.sink_operators import CollectSink
    from penstock.graph.transformations import Transformation

    stream._environment.add_node(Transformation("Collect", CollectSink(), [stream.input_refs()], kind="sink"))


class Totals(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value
        if value % 2:
            yield ODD, -value


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_exchanges_and_side_outputs(parallelism, seed):
    def build(env):
        numbers = env.from_sequence(0, 99)
        keyed = numbers.rebalance().map(lambda n: n).key_by(lambda n: n % 7).process(Totals())
        collecting(keyed.get_side_output(ODD).union(keyed.map(lambda n: n + 1000)))

    expected = sorted([n + 1000 for n in range(100)] + [-n for n in range(1, 100, 2)])
    assert sorted(run(build, parallelism, seed)) == expected


def test_an_edge_that_skips_a_stage_passes_through():
    class Both(CoMapFunction):
        def map1(self, value):
            return "long", value

        def map2(self, value):
            return "short", value

    def build(env):
        numbers = env.from_collection(list(range(20)))
        long = numbers.key_by(lambda n: n).map(lambda n: n).rebalance().map(lambda n: n)
        collecting(long.rebalance().connect(numbers.rebalance()).map(Both()))

    expected = sorted([(way, n) for way in ("long", "short") for n in range(20)])
    assert sorted(run(build)) == expected


def test_the_same_job_gives_the_same_results_whatever_the_order_of_arrival():
    class Numbered(ProcessFunction):
        def open(self, runtime_context):
            self.count = 0

        def process_element(self, value, ctx):
            self.count += 1
            yield value, self.count

    def build(env):
        collecting(env.from_collection(list(range(500))).rebalance().map(lambda n: n).shuffle().process(Numbered()))

    first, *others = [run(build, 3, seed) for seed in range(4)]
    assert all(other == first for other in others)


def test_operators_of_different_parallelisms():
    def build(env):
        stream = env.from_collection(list(range(50))).map(lambda n: n).set_parallelism(3)
        collecting(stream.key_by(lambda n: n % 5).reduce(lambda a, b: a + b).set_parallelism(1).rescale().map(str))

    assert sorted(run(build, 2), key=int) == [str(sum(range(k, 50, 5))) for k in range(5)]


def test_output_leaves_while_a_keyed_operator_drains():
    def build(env):
        texts = env.from_collection(list(range(20_000))).map(lambda n: f"{n:0300}")
        texts.key_by(lambda t: t).map(lambda t: t).rebalance().map(len).discard()

    env = environment(2)
    build(env)
    deployment = deployment_of(plan_of(env, None), JobID().hex, sort_memory=1 << 20)
    first = [parcel for slot in (0, 1) for target, parcel in BatchStage(slot, deployment, 0).run([], {}) if target == 0]
    sizes = [
        sum(len(frame) for _, frames in parcel.contents for frame in frames)
        for _, parcel in BatchStage(0, deployment, 1).run(first, {})
        if parcel.stage == 2
    ]
    assert len(sizes) > 2 and max(sizes) < 4 << 20


def test_an_error_names_its_operator_and_stage():
    def build(env):
        env.from_collection([1, 0]).rebalance().map(lambda n: 1 // n).discard()

    with pytest.raises(OperatorFailed) as raised:
        run(build)
    failure = raised.value.failure
    assert (failure.operator, failure.record, failure.stage) == ("Map", "0", 1)


def test_input_that_is_cut_anywhere_is_no_error_of_the_program():
    """PySpark ends a task's input where an executor is lost."""
    env = environment(2)
    env.from_sequence(1, 5000).key_by(lambda n: n % 7).map(lambda n: n).discard()
    deployment = deployment_of(plan_of(env, None), JobID().hex)

    def task(slot, stage):
        return BatchStage(slot, pickle.loads(pickle.dumps(deployment)), stage)

    sent = [sent for slot in (0, 1) for sent in task(slot, 0).run([], {})]
    parcels = [parcel for target, parcel in sent if target == 0]
    needed = max(index for index, parcel in enumerate(parcels) if parcel.stage == 1)
    for cut in range(needed + 1):
        with pytest.raises(InputCut, match="stage 1 of slot 0 has not received all input"):
            list(task(0, 1).run(parcels[:cut], {}))
    list(task(0, 1).run(parcels, {}))


class Begins(Sink):
    def create_writer(self, context, restored):
        return BeginningWriter()

    def create_committer(self):
        return NoCommitter()


class BeginningWriter(SinkWriter):
    def begun(self):
        return ["begun"]

    def write(self, value, context):
        EVENTS.append(value)


class NoCommitter(Committer):
    def commit(self, committables):
        raise AssertionError("nothing is committed in a task")


EVENTS: list = []


def test_what_sinks_have_begun_is_announced_before_the_first_record():
    EVENTS.clear()
    env = environment(1)
    env.from_collection([1, 2]).sink_to(Begins()).uid("sink")
    deployment = deployment_of(plan_of(env, None), JobID().hex)
    list(BatchStage(0, deployment, 0, EVENTS.append).run([], {}))
    assert EVENTS == [[("sink", ["begun"])], 1, 2]


def test_early_parcels_wait_for_their_turn(tmp_path):
    origins = [Origin(0, 0), Origin(0, 1)]
    parcels = [Parcel(1, origin, number, number == 2, b"") for origin in origins for number in range(3)]
    for seed in range(20):
        mixed = parcels.copy()
        random.Random(seed).shuffle(mixed)
        arrivals = Arrivals(origins, str(tmp_path))
        assert [due for parcel in mixed for due in arrivals.take(parcel)] == parcels
        assert not arrivals.missing() and not list(tmp_path.iterdir())
        arrivals.close()
