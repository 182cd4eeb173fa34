"""A SourceFunction runs in a thread of its slot."""

import os
import socket
import threading
import time

import pytest

import penstock
from penstock.common import WatermarkStrategy
from penstock.common.watermark_strategy import Watermark
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.socket import SocketTextSource
from penstock.datastream.functions import (
    KeyedProcessFunction,
    ParallelSourceFunction,
    ProcessFunction,
    SourceFunction,
)
from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.operators.sources.source_function import BufferedSourceContext, FunctionReader
from penstock.engine.operators.sources.source_operator import Budget
from penstock.errors import JobFailed
from penstock.testing import in_process
from tests.waiting import Patience, until

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def _forget_calls():
    CALLS.clear()


class Script(SourceFunction):
    """Runs a function of the context."""

    def __init__(self, body):
        self.body = body

    def open(self, runtime_context):
        CALLS.append("open")
        self.cancelled = threading.Event()

    def run(self, ctx):
        self.body(ctx)

    def cancel(self):
        CALLS.append("cancel")
        self.cancelled.set()

    def close(self):
        CALLS.append("close")


@pytest.fixture
def stream():
    with in_process():
        yield StreamExecutionEnvironment().set_parallelism(1)


def three(ctx):
    for n in (1, 2, 3):
        ctx.collect(n)


def test_what_run_collects_is_the_stream(stream):
    with stream.add_source(Script(three)).execute_and_collect() as results:
        assert list(results) == [1, 2, 3]
    assert CALLS == ["open", "cancel", "close"]


def timed(ctx):
    ctx.collect_with_timestamp("a", 10)
    ctx.collect("b")
    ctx.emit_watermark(Watermark(15))
    ctx.collect_with_timestamp("c", 20)


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_timestamps_and_watermarks(stream):
    with stream.add_source(Script(timed)).process(Times()).execute_and_collect() as results:
        assert list(results) == [("a", 10, -(2**63)), ("b", None, -(2**63)), ("c", 20, 15)]


def test_timestamps_serve_a_strategy_without_an_assigner(stream):
    def emit(ctx):
        for n in (5, 6):
            ctx.collect_with_timestamp(n, n)

    strategy = WatermarkStrategy.for_monotonous_timestamps()
    timed_stream = stream.add_source(Script(emit)).assign_timestamps_and_watermarks(strategy)
    with timed_stream.process(Times()).execute_and_collect() as results:
        assert [row[:2] for row in results] == [(5, 5), (6, 6)]


class AtTwenty(KeyedProcessFunction):
    def process_element(self, value, ctx):
        if value == "busy":
            ctx.timer_service().register_event_time_timer(20)

    def on_timer(self, timestamp, ctx):
        yield ctx.timer_service().current_watermark()


class Stays(Script):
    """Runs a function of the context, and stays until it is cancelled: the end of a source moves event time too."""

    def run(self, ctx):
        self.body(ctx)
        self.cancelled.wait()


def test_an_idle_source_does_not_hold_event_time_back(stream):
    def quiet(ctx):
        ctx.mark_as_temporarily_idle()

    def busy(ctx):
        ctx.collect_with_timestamp("busy", 1)
        ctx.emit_watermark(Watermark(30))

    both = stream.add_source(Stays(quiet)).union(stream.add_source(Stays(busy)))
    assert both.key_by(lambda v: 0).process(AtTwenty()).execute_and_collect(limit=1) == [30]


def endless(ctx):
    n = 0
    while True:
        ctx.collect(n)
        n += 1
        time.sleep(0.001)


def test_a_loop_that_never_looks_is_unwound_when_it_emits(stream):
    before = threading.active_count()
    assert stream.add_source(Script(endless)).execute_and_collect(limit=3) == [0, 1, 2]
    assert CALLS == ["open", "cancel", "close"]
    until(lambda: threading.active_count() <= before)


class UntilCancelled(Script):
    def __init__(self):
        super().__init__(None)

    def run(self, ctx):
        ctx.collect("started")
        self.cancelled.wait()
        CALLS.append("left")


def test_cancel_ends_a_loop_that_waits(stream):
    assert stream.add_source(UntilCancelled()).execute_and_collect(limit=1) == ["started"]
    until(lambda: len(CALLS) == 4)
    assert CALLS[:2] == ["open", "cancel"] and set(CALLS[2:]) == {"left", "close"}


def test_an_error_in_run_comes_after_what_was_collected(stream):
    def fails(ctx):
        three(ctx)
        raise ValueError("the wire is cut")

    results = stream.add_source(Script(fails), "Wire").execute_and_collect()
    got = []
    with pytest.raises(JobFailed, match=r"Wire .*ValueError: the wire is cut") as raised, results:
        for value in results:
            got.append(value)
    assert got == [1, 2, 3]
    assert "in fails" in raised.value.cause and os.path.dirname(penstock.__file__) not in raised.value.cause
    assert CALLS[-1] == "close"


def test_an_error_in_open_names_the_source(stream):
    class Fails(Script):
        def open(self, runtime_context):
            raise ValueError("no key")

    stream.add_source(Fails(three), "Locked").print()
    with pytest.raises(JobFailed, match=r"Locked .*no key"):
        stream.execute()


def test_a_source_whose_open_fails_is_closed():
    class Fails(Script):
        def open(self, runtime_context):
            CALLS.append("open")
            raise ValueError("half-way")

    Fails.__qualname__, Fails.__module__ = "HalfOpen", __name__
    globals()["HalfOpen"] = Fails
    with in_process():
        env = StreamExecutionEnvironment().set_parallelism(1)
        env.add_source(Fails(three)).print()
        with pytest.raises(JobFailed):
            env.execute()
    assert CALLS == ["open", "close"]


def reader_of(body, room=None):
    context = OperatorContext("source", "uid", 0, 1, 128, None, {}, Clock())
    return FunctionReader(Script(body), context, room=room)


class Recorder:
    def __init__(self):
        self.seen = []

    def chunk(self, chunk):
        self.seen.extend(zip(chunk.values, chunk.timestamps or [None] * len(chunk), strict=True))

    def watermark(self, timestamp):
        self.seen.append(("watermark", timestamp))

    def status(self, idle):
        self.seen.append(("status", idle))

    def end(self):
        self.seen.append("end")


def drain(reader, records=100):
    recorder, patience = Recorder(), Patience()
    while not reader.finished:
        assert not patience.spent(len(recorder.seen)), recorder.seen
        reader.poll(recorder, Budget(records, time.monotonic() + 60, wait=0.05))
    return recorder.seen


def test_a_source_is_active_again_with_its_next_element():
    def body(ctx):
        ctx.collect(1)
        ctx.mark_as_temporarily_idle()
        ctx.mark_as_temporarily_idle()
        ctx.emit_watermark(Watermark(7))
        ctx.mark_as_temporarily_idle()
        ctx.collect_with_timestamp(2, 9)

    assert drain(reader_of(body)) == [
        (1, None),
        ("status", True),
        ("status", False),
        ("watermark", 7),
        ("status", True),
        ("status", False),
        (2, 9),
    ]


def test_a_budget_is_kept():
    reader, recorder = reader_of(lambda ctx: [ctx.collect(n) for n in range(10)]), Recorder()
    until(lambda: reader._context.done)
    assert reader.poll(recorder, Budget(4, time.monotonic() + 60)) == 4
    assert [v for v, _ in recorder.seen] == [0, 1, 2, 3] and not reader.finished
    reader.poll(recorder, Budget(100, time.monotonic() + 60))
    assert reader.finished and len(recorder.seen) == 10


def test_a_poll_waits_for_the_first_element_only_as_long_as_it_may():
    """It comes back while the source has nothing yet, and would not if it waited for an element."""
    going = threading.Event()
    reader = reader_of(lambda ctx: going.wait())
    began = time.monotonic()
    assert reader.poll(Recorder(), Budget(10, began + 60, wait=0.1)) == 0
    assert time.monotonic() - began > 0.08 and not reader.finished
    assert reader.waits_for_input()
    going.set()
    reader.close()


def test_a_full_buffer_makes_the_source_wait():
    reader = reader_of(lambda ctx: [ctx.collect(n) for n in range(50)], room=10)
    until(lambda: len(reader._context.waiting()) == 10)
    time.sleep(0.05)  # for one that does not wait to show
    assert len(reader._context.waiting()) == 10 and reader._thread.is_alive()
    assert [v for v, _ in drain(reader, records=7)] == list(range(50))


def test_closing_wakes_a_source_that_waits_for_room():
    reader = reader_of(lambda ctx: [ctx.collect(n) for n in range(50)], room=2)
    until(lambda: len(reader._context.waiting()) == 2)
    reader.close()
    until(lambda: not reader._thread.is_alive())


def test_the_checkpoint_lock_is_one_and_re_entrant():
    context = BufferedSourceContext()
    with context.get_checkpoint_lock(), context.get_checkpoint_lock():
        context.collect(1)
    assert context.get_checkpoint_lock() is context.get_checkpoint_lock()


class Numbered(ParallelSourceFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def run(self, ctx):
        ctx.collect(self.subtask)

    def cancel(self):
        pass


def test_a_parallel_source_runs_in_every_subtask_and_others_in_one():
    for function, expected in ((Numbered(), [0, 1, 2]), (Script(three), [1, 2, 3])):
        with in_process():
            env = StreamExecutionEnvironment().set_parallelism(3)
            with env.add_source(function).execute_and_collect() as results:
                assert sorted(results) == expected


def test_add_source_wants_a_source_function(env):
    with pytest.raises(TypeError, match=r"add_source: .* must be a SourceFunction or a Source, not"):
        env.add_source(lambda ctx: None)


# --- sockets ---
class Server:
    """Serves each connection the next of some byte strings, then closes it."""

    def __init__(self, *parts):
        self._parts = parts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        for chunks in self._parts:
            connection, _ = self._listener.accept()
            with connection:
                for chunk in chunks:
                    connection.sendall(chunk)
                    time.sleep(0.01)  # so that they mostly come one by one
        self._listener.close()


def lines(env, *args, **kwargs):
    with env.socket_text_stream("127.0.0.1", *args, **kwargs).execute_and_collect() as results:
        return list(results)


def test_lines_of_a_socket(stream):
    server = Server([b"one\r\ntw", b"o\n\nthree"])
    assert lines(stream, server.port) == ["one", "two", "", "three"]


def test_another_delimiter_and_broken_text(stream):
    server = Server([b"a||b\xff|", b"|c\n"])
    assert lines(stream, server.port, delimiter="||") == ["a", "b\ufffd", "c\n"]


def test_a_broken_connection_is_made_again(stream):
    server = Server([b"one\n"], [b"two\n"])
    assert lines(stream, server.port, max_retry=1) == ["one", "two"]


def test_nobody_listens(stream):
    server = Server()
    server._thread.join(60)
    stream.socket_text_stream("127.0.0.1", server.port).print()
    with pytest.raises(JobFailed, match=r"Socket Source .*ConnectionRefusedError"):
        stream.execute()


def test_an_open_socket_can_be_left(stream):
    """The other side stays open until the job has ended."""
    listener, ended = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve():
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"one\n")
            ended.wait()

    threading.Thread(target=serve, daemon=True).start()
    before = threading.active_count()
    text = stream.socket_text_stream("127.0.0.1", listener.getsockname()[1])
    assert text.execute_and_collect(limit=1) == ["one"]
    until(lambda: threading.active_count() <= before)
    ended.set()
    listener.close()


@pytest.mark.parametrize(
    ("port", "delimiter", "message"), [(0, "\n", "port"), (70_000, "\n", "port"), (80, "", "empty")]
)
def test_bad_socket_arguments(port, delimiter, message):
    with pytest.raises(ValueError, match=message):
        SocketTextSource("host", port, delimiter)
