"""Transactions behind checkpoints: which calls come when, and that nothing is lost, doubled or left behind."""

import pickle
import time
import uuid
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from penstock.common import Types
from penstock.common.serializer import TypeSerializer
from penstock.datastream.connectors.two_phase_commit import TwoPhaseCommitSinkFunction, as_sink
from penstock.testing import in_process
from penstock.testing.crashes import crash_point
from tests.connectors.crashing import RECORDS, Fragile, check_seeds, once_each
from tests.connectors.sql.conftest import END_OTHERS


class PreparedTransactions(TwoPhaseCommitSinkFunction):
    """PostgreSQL keeps a prepared transaction until somebody ends it, through crashes of its own."""

    def __init__(self, dsn, table):
        self.dsn, self.table = dsn, table

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.parallelism = runtime_context.get_number_of_parallel_subtasks()
        self.writing = psycopg.connect(self.dsn, autocommit=True)
        self.committing = psycopg.connect(self.dsn, autocommit=True)

    def begin_transaction(self):
        crash_point("begin")
        name = f"{self.table}-{self.subtask}-{uuid.uuid4().hex}"
        self.writing.execute("BEGIN")
        return name

    def invoke(self, transaction, value, context):
        self.writing.execute(f"INSERT INTO {self.table} VALUES (%s)", [value])

    def pre_commit(self, transaction):
        crash_point("before pre_commit")
        self.writing.execute(f"PREPARE TRANSACTION '{transaction}'")
        crash_point("after pre_commit")

    def commit(self, transaction):
        crash_point("before commit")
        self.committing.execute(f"COMMIT PREPARED '{transaction}'")
        crash_point("after commit")

    def abort(self, transaction):
        self.writing.execute("ROLLBACK")

    def recover_and_commit(self, transaction):
        crash_point("before recover_and_commit")
        if transaction in self.left_behind():
            self.commit(transaction)

    def recover_and_abort(self, transaction):
        crash_point("before recover_and_abort")
        if transaction in self.left_behind():
            self.committing.execute(f"ROLLBACK PREPARED '{transaction}'")
        crash_point("after recover_and_abort")

    def finish_recovering_context(self, handled_transactions):
        for name in self.left_behind() - set(handled_transactions):
            if int(name.split("-")[1]) % self.parallelism == self.subtask:
                self.recover_and_abort(name)

    def left_behind(self):
        found = self.committing.execute("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE %s", [f"{self.table}-%"])
        return {name for (name,) in found}

    def close(self):
        self.writing.close()
        self.committing.close()


class Files(TwoPhaseCommitSinkFunction):
    """A transaction is a file that gets its place when it is committed."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.parallelism = runtime_context.get_number_of_parallel_subtasks()
        (self.folder / "drafts").mkdir(parents=True, exist_ok=True)
        (self.folder / "done").mkdir(exist_ok=True)
        self.lines = []

    def begin_transaction(self):
        crash_point("begin")
        self.lines = []
        return f"{self.subtask}-{uuid.uuid4().hex}"

    def invoke(self, transaction, value, context):
        self.lines.append(f"{value}\n")

    def pre_commit(self, transaction):
        crash_point("before pre_commit")
        (self.folder / "drafts" / transaction).write_text("".join(self.lines))
        crash_point("after pre_commit")

    def commit(self, transaction):
        crash_point("before commit")
        (self.folder / "drafts" / transaction).rename(self.folder / "done" / transaction)
        crash_point("after commit")

    def recover_and_commit(self, transaction):
        if (self.folder / "drafts" / transaction).exists():
            self.commit(transaction)
        assert (self.folder / "done" / transaction).exists()

    def abort(self, transaction):
        crash_point("before abort")
        (self.folder / "drafts" / transaction).unlink(missing_ok=True)

    def finish_recovering_context(self, handled_transactions):
        for draft in (self.folder / "drafts").iterdir():
            if draft.name not in handled_transactions and int(draft.name[0]) % self.parallelism == self.subtask:
                self.recover_and_abort(draft.name)


def two_sinks(environment, first, second):
    environment.set_parallelism(2)
    numbers = environment.from_collection(range(RECORDS)).uid("numbers").map(Fragile()).uid("fragile")
    numbers.sink_to(as_sink(first)).uid("first")
    numbers.rebalance().sink_to(as_sink(second)).uid("second")


def test_crashes_with_prepared_transactions(postgres, quiet):
    with psycopg.connect(postgres.dsn, autocommit=True) as outside:

        def fresh(name):
            outside.execute(END_OTHERS)
            for table in ("tpc_a", "tpc_b"):
                outside.execute(f"DROP TABLE IF EXISTS {table}")
                outside.execute(f"CREATE TABLE {table} (n INTEGER)")

        def check(what):
            for table in ("tpc_a", "tpc_b"):
                rows = [n for (n,) in outside.execute(f"SELECT n FROM {table}")]
                assert Counter(rows) == once_each(range(RECORDS)), f"{table}, {what}"
            assert outside.execute("SELECT gid FROM pg_prepared_xacts").fetchall() == [], what

        def build(environment):
            two_sinks(*[environment, *(PreparedTransactions(postgres.dsn, table) for table in ("tpc_a", "tpc_b"))])

        check_seeds(range(1, 13), build, check, fresh)
        outside.execute(END_OTHERS)


def test_crashes_with_files(tmp_path, quiet):
    folder = []

    def fresh(name):
        folder[:] = [tmp_path / name]

    def check(what):
        for name in ("a", "b"):
            done = sorted((folder[0] / name / "done").iterdir())
            lines = [int(line) for file in done for line in file.read_text().splitlines()]
            assert Counter(lines) == once_each(range(RECORDS)), f"{name}, {what}"
            assert list((folder[0] / name / "drafts").iterdir()) == [], f"{name}, {what}"

    def build(environment):
        two_sinks(environment, Files(folder[0] / "a"), Files(folder[0] / "b"))

    check_seeds(range(1, 26), build, check, fresh)


# --- which calls come when ---
class Recorded(TwoPhaseCommitSinkFunction):
    def __init__(self):
        self.calls = []
        self.begun = 0
        self.now = 1000
        self.fails = None

    def call(self, *what):
        self.calls.append(" ".join(map(str, what)))
        if self.fails == what[0]:
            raise OSError(f"{what[0]} is not possible")

    def current_time(self):
        return self.now

    def open(self, runtime_context):
        self.call("open")

    def close(self):
        self.call("close")

    def begin_transaction(self):
        self.begun += 1
        self.call("begin", self.begun)
        return self.begun

    def invoke(self, transaction, value, context):
        self.call("invoke", transaction, value)

    def pre_commit(self, transaction):
        self.call("pre_commit", transaction)

    def commit(self, transaction):
        self.call("commit", transaction)

    def abort(self, transaction):
        self.call("abort", transaction)

    def recover_and_commit(self, transaction):
        self.call("recover_and_commit", transaction)

    def recover_and_abort(self, transaction):
        self.call("recover_and_abort", transaction)

    def finish_recovering_context(self, handled_transactions):
        self.call("finish", sorted(handled_transactions))

    def taken(self):
        calls, self.calls = self.calls, []
        return calls


class Context:
    runtime = None

    def __init__(self, committables=(), restored=(), has_rivals=False):
        self.has_rivals = has_rivals
        self.all_committables, self.all_restored = list(committables), list(restored)


def started(function, committables=(), restored=()):
    """As the engine starts a sink: what the checkpoint holds is committed before there is a writer."""
    sink = as_sink(function)
    committer = sink.create_committer()
    if committables:
        committer.commit(list(committables))
    return committer, sink.create_writer(Context(committables, restored), list(restored))


def checkpoint(writer, number):
    writer.flush(False)
    return pickle.loads(pickle.dumps((writer.prepare_commit(), writer.snapshot_state(number))))


def test_the_way_of_a_transaction():
    function = Recorded()
    committer, writer = started(function)
    assert function.taken() == ["open", "finish []", "begin 1"]
    writer.write("x", None)
    pending, _ = checkpoint(writer, 1)
    writer.write("y", None)
    assert function.taken() == ["invoke 1 x", "pre_commit 1", "begin 2", "invoke 2 y"]
    committer.commit(pending)
    writer.close()
    committer.close()
    assert function.taken() == ["commit 1", "abort 2", "close"]


def test_recovery_commits_and_aborts_after_open():
    _, writer = started(Recorded())
    pending, state = checkpoint(writer, 1)
    function = Recorded()
    function.begun = 2
    started(function, pending, state)
    assert function.taken() == ["open", "recover_and_commit 1", "recover_and_abort 2", "finish [1, 2]", "begin 3"]


def test_a_writer_with_rivals_aborts_nothing_that_it_does_not_know():
    function = Recorded()
    writer = as_sink(function).create_writer(Context(has_rivals=True), [])
    assert function.taken() == ["open", "begin 1"]
    assert len(writer.begun()) == 1 and function.taken() == []


def test_transactions_of_lost_writers_are_recognised_and_aborted():
    """In BATCH mode the transaction that was announced at the start and the one that was prepared later are equal."""
    _, lost = started(Recorded())
    _, counting = started(Recorded())
    told = pickle.loads(pickle.dumps([*lost.begun(), *counting.begun()]))
    counting.write("x", None)
    prepared = counting.prepare_commit()
    assert [item in prepared for item in told] == [False, True]
    function = Recorded()
    committer, _ = started(function)
    function.taken()
    committer.abort(told[:1])
    assert function.taken() == ["recover_and_abort 1"]


def test_several_checkpoints_before_one_is_complete():
    function = Recorded()
    committer, writer = started(function)
    first, _ = checkpoint(writer, 1)
    second, _ = checkpoint(writer, 2)
    function.taken()
    committer.commit(first)
    committer.commit(second)
    assert function.taken() == ["commit 1", "commit 2"]


def test_no_transaction_is_begun_behind_the_last_record():
    function = Recorded()
    committer, writer = started(function)
    writer.flush(True)
    pending, state = writer.prepare_commit(), writer.snapshot_state(1)
    committer.commit(pending)
    writer.close()
    assert (len(pending), state) == (1, [])
    assert function.taken() == ["open", "finish []", "begin 1", "pre_commit 1", "commit 1", "close"]


def test_a_transaction_that_cannot_be_pre_committed_is_aborted():
    function = Recorded()
    _, writer = started(function)
    function.fails = "pre_commit"
    with pytest.raises(OSError, match="pre_commit is not possible"):
        writer.prepare_commit()
    writer.close()
    assert function.taken()[-2:] == ["abort 1", "close"]


def test_a_function_that_cannot_begin_is_closed():
    function = Recorded()
    function.fails = "begin"
    sink = as_sink(function)
    committer = sink.create_committer()
    with pytest.raises(OSError, match="begin is not possible"):
        sink.create_writer(Context(), [])
    committer.close()
    assert function.taken()[-1] == "close"


def recovering(age):
    _, writer = started(Recorded())
    pending, state = checkpoint(writer, 1)
    function = Recorded()
    function.fails = "recover_and_commit"
    function.now = 1000 + age
    function.set_transaction_timeout(500)
    return function, pending, state


def test_failures_are_not_ignored_unless_it_was_asked_for():
    function, pending, state = recovering(age=900)
    with pytest.raises(OSError, match="recover_and_commit is not possible"):
        started(function, pending, state)


def test_failures_within_the_timeout_are_not_ignored():
    function, pending, state = recovering(age=500)
    with pytest.raises(OSError, match="recover_and_commit is not possible"):
        started(function.ignore_failures_after_transaction_timeout(), pending, state)


def test_failures_after_the_timeout_are_ignored_and_said(caplog):
    function, pending, state = recovering(age=501)
    started(function.ignore_failures_after_transaction_timeout(), pending, state)
    assert "its records are lost" in caplog.text and "501 ms old" in caplog.text
    assert function.taken()[-1] == "begin 1"


def test_a_failure_to_commit_is_never_ignored():
    function = Recorded()
    committer, writer = started(function.set_transaction_timeout(1).ignore_failures_after_transaction_timeout())
    pending, _ = checkpoint(writer, 1)
    function.fails, function.now = "commit", 10_000
    with pytest.raises(OSError, match="commit is not possible"):
        committer.commit(pending)


def test_warnings_of_a_timeout_that_comes_near(caplog):
    function = Recorded()
    committer, writer = started(function.set_transaction_timeout(1000).enable_transaction_timeout_warnings(0.5))
    first, _ = checkpoint(writer, 1)
    second, _ = checkpoint(writer, 2)
    function.now = 1500
    committer.commit(first)
    assert caplog.text == ""
    function.now = 1501
    committer.commit(second)
    assert "committed 501 ms after its begin, near its timeout of 1000 ms" in caplog.text


def test_settings_that_are_not_made_have_no_effect(caplog):
    function = Recorded()
    committer, writer = started(function.enable_transaction_timeout_warnings(0))
    first, _ = checkpoint(writer, 1)
    function.now += 10_000
    committer.commit(first)
    function = Recorded()
    committer, writer = started(function.set_transaction_timeout(0))
    second, _ = checkpoint(writer, 1)
    function.now += 10_000
    committer.commit(second)
    assert caplog.text == ""
    function = Recorded().ignore_failures_after_transaction_timeout()
    function.fails, function.now = "recover_and_commit", 99_000
    with pytest.raises(OSError, match="recover_and_commit is not possible"):
        started(function, second)


def test_a_committed_transaction_of_this_attempt_is_recovered_when_it_comes_again():
    function = Recorded()
    committer, writer = started(function)
    pending, _ = checkpoint(writer, 1)
    function.taken()
    committer.commit(pending)
    committer.commit(pending)
    assert function.taken() == ["commit 1", "recover_and_commit 1"]


def test_a_discarded_transaction_is_aborted_as_one_of_an_earlier_attempt():
    function = Recorded()
    committer, writer = started(function)
    pending, _ = checkpoint(writer, 1)
    function.taken()
    committer.discard(pending)
    committer.commit(pending)
    assert function.taken() == ["recover_and_abort 1", "recover_and_commit 1"]
    writer.close()
    function.taken()
    committer.discard(pending)
    assert function.taken() == [], "a function that is closed is not called"


class Plain(TwoPhaseCommitSinkFunction):
    """Leaves recovery to `commit` and `abort`."""

    calls: list

    def open(self, runtime_context):
        self.calls = [("open", runtime_context is self.get_runtime_context())]

    def begin_transaction(self):
        return "new"

    def invoke(self, transaction, value, context):
        pass

    def pre_commit(self, transaction):
        pass

    def commit(self, transaction):
        self.calls.append(("commit", transaction))

    def abort(self, transaction):
        self.calls.append(("abort", transaction))


def test_recovery_commits_and_aborts_by_default():
    function = Plain()
    _, writer = started(Recorded())
    pending, state = checkpoint(writer, 1)
    sink = as_sink(function)
    sink.create_committer().commit(pending)
    context = Context(pending, state)
    context.runtime = object()
    sink.create_writer(context, state)
    assert function.calls == [("open", True), ("commit", 1), ("abort", 2)]


def test_transactions_have_the_age_of_the_clock_in_milliseconds():
    assert abs(Plain().current_time() - time.time() * 1000) < 3_600_000


def test_serializers_of_types_have_no_effect_and_others_are_refused():
    Plain(Types.STRING().create_serializer())
    with pytest.raises(TypeError, match=r"transactions are pickled, .* leave out"):
        Plain(None, Own())


class Own(TypeSerializer):
    def serialize(self, value, stream):
        pass

    def deserialize(self, stream):
        pass


def test_mistakes():
    with pytest.raises(TypeError, match="must be a TwoPhaseCommitSinkFunction"):
        as_sink(print)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Recorded().enable_transaction_timeout_warnings(2)
    with pytest.raises(ValueError, match="negative"):
        Recorded().set_transaction_timeout(-1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Recorded().enable_transaction_timeout_warnings(-0.5)
    assert Recorded().set_transaction_timeout(0).enable_transaction_timeout_warnings(1)


def test_without_checkpoints_it_is_committed_at_the_end(tmp_path):
    from penstock.datastream import StreamExecutionEnvironment

    with in_process():
        environment = StreamExecutionEnvironment().set_parallelism(1)
        environment.from_collection([1, 2, 3]).add_sink(Files(tmp_path))
        environment.execute()
    (done,) = (tmp_path / "done").iterdir()
    assert done.read_text() == "1\n2\n3\n"
    assert list((tmp_path / "drafts").iterdir()) == []
