"""A job with all five kinds of queryable state, a cluster whose clients ask before and within every epoch, and what is
right."""

from __future__ import annotations

import threading
from random import Random

from penstock.common import Time
from penstock.datastream import AggregateFunction, KeyedProcessFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.engine.queryable.query_requests import QueryRequest
from penstock.engine.state.key_groups import key_group
from penstock.testing import InProcessCluster
from tests.keyed_states import state_of

KINDS = ("value", "list", "map", "reducing", "aggregating")
KEYS = ["a", "b", "c", 1, 2.5, ("t", 1)]
APPLIED = []
"""What the function has done in the current run: each record, and the processing time at which it came."""


class Mean(AggregateFunction):
    """Its accumulator is a list that is changed in place, and its result is another thing."""

    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator):
        total, count = accumulator
        accumulator[:] = [0, 0]  # so that a client who reads the state itself would change it
        return total / count

    def merge(self, first, second):
        return [first[0] + second[0], first[1] + second[1]]


def descriptors():
    return [
        ValueStateDescriptor("value", default_value=-1),
        ListStateDescriptor("list"),
        MapStateDescriptor("map"),
        ReducingStateDescriptor("reducing", max),
        AggregatingStateDescriptor("aggregating", Mean()),
    ]


class EveryKind(KeyedProcessFunction):
    """Does with its states what the records say: (key, kind, number), and None as the number clears."""

    def __init__(self, ttl=None):
        self.ttl = ttl

    def open(self, context):
        self.states = {}
        for descriptor in descriptors():
            descriptor.set_queryable(f"q-{descriptor.get_name()}")
            if self.ttl is not None:
                descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(self.ttl)).build())
            self.states[descriptor.get_name()] = state_of(context, descriptor)

    def process_element(self, value, ctx):
        _, kind, number = value
        APPLIED.append((value, ctx.timer_service().current_processing_time()))
        state = self.states[kind]
        if number is None:
            state.clear()
        elif kind == "value":
            state.update(number)
        elif kind == "map":
            state.put(number % 3, number)
        else:
            state.add(number)


class Model:
    """The same with dicts: what clients must see after some records, each with the time of its epoch."""

    def __init__(self, ttl):
        self.ttl = ttl
        self.held = {kind: {} for kind in KINDS}

    def apply(self, record, now):
        key, kind, number = record
        held = self.held[kind]
        if number is None:
            held.pop(key, None)
        elif kind == "value":
            held[key] = (number, now)
        elif kind == "list":
            held.setdefault(key, []).append((number, now))
        elif kind == "map":
            held.setdefault(key, {})[number % 3] = (number, now)
        else:
            before = held.get(key)
            old = before[0] if before is not None and self.lives(before[1], now) else None
            if kind == "reducing":
                held[key] = (number if old is None else max(old, number), now)
            else:
                held[key] = ((number, 1) if old is None else (old[0] + number, old[1] + 1), now)

    def lives(self, time, now):
        return self.ttl is None or now - time < self.ttl

    def shown(self, kind, now):
        """By key, what is there."""
        shown = {key: self.seen(kind, held, now) for key, held in self.held[kind].items()}
        return {key: value for key, value in shown.items() if value is not None}

    def seen(self, kind, held, now):
        if kind == "list":
            return [value for value, time in held if self.lives(time, now)] or None
        if kind == "map":
            return {key: value for key, (value, time) in held.items() if self.lives(time, now)} or None
        if not self.lives(held[1], now):
            return None
        return held[0][0] / held[0][1] if kind == "aggregating" else held[0]


class AskingCluster(InProcessCluster):
    """Asks before every epoch and between its steps, as clients would meanwhile, and keeps account of what had been
    done then."""

    def __init__(self, random: Random, keys=KEYS):
        super().__init__()
        self.random = random
        self.keys = keys
        self.handle = None
        self.started = threading.Event()
        self.asked = []
        self.cuts = {}
        """By attempt and epoch, and by slot and step within the next one: how many records had been applied."""
        APPLIED.clear()

    def start(self, handle):
        self.handle = handle
        self.started.set()

    def run(self, command):
        assert self.started.wait(60)
        self.ask([0, 1, 1, 3])
        self.attempt, self.epoch, self.looks = command.attempt, command.epoch, dict.fromkeys(range(len(self.slots)), 0)
        reports = super().run(command)
        self.cuts[command.attempt, command.epoch, None, 0] = len(APPLIED)
        return reports

    def _answer_asides(self):
        self.ask([0, 0, 1, 2])
        for slot, lookup in self.asides.questions().items():
            self.looks[slot] += 1
            self.cuts[self.attempt, self.epoch - 1, slot, self.looks[slot]] = len(APPLIED)
            self.asides.answer(self.slots[slot].look_within(lookup))

    def ask(self, how_often):
        for _ in range(self.random.choice(how_often)):
            request = self.request()
            self.asked.append((request, self.handle.query(request)))

    def request(self):
        name = f"q-{self.random.choice(KINDS)}"
        match self.random.randrange(4):
            case 0:
                return QueryRequest(name)
            case 1:
                return QueryRequest(name, limit=self.random.choice([1, 2, 100]))
            case 2:
                # Where there are keys it matters whether the ends belong to it.
                ends = sorted(key_group(key, 128) for key in self.random.choices(self.keys, k=2))
                return QueryRequest(name, key_groups=(ends[0], ends[1]))
        return QueryRequest.of(name, *self.random.choices(self.keys, k=self.random.choice([1, 1, 4])))


def in_full(handle, request, future):
    """An answer with all of its pages."""
    answer = future.result(60)
    entries, page = list(answer.entries), answer
    while page.next_token is not None:
        page = handle.query(QueryRequest(request.name, token=page.next_token)).result(60)
        assert page.cut == answer.cut and len(page.entries) <= request.limit
        entries += page.entries
    return answer, entries
