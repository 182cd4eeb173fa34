"""The gate's watermarks against Flink's status watermark valve, worked out by brute force."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.operators.operator import Gate, Operator
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Chunk


class Recording(Operator):
    """Writes down what a gate lets through."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.output = self

    def records(self, values, timestamps):
        self.seen.extend(("record", value) for value in values)

    def watermark(self, timestamp):
        self.seen.append(("watermark", timestamp))

    def status(self, idle):
        self.seen.append(("status", idle))

    def finish(self):
        self.seen.append(("finish",))

    def end(self):
        self.seen.append(("end",))


class Valve:
    """The oracle. A channel counts while it is active, not over, and not behind what was announced already."""

    def __init__(self, channels: int) -> None:
        self.reached = [MIN_TIMESTAMP] * channels
        self.idle = [False] * channels
        self.ended = [False] * channels
        self.announced = MIN_TIMESTAMP
        self.seen: list[Any] = []
        self.all_idle = False

    def event(self, channel: int, kind: str, argument: Any) -> None:
        if kind == "record":
            self.seen.append(("record", argument))
        elif kind == "watermark":
            self.reached[channel] = max(self.reached[channel], argument)
            if not self.idle[channel]:
                self.announce()
        elif kind == "status":
            self.idle[channel] = argument
            self.announce()
        else:
            self.idle[channel], self.ended[channel], self.reached[channel] = False, True, MAX_TIMESTAMP
            self.announce()
            if all(self.ended):
                self.seen += [("finish",), ("end",)]

    def announce(self) -> None:
        over = min(self.reached) == MAX_TIMESTAMP
        counting = [c for c, reached in enumerate(self.reached) if over or reached < MAX_TIMESTAMP]
        active = [self.reached[c] for c in counting if not self.idle[c]]
        if active and self.all_idle:
            self.all_idle = False
            self.seen.append(("status", False))
        aligned = [
            reached for reached in active or [max(self.reached[c] for c in counting)] if reached >= self.announced
        ]
        if aligned and min(aligned) > self.announced:
            self.announced = min(aligned)
            self.seen.append(("watermark", self.announced))
        if not active and not self.all_idle:
            self.all_idle = True
            self.seen.append(("status", True))


@st.composite
def histories(draw):
    """A number of channels and their events: an idle channel says that it is active before anything else."""
    channels = draw(st.integers(1, 4))
    idle, ended, history = set(), set(), []
    for _ in range(draw(st.integers(0, 30))):
        channel = draw(st.integers(0, channels - 1))
        if channel in ended:
            continue
        kind = draw(st.sampled_from(["record", "watermark", "watermark", "watermark", "status", "end"]))
        if kind == "status":
            idle ^= {channel}
            history.append((channel, "status", channel in idle))
            continue
        if channel in idle and kind != "end":
            idle.remove(channel)
            history.append((channel, "status", False))
        if kind == "end":
            ended.add(channel)
            idle.discard(channel)
        history.append((channel, kind, draw(st.integers(0, 12))))
    return channels, history


def play(channels: int, history: list[Any]) -> list[Any]:
    operator = Recording()
    gate = Gate(operator)
    inputs = [gate.channel(0) for _ in range(channels)]
    for channel, kind, argument in history:
        if kind == "record":
            inputs[channel].chunk(Chunk([argument]))
        elif kind == "end":
            inputs[channel].watermark(MAX_TIMESTAMP)
            inputs[channel].end()
        else:
            getattr(inputs[channel], kind)(argument)
    return operator.seen


@given(histories())
def test_a_gate_is_a_status_watermark_valve(case):
    channels, history = case
    valve = Valve(channels)
    for channel, kind, argument in history:
        if kind == "end":
            valve.event(channel, "watermark", MAX_TIMESTAMP)
        valve.event(channel, kind, argument)
    assert play(channels, history) == valve.seen


@given(histories())
def test_event_time_never_goes_back_and_never_passes_an_active_aligned_channel(case):
    channels, history = case
    seen = play(channels, history)
    watermarks = [timestamp for kind, *rest in seen if kind == "watermark" for timestamp in rest]
    assert watermarks == sorted(set(watermarks))
    statuses = [rest[0] for kind, *rest in seen if kind == "status"]
    assert statuses == [index % 2 == 0 for index in range(len(statuses))]
    records = [argument for _, kind, argument in history if kind == "record"]
    assert [rest[0] for kind, *rest in seen if kind == "record"] == records


def test_the_slowest_channel_holds_event_time_back():
    assert play(2, [(0, "watermark", 10), (1, "watermark", 3), (1, "watermark", 7), (1, "watermark", 20)]) == [
        ("watermark", 3),
        ("watermark", 7),
        ("watermark", 10),
    ]


def test_an_idle_channel_does_not():
    assert play(2, [(0, "watermark", 10), (1, "status", True), (0, "watermark", 12)]) == [
        ("watermark", 10),
        ("watermark", 12),
    ]


def test_a_channel_that_wakes_up_behind_counts_when_it_has_caught_up():
    history = [
        (0, "watermark", 10),
        (1, "status", True),
        (1, "status", False),
        (1, "watermark", 4),
        (0, "watermark", 15),
        (1, "watermark", 16),
        (0, "watermark", 30),
    ]
    assert play(2, history) == [("watermark", 10), ("watermark", 15), ("watermark", 16)]


def test_when_all_are_idle_the_furthest_counts():
    history = [(0, "watermark", 10), (1, "watermark", 5), (1, "status", True), (0, "status", True)]
    assert play(2, history) == [("watermark", 5), ("watermark", 10), ("status", True)]
    assert play(2, [(0, "status", True), (1, "status", True), (1, "status", False)]) == [
        ("status", True),
        ("status", False),
    ]


def test_the_operator_finishes_once_behind_the_last_watermark():
    assert play(2, [(0, "end", None), (1, "record", 1), (1, "end", None)]) == [
        ("record", 1),
        ("watermark", MAX_TIMESTAMP),
        ("finish",),
        ("end",),
    ]
