"""Patterns against a brute-force oracle: all ways to choose events, judged by what the words of the API promise.

The oracle knows no automaton. It chooses one event after the other, and asks of each whether contiguity, condition and
time allow it. Patterns are without groups, greed and skipping, whose meaning is defined by the automaton alone; the
recorded results cover these.
"""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.cep import Pattern, WithinType
from penstock.cep.testing import PatternTester
from penstock.common import Duration

STRICT, RELAXED, ANY = "next", "followed_by", "followed_by_any"
INNER = {STRICT: "consecutive", RELAXED: None, ANY: "allow_combinations"}


@dataclass(frozen=True)
class Element:
    how: str
    types: str
    least: int = 1
    most: int | None = 1
    inner: str = RELAXED
    optional: bool = False
    barred: str = ""
    """What must not come between the element before and this one."""
    until: str = ""
    """What ends the loop."""
    wait: int = 0
    """How long after the event before the element's only event may come; 0 if that does not matter."""

    def takes(self, event):
        return event[0] in self.types and event[0] not in self.until


def next_ones(events, after, how, takes):
    """Which events may be the next one, by contiguity."""
    fitting = [index for index in range(after + 1, len(events)) if takes(events[index])]
    if how == STRICT:
        return [index for index in fitting if index == after + 1]
    return fitting[:1] if how == RELAXED else fitting


def runs(element, events, after, begins):
    """All ways in which an element can take its events, as tuples of indices."""
    first = range(len(events)) if begins else next_ones(events, after, element.how, element.takes)
    waiting = [(index,) for index in first if element.takes(events[index])]
    while waiting:
        run = waiting.pop()
        if len(run) >= element.least:
            yield run
        if element.most is None or len(run) < element.most:
            further = next_ones(events, run[-1], element.inner, element.takes)
            waiting += [(*run, index) for index in further if not ends_between(element, events, run[-1], index)]


def ends_between(element, events, first, last):
    return any(event[0] in element.until for event in events[first + 1 : last])


def all_matches(elements, events, window, chosen=()):
    """All choices of events; `chosen` has a tuple of indices for each element so far."""
    if len(chosen) == len(elements):
        yield chosen
        return
    element = elements[len(chosen)]
    taken = [index for run in chosen for index in run]
    if element.optional:
        yield from all_matches(elements, events, window, (*chosen, ()))
    for run in runs(element, events, taken[-1] if taken else -1, not taken):
        between = events[taken[-1] + 1 : run[0]] if taken else []
        in_time = not window or events[run[-1]][1] - events[(taken or run)[0]][1] < window
        in_time = in_time and not (taken and element.wait and events[run[0]][1] - events[taken[-1]][1] >= element.wait)
        if in_time and not any(event[0] in element.barred for event in between):
            yield from all_matches(elements, events, window, (*chosen, run))


def pattern_of(elements, window):
    pattern = None
    for number, element in enumerate(elements):
        if element.barred:
            pattern = pattern.not_followed_by(f"n{number}").where(lambda event, types=element.barred: event[0] in types)
        name = f"e{number}"
        pattern = Pattern.begin(name) if pattern is None else getattr(pattern, element.how)(name)
        pattern.where(lambda event, types=element.types: event[0] in types)
        if element.most is None:
            pattern.times_or_more(element.least)
        elif (element.least, element.most) != (1, 1):
            pattern.times(element.least, element.most)
        if (element.least, element.most) != (1, 1) and INNER[element.inner]:
            getattr(pattern, INNER[element.inner])()
        if element.optional:
            pattern.optional()
        if element.until:
            pattern.until(lambda event, types=element.until: event[0] in types)
        if element.wait:
            pattern.within(Duration.of_millis(element.wait), WithinType.PREVIOUS_AND_CURRENT)
    return pattern.within(Duration.of_millis(window)) if window else pattern


contiguity = st.sampled_from([STRICT, RELAXED, ANY])
types = st.sampled_from(["a", "b", "c", "ab", "bc"])
counts = st.sampled_from([(1, 1)] * 6 + [(1, None), (2, None), (2, 2), (1, 2), (1, 3)])


@st.composite
def patterns(draw):
    elements = []
    for number in range(draw(st.integers(1, 4))):
        (least, most), how = draw(counts), draw(contiguity)
        optional = number > 0 and draw(st.integers(0, 3)) == 0
        looped = number > 0 and elements[-1].most != 1
        may_bar = number > 0 and not optional and not elements[-1].optional and not looped and how != STRICT
        barred = "x" if may_bar and draw(st.booleans()) else ""
        until = draw(st.sampled_from(["", "c", "x"])) if most is None else ""
        single = number > 0 and (least, most) == (1, 1) and not optional and not barred
        wait = (
            draw(st.sampled_from([0, 0, 2])) if single and not elements[-1].optional and elements[-1].most == 1 else 0
        )
        elements.append(Element(how, draw(types), least, most, draw(contiguity), optional, barred, until, wait))
    return elements


@st.composite
def streams(draw):
    steps = draw(st.lists(st.tuples(st.sampled_from("abcx"), st.integers(1, 3)), max_size=7))
    events, time = [], 0
    for kind, step in steps:
        time += step
        events.append((kind, time))
    return events


@settings(max_examples=500, deadline=None)
@given(patterns(), streams(), st.sampled_from([0, 0, 3, 6]))
def test_finds_every_match_and_no_other(elements, events, window):
    tester = PatternTester(pattern_of(elements, window))
    for event in events:
        tester.feed(event, event[1])
    found = Counter(tuple(tuple(match.get(f"e{n}", ())) for n in range(len(elements))) for match in tester.matches)
    expected = Counter(
        tuple(tuple(events[index] for index in run) for run in match) for match in all_matches(elements, events, window)
    )
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(patterns(), streams())
def test_nothing_is_left_when_time_is_up(elements, events):
    tester = PatternTester(pattern_of(elements, 4))
    for event in events:
        tester.feed(event, event[1])
    tester.advance(tester.now + 4)
    assert tester.partial_matches() == [] and tester.held_back() == []
