"""Checks of a whole pattern: names, skip targets, times. Methods check their own arguments themselves."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.cep.automaton import Action, Automaton, State
from penstock.cep.pattern import GroupPattern, Pattern
from penstock.cep.quantifier import ConsumingStrategy, WithinType
from penstock.errors import MalformedPatternException


def check_names(pattern: Pattern, reserved: str) -> None:
    """Check that every name belongs to one element, inside groups as well."""
    seen = {reserved}
    for name in _names(pattern):
        if name == reserved:
            raise MalformedPatternException(f"an element cannot be named '{reserved}': the final state has this name")
        if name in seen:
            raise MalformedPatternException(f"two elements are named '{name}': names must be unique in a pattern")
        seen.add(name)


def _names(pattern: Pattern) -> Iterator[str]:
    for element in pattern.elements():
        if isinstance(element, GroupPattern):
            yield from _names(element.get_raw_pattern())
        else:
            yield element.get_name()


def check_skip(pattern: Pattern) -> None:
    """Check that the target of the skip strategy is an element outside groups."""
    skip = pattern.get_after_match_skip_strategy()
    names = [element.get_name() for element in pattern.elements()]
    if skip.target is not None and skip.target not in names:
        raise MalformedPatternException(f"cannot {skip}: the elements outside groups are {', '.join(map(repr, names))}")


def check_times(pattern: Pattern, automaton: Automaton) -> None:
    """Check that limits fit into each other, and that a not_followed_by element at the end has one."""
    window = automaton.window
    for state in automaton.states:
        if window is not None and state.limit is not None and state.limit > window:
            raise MalformedPatternException(
                f"'{state.element}' may come {state.limit} ms after the previous event, which is longer than the "
                f"{window} ms of the whole match"
            )
    last = pattern.get_quantifier().strategy is ConsumingStrategy.NOT_FOLLOW
    if last and window is None and pattern.get_window_size(WithinType.PREVIOUS_AND_CURRENT) is None:
        raise MalformedPatternException(
            f"'{pattern.get_name()}' ends with a not_followed_by element, so a match is complete only when its "
            "time is over: set a time with within(...)"
        )


def check_rounds(automaton: Automaton) -> None:
    """Check that each loop takes an event in each round. Otherwise a single event would keep it busy for ever."""
    done: set[State] = set()
    for state in automaton.states:
        _follow(state, [], done)


def _follow(state: State, path: list[State], done: set[State]) -> None:
    if state in path:
        around = sorted({each.element for each in path[path.index(state) :]} - {"GroupPattern"})
        raise MalformedPatternException(
            f"the elements {', '.join(map(repr, around))} form a loop of optional elements: at least one of them "
            "must not be optional"
        )
    if state in done:
        return
    for edge in state.edges:
        if edge.action is Action.PROCEED:
            _follow(edge.target, [*path, state], done)
    done.add(state)
