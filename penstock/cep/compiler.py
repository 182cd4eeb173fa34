"""Compilation of a pattern into its automaton.

It proceeds from the last element to the first and builds each in front of the next one. Edges are tried in the order of
their creation here, which also decides the order of matches. Both orders are FlinkCEP's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.cep.automaton import Action, Automaton, State, StateKind
from penstock.cep.conditions import ALWAYS, Condition, Not, both
from penstock.cep.pattern import GroupPattern, Pattern
from penstock.cep.pattern_checks import check_names, check_rounds, check_skip, check_times
from penstock.cep.quantifier import ConsumingStrategy, Kind, WithinType

_END = "$endState$"


def compile_pattern(pattern: Pattern) -> Automaton:
    """Return the automaton of a pattern. An error names the element at fault."""
    check_names(pattern, reserved=_END)
    check_skip(pattern)
    automaton = _Compiler(pattern).automaton()
    check_times(pattern, automaton)
    check_rounds(automaton)
    return automaton


class _Compiler:
    """Compiles a pattern from its end to its beginning.

    `element` is the current element, `following` the element after it, `group` the group around it.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.element = pattern
        self.following: Pattern | None = None
        self.group: GroupPattern | None = None
        self.states: list[State] = []
        self.window: int | None = None
        self._names: set[str] = set()
        self._stops: dict[str, State] = {}
        self._first_round: dict[GroupPattern, bool] = {}
        self._behind_until: dict[State, State] = {}
        """Copies of the states after a greedy loop, without the loop's claim on their events."""

    def automaton(self) -> Automaton:
        self.window = self.pattern.get_window_size()
        start = self._sequence(self._state(_END, _END, StateKind.FINAL))
        start.kind = StateKind.START
        return Automaton(self.states, start, self.window, self.pattern.get_after_match_skip_strategy())

    # --- states ---
    def _state(self, name: str, element: str, kind: StateKind) -> State:
        unique, number = name, 0
        while unique in self._names:
            unique, number = f"{name}:{number}", number + 1
        self._names.add(unique)
        state = State(len(self.states), unique, element, kind)
        self.states.append(state)
        return state

    def _own_state(self, kind: StateKind = StateKind.NORMAL, limited: bool = True) -> State:
        """Create a state of the current element.

        Its limit is `within` for one event, and `window_time` inside a loop.
        """
        name, times = self.element.get_name(), self.element.get_times()
        state = self._state(name, name, kind)
        if limited and times is None:
            state.limit = self.element.get_window_size(WithinType.PREVIOUS_AND_CURRENT)
        elif limited and times is not None and state.name != name:
            state.limit = times.window_time
        return state

    def _stop(self, condition: Condition, name: str) -> State:
        """Return the state in which this element ends matches. There is one state for each such element."""
        if name not in self._stops:
            stop = self._stops[name] = self._state(name, name, StateKind.STOP)
            stop.take(stop, condition)
        return self._stops[name]

    # --- sequences ---
    def _sequence(self, sink: State) -> State:
        """Build the elements up to the current one, in front of the sink. Return the state of the first."""
        while self.element.get_previous() is not None:
            sink = self._in_front_of(sink)
            self._step_back()
        return self._element(sink)

    def _step_back(self) -> None:
        previous = self.element.get_previous()
        assert previous is not None
        self.following, self.element = self.element, previous
        window = previous.get_window_size()
        if window is not None and (self.window is None or window < self.window):
            self.window = window

    def _in_front_of(self, sink: State) -> State:
        strategy = self.element.get_quantifier().strategy
        if strategy is ConsumingStrategy.NOT_FOLLOW:
            return self._not_followed_by(sink)
        if strategy is ConsumingStrategy.NOT_NEXT:
            return self._not_next(sink)
        return self._element(sink)

    def _not_followed_by(self, sink: State) -> State:
        """Build a waiting state if the element is the last one. Elsewhere, only forbid edges of its neighbours."""
        limited = self.element.get_window_size(WithinType.PREVIOUS_AND_CURRENT) is not None
        if sink.kind is not StateKind.FINAL or not (limited or self.window):
            return sink
        state, condition = self._own_state(StateKind.PENDING), self._take_condition(self.element)
        state.proceed(self._stop(condition, self.element.get_name()), condition)
        state.ignore(state, Not(condition))
        return state

    def _not_next(self, sink: State) -> State:
        state, condition = self._own_state(), self._take_condition(self.element)
        stop = self._stop(condition, self.element.get_name())
        if sink.kind is StateKind.FINAL:
            state.ignore(sink, Not(condition))  # the event after the absence is not taken, and ends the match
        else:
            state.proceed(sink, Not(condition))
        state.proceed(stop, condition)
        return state

    def _element(self, sink: State) -> State:
        kind = self.element.get_quantifier().kind
        if kind is Kind.LOOPING:
            self._set_first_round(False)
            loop = self._loop(self._free_sink(sink))
            self._set_first_round(True)
            state = self._times(loop, sink)
        elif kind is Kind.TIMES:
            state = self._times(sink, sink)
        else:
            take, ignore = self._take_condition(self.element), self._ignore_condition()
            state = self._single(sink, sink, take, ignore, self.element.get_quantifier().is_optional)
        self._add_stops(state)
        return state

    # --- one event ---
    def _single(self, sink: State, bypass: State, take: Condition, ignore: Condition | None, optional: bool) -> State:
        """Build a state that takes one event and goes to the sink.

        An optional one may go to the bypass without an event.
        """
        if isinstance(self.element, GroupPattern):
            return self._round(self.element, sink, bypass if optional else None)
        state = self._own_state()
        taken = self._free_sink(sink)
        state.take(taken, take)
        if optional:
            self._add_bypass(state, bypass)
        if ignore is not None:
            state.ignore(self._waiting(state, taken, take, ignore, optional), ignore)
        return state

    def _waiting(self, state: State, taken: State, take: Condition, ignore: Condition, optional: bool) -> State:
        """Return the state where a match waits after passing an event over. It cannot be bypassed."""
        if not (optional or self._heads_optional_group()):
            return state
        waiting = self._own_state(limited=False)
        waiting.take(taken, take)
        waiting.ignore(waiting, ignore)
        self._add_stops(waiting)
        return waiting

    def _add_bypass(self, state: State, bypass: State) -> None:
        condition, until = self._proceed_condition(), self.element.get_until_condition()
        if until is None or not self.element.get_quantifier().is_greedy:
            state.proceed(bypass, condition)
            return
        state.proceed(self._behind_until.get(bypass, bypass), both(condition, until))
        state.proceed(bypass, both(condition, Not(until)))

    # --- several events ---
    def _times(self, sink: State, bypass: State) -> State:
        """Build a state for each required event, followed by states for the optional events."""
        times, until = self.element.get_times(), self.element.get_until_condition()
        assert times is not None
        self._set_first_round(False)
        between = _before(until, self._inner_ignore_condition())
        take = _but_not(until, self._take_condition(self.element))
        if self.element.get_quantifier().is_greedy and times.least != times.most:
            sink.forbid(take)
        state = sink
        for _ in range(times.least, times.most):
            state = self._single(state, bypass, take, between, optional=True)
            self._add_stop_of_following(state)
        for _ in range(times.least - 1):
            state = self._single(state, bypass, take, between, optional=False)
            self._add_stop_of_following(state)
        self._set_first_round(True)
        return self._single(state, bypass, take, self._ignore_condition(), self.element.get_quantifier().is_optional)

    def _loop(self, sink: State) -> State:
        """Build a state that takes events repeatedly."""
        if isinstance(self.element, GroupPattern):
            return self._rounds(self.element, sink)
        until = self.element.get_until_condition()
        ignore = _before(until, self._inner_ignore_condition())
        take = _but_not(until, self._take_condition(self.element))
        loop = self._own_state()
        self._add_ways_on(loop, sink)
        loop.take(loop, take)
        self._add_stop_of_following(loop)
        if ignore is not None:
            waiting = self._own_state(limited=False)
            waiting.take(loop, take)
            waiting.ignore(waiting, ignore)
            loop.ignore(waiting, ignore)
            self._add_stop_of_following(waiting)
        return loop

    def _add_ways_on(self, loop: State, sink: State) -> None:
        """Connect a loop to the next element. A greedy loop leaves it no event that the loop itself would take."""
        condition, until = self._proceed_condition(), self.element.get_until_condition()
        if not self.element.get_quantifier().is_greedy:
            loop.proceed(sink, condition)
            return
        if until is not None:
            free = self._behind_until[sink] = self._copy(sink)
            loop.proceed(free, both(condition, until))
            condition = both(condition, Not(until))
        loop.proceed(sink, condition)
        sink.forbid(self._take_condition(self.element))

    # --- groups ---
    def _round(self, group: GroupPattern, sink: State, bypass: State | None) -> State:
        """Build the elements of a group once."""
        with self._inside(group):
            state = self._sequence(sink)
        if bypass is not None:
            state.proceed(bypass, self._proceed_condition())
        return state

    def _rounds(self, group: GroupPattern, sink: State) -> State:
        """Build the elements of a group as a loop."""
        condition = self._proceed_condition()
        end = self._own_state()
        with self._inside(group):
            state = self._sequence(end)
        state.proceed(sink, condition)
        end.proceed(state, condition)
        return state

    @contextmanager
    def _inside(self, group: GroupPattern) -> Iterator[None]:
        before = self.element, self.following, self.group
        self.element, self.group = group.get_raw_pattern(), group
        try:
            yield
        finally:
            self.element, self.following, self.group = before

    def _set_first_round(self, first: bool) -> None:
        if isinstance(self.element, GroupPattern):
            self._first_round[self.element] = first

    def _is_first_round(self) -> bool:
        return self.group is None or self._first_round.get(self.group, True)

    def _heads_group(self) -> bool:
        return self.group is not None and self.element.get_previous() is None

    def _heads_optional_group(self) -> bool:
        if self.group is None or not self._heads_group():
            return False
        return self._is_first_round() and self.group.get_quantifier().is_optional

    # --- what must not come ---
    def _forbidden(self) -> list[tuple[Condition, str]]:
        """Return the not_followed_by elements before the current one with only optional elements in between."""
        found, element = [], self.element.get_previous()
        while element is not None:
            negated = element.get_quantifier().strategy is ConsumingStrategy.NOT_FOLLOW
            if not (negated or element.get_quantifier().is_optional):
                break
            if negated:
                found.append((self._take_condition(element), element.get_name()))
            element = element.get_previous()
        return found

    def _add_stops(self, state: State) -> None:
        for condition, name in self._forbidden():
            state.proceed(self._stop(condition, name), condition)

    def _add_stop_of_following(self, state: State) -> None:
        """End the loop at an event of the next element, if that element is a not_followed_by."""
        following = self.following
        if following is not None and following.get_quantifier().strategy is ConsumingStrategy.NOT_FOLLOW:
            condition = self._take_condition(following)
            state.proceed(self._stop(condition, following.get_name()), condition)

    def _free_sink(self, sink: State) -> State:
        """Return the sink for matches in which an optional element has an event.

        It accepts events that were forbidden.
        """
        forbidden = {name for _, name in self._forbidden()}
        if not forbidden or not self.element.get_quantifier().is_optional:
            return sink
        copy = self._state(sink.name, sink.element, sink.kind)
        for edge in sink.edges:
            if edge.action is not Action.PROCEED:
                copy.add_edge(edge.action, copy if edge.target is sink else edge.target, edge.condition)
            elif edge.target.kind is not StateKind.STOP:
                copy.proceed(self._free_sink(edge.target), edge.condition)
            elif edge.target.name not in forbidden:
                copy.proceed(edge.target, edge.condition)
        return copy

    def _copy(self, state: State) -> State:
        copy = self._state(state.element, state.element, state.kind)
        for edge in state.edges:
            copy.add_edge(edge.action, copy if edge.target is state else edge.target, edge.condition)
        return copy

    # --- conditions ---
    def _group_until(self) -> Condition | None:
        return self.group.get_until_condition() if self.group is not None else None

    def _take_condition(self, element: Pattern) -> Condition:
        return _but_not(self._group_until(), element.get_condition())

    def _proceed_condition(self) -> Condition:
        return _but_not(self._group_until(), ALWAYS)

    def _ignore_condition(self) -> Condition | None:
        """Return the condition on events that may be skipped before the element's first event."""
        strategy = self.element.get_quantifier().strategy
        if self.group is not None and self._heads_group():
            quantifier = self.group.get_quantifier()
            strategy = quantifier.strategy if self._is_first_round() else quantifier.inner_strategy
        return self._passing_over(strategy)

    def _inner_ignore_condition(self) -> Condition | None:
        """Return the condition on events that may be skipped between the element's events."""
        quantified = self.group if self.group is not None and self._heads_group() else self.element
        return self._passing_over(quantified.get_quantifier().inner_strategy)

    def _passing_over(self, strategy: ConsumingStrategy) -> Condition | None:
        condition: Condition | None = None
        if strategy is ConsumingStrategy.SKIP_TILL_NEXT:
            condition = Not(self.element.get_condition())
        elif strategy is ConsumingStrategy.SKIP_TILL_ANY:
            condition = ALWAYS
        return _before(self._group_until(), condition)


def _but_not(until: Condition | None, condition: Condition) -> Condition:
    """Return the condition for events that do not end the loop."""
    return condition if until is None else both(Not(until), condition)


def _before(until: Condition | None, condition: Condition | None) -> Condition | None:
    """Return the condition for events that do not end the loop, or None if there is no condition."""
    return None if condition is None else _but_not(until, condition)
