"""Slots of an attempt that has lost its job to another: they commit nothing, and throw away what they have prepared."""

import pytest

from penstock.datastream import CheckpointListener, MapFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.base import Committer, Sink, SinkWriter
from penstock.datastream.connectors.two_phase_commit import TwoPhaseCommitSinkFunction
from penstock.engine.checkpoint.ownership import Ownership
from penstock.engine.job.deploying import deployment_of
from penstock.engine.messages.commands_and_reports import CheckpointOrder, CheckpointSettings, Command, Notice
from penstock.engine.messages.owner_token import Token
from penstock.engine.snapshots.local_copies import LocalCopies
from penstock.errors import StorageError
from penstock.service.launch.submission import plan_of
from penstock.testing import InProcessCluster

EVENTS: list = []


@pytest.fixture(autouse=True)
def _fresh():
    EVENTS.clear()


class Transactions(TwoPhaseCommitSinkFunction):
    number = 0

    def begin_transaction(self):
        Transactions.number += 1
        return f"t{Transactions.number}"

    def invoke(self, transaction, value, context):
        EVENTS.append(("write", transaction, value))

    def pre_commit(self, transaction):
        EVENTS.append(("prepare", transaction))

    def commit(self, transaction):
        EVENTS.append(("commit", transaction))

    def abort(self, transaction):
        EVENTS.append(("abort", transaction))

    def recover_and_abort(self, transaction):
        EVENTS.append(("roll back", transaction))


class Listener(MapFunction, CheckpointListener):
    def open(self, runtime_context):
        EVENTS.append(("open",))

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        EVENTS.append(("heard of", checkpoint_id))


class Plain(Sink):
    """Has nothing to throw away."""

    def create_writer(self, context, restored):
        EVENTS.append(("owner", context.owner))
        return PlainWriter()

    def create_committer(self):
        return PlainCommitter()


class PlainWriter(SinkWriter):
    def write(self, value, context):
        pass

    def prepare_commit(self):
        return ["plain"]


class PlainCommitter(Committer):
    def commit(self, committables):
        EVENTS.append(("commit", *committables))


def events(*kinds):
    return [event for event in EVENTS if event[0] in kinds]


@pytest.fixture
def owner(tmp_path):
    made = Ownership(tmp_path.as_uri(), "job", 1000)
    made.take(False)
    yield made
    made.let_go()


@pytest.fixture
def displace(tmp_path):
    made = []

    def displace():
        made.append(Ownership(tmp_path.as_uri(), "job", 1000))
        made[-1].take(True)

    yield displace
    for other in made:
        other.let_go()


@pytest.fixture
def deployment(owner):
    env = StreamExecutionEnvironment().set_parallelism(1)
    numbers = env.from_sequence(1, 1000).map(Listener())
    numbers.add_sink(Transactions())
    numbers.sink_to(Plain())
    plan = plan_of(env, "job")
    return deployment_of(plan, "0" * 32, checkpoints=CheckpointSettings(asynchronous=False), owner=owner.token)


@pytest.fixture
def cluster(deployment):
    made = InProcessCluster()
    [report] = made.deploy(deployment)
    assert report.failure is None
    yield made
    made.release()


def command(epoch, tmp_path, checkpoint=None, notices=()):
    order = CheckpointOrder(checkpoint, 1000, (tmp_path / f"chk-{checkpoint}").as_uri()) if checkpoint else None
    return Command(epoch, 0, 1000, 5, 1000, checkpoint=order, notices=list(notices))


def test_a_sink_knows_the_number_of_its_owner(cluster, owner):
    assert events("owner") == [("owner", owner.number)]


def test_as_long_as_the_job_is_theirs_they_commit(cluster, tmp_path):
    [report] = cluster.run(command(0, tmp_path, 1))
    assert report.acknowledgements[0].failure is None and report.failure is None
    [report] = cluster.run(command(1, tmp_path, notices=[Notice(1, complete=True)]))
    assert report.failure is None
    assert len(events("commit")) == 2 and events("heard of") == [("heard of", 1)]


def test_nothing_is_committed_for_a_job_that_has_another_owner(cluster, displace, tmp_path):
    cluster.run(command(0, tmp_path, 1))
    displace()
    [report] = cluster.run(command(1, tmp_path, notices=[Notice(1, complete=True)]))
    assert report.failure.known_as == "JobDisplaced" and "new owner" in report.failure.message
    assert events("commit", "heard of", "roll back") == []


def test_that_a_checkpoint_failed_may_be_heard_by_everyone(cluster, displace, tmp_path):
    cluster.run(command(0, tmp_path, 1))
    displace()
    [report] = cluster.run(command(1, tmp_path, notices=[Notice(1, complete=False)]))
    assert report.failure is None


def test_what_is_prepared_too_late_is_thrown_away(cluster, displace, tmp_path):
    """The new owner goes on from the first checkpoint, and ends the transaction that this one knows. It has come and
    gone when the transaction is prepared: nobody else would ever end it."""
    cluster.run(command(0, tmp_path, 1))
    [(_, first)] = events("prepare")
    displace()
    [report] = cluster.run(command(1, tmp_path, 2))
    assert report.failure.known_as == "JobDisplaced" and report.acknowledgements == []
    [_, (_, second)] = events("prepare")
    assert events("roll back") == [("roll back", second)] and first != second
    assert not (tmp_path / "chk-2").exists()


def test_a_checkpoint_fails_if_nobody_knows_whose_the_job_is(cluster, tmp_path, monkeypatch):
    def away(self):
        raise StorageError("away")

    with monkeypatch.context() as broken:
        broken.setattr(Token, "check", away)
        [report] = cluster.run(command(0, tmp_path, 1))
        [answer] = report.acknowledgements
        assert report.failure is None and answer.failure.error_type == "StorageError"
        [report] = cluster.run(command(1, tmp_path, notices=[Notice(1, complete=True)]))
        assert report.failure.known_as == "StorageError" and events("commit", "roll back") == []
    [report] = cluster.run(command(2, tmp_path, 2))
    assert report.acknowledgements[0].failure is None, "what was prepared is part of the next one"


def test_functions_are_not_even_opened(deployment, displace):
    displace()
    [report] = InProcessCluster().deploy(deployment)
    assert report.failure.known_as == "JobDisplaced"
    assert EVENTS == []


@pytest.mark.parametrize("displaced", [False, True])
def test_local_copies_go_unless_they_may_be_those_of_the_new_owner(deployment, displace, monkeypatch, displaced):
    deleted = []
    monkeypatch.setattr(LocalCopies, "delete", lambda self: deleted.append(True))
    deployment.checkpoints = CheckpointSettings(local_copies=True)
    cluster = InProcessCluster()
    cluster.deploy(deployment)
    if displaced:
        displace()
    cluster.release()
    assert deleted == ([] if displaced else [True])
