"""The automaton of a pattern as text, and as a graph that Graphviz can draw."""

from __future__ import annotations

from penstock.cep.automaton import Action, Automaton, Edge, State, StateKind
from penstock.cep.compiler import compile_pattern
from penstock.cep.conditions import condition_text
from penstock.cep.pattern import Pattern

_SHAPES = {StateKind.FINAL: "doublecircle", StateKind.STOP: "octagon", StateKind.PENDING: "doubleoctagon"}
_STYLES = {Action.TAKE: "solid", Action.IGNORE: "dashed", Action.PROCEED: "dotted"}


def explain_pattern(pattern: Pattern, format: str) -> str:
    """Return the automaton of a pattern in one of the formats `text` and `dot`."""
    if format not in ("text", "dot"):
        raise ValueError(f"explain supports the formats 'text' and 'dot', not {format!r}")
    automaton = compile_pattern(pattern)
    return _text(automaton) if format == "text" else _dot(automaton)


def _states(automaton: Automaton) -> list[State]:
    """Return the states, from the start to the end."""
    return automaton.states[::-1]


def _text(automaton: Automaton) -> str:
    window = "no limit of time" if automaton.window is None else f"within {automaton.window} ms"
    lines = [f"{window}, {automaton.skip}"]
    for state in _states(automaton):
        kind = "" if state.kind is StateKind.NORMAL else f" ({state.kind.value})"
        limit = "" if state.limit is None else f" within {state.limit} ms of the event before"
        lines.append(f"{_name(state)}{kind}{limit}")
        lines += [f"  {_label(edge)} -> {_name(edge.target)}" for edge in state.edges]
    return "\n".join(lines)


def _label(edge: Edge) -> str:
    condition = condition_text(edge.condition)
    return edge.action.value if condition == "always" else f"{edge.action.value} if {condition}"


def _dot(automaton: Automaton) -> str:
    lines = [
        "digraph pattern {",
        "  rankdir=LR;",
        '  "" [shape=none];',
        f"  {_quote('')} -> {_node(automaton.start)};",
    ]
    for state in _states(automaton):
        lines.append(f"  {_node(state)} [shape={_SHAPES.get(state.kind, 'circle')}];")
    for state in _states(automaton):
        for edge in state.edges:
            style = f"label={_quote(_label(edge))}, style={_STYLES[edge.action]}"
            lines.append(f"  {_node(state)} -> {_node(edge.target)} [{style}];")
    return "\n".join([*lines, "}"])


def _node(state: State) -> str:
    return _quote(_name(state))


def _name(state: State) -> str:
    return "end" if state.kind is StateKind.FINAL else state.name


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
