"""The automaton that a pattern becomes: states, and edges that an event may take."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from zlib import crc32

from penstock.cep.conditions import Condition, Not, both
from penstock.cep.skipping import AfterMatchSkipStrategy


class StateKind(Enum):
    """Meaning of a state for a match that reaches it."""

    START = "start"
    NORMAL = "normal"
    PENDING = "pending"
    """The match is complete unless a forbidden event comes before its time is up."""
    STOP = "stop"
    """A forbidden event has come."""
    FINAL = "final"


class Action(Enum):
    """Effect of an edge on the event."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"
    """Continue at the target state, which processes the same event."""


@dataclass(eq=False)
class Edge:
    """A way out of a state, open to events that fulfil the condition."""

    action: Action
    source: State
    target: State
    condition: Condition


@dataclass(eq=False)
class State:
    """A place where a partial match can wait for the next event."""

    number: int
    name: str
    """Name of the state, unique in the automaton."""
    element: str
    """Name of the element, under which an accepted event is stored."""
    kind: StateKind
    edges: list[Edge] = field(default_factory=list)
    limit: int | None = None
    """Time after the last event for which a partial match may wait here, in milliseconds."""

    def take(self, target: State, condition: Condition) -> None:
        """Add an edge that takes the event."""
        self.add_edge(Action.TAKE, target, condition)

    def ignore(self, target: State, condition: Condition) -> None:
        """Add an edge that skips the event."""
        self.add_edge(Action.IGNORE, target, condition)

    def proceed(self, target: State, condition: Condition) -> None:
        """Add an edge that moves on to the target with the same event."""
        self.add_edge(Action.PROCEED, target, condition)

    def add_edge(self, action: Action, target: State, condition: Condition) -> None:
        """Add an edge to a target state."""
        self.edges.append(Edge(action, self, target, condition))

    def forbid(self, condition: Condition) -> None:
        """Close every edge to events that fulfil the condition."""
        for edge in self.edges:
            edge.condition = both(edge.condition, Not(condition))


@dataclass
class Automaton:
    """All states of a pattern, and the settings that apply to a match as a whole."""

    states: list[State]
    start: State
    window: int | None
    """Time after its first event within which a match must be complete, in milliseconds."""
    skip: AfterMatchSkipStrategy

    def shape(self) -> int:
        """Return a number that depends on the states and edges, but not on their conditions and times.

        Saved partial matches refer to states by number, so they fit every automaton of the same shape.
        """
        lines = [
            f"{state.name} {state.element} {state.kind.value} "
            + " ".join(f"{edge.action.value}:{edge.target.number}" for edge in state.edges)
            for state in self.states
        ]
        return crc32("\n".join(lines).encode())
