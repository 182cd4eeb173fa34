"""The automaton that a pattern becomes: states, and edges that an event may take."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from zlib import crc32

from penstock.cep.conditions import Condition, Not, both
from penstock.cep.skipping import AfterMatchSkipStrategy


class StateKind(Enum):
    """What reaching a state means."""

    START = "start"
    NORMAL = "normal"
    PENDING = "pending"
    """The match is complete unless something comes before its time is up."""
    STOP = "stop"
    """What must not come has come."""
    FINAL = "final"


class Action(Enum):
    """What an edge does with the event."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"
    """Go on to the target and look at the same event from there."""


@dataclass(eq=False)
class Edge:
    """A way out of a state, open to an event that fulfils the condition."""

    action: Action
    source: State
    target: State
    condition: Condition


@dataclass(eq=False)
class State:
    """A place where a partial match can wait for the next event."""

    number: int
    name: str
    """Unique in the automaton."""
    element: str
    """The name under which an event is kept that is taken here."""
    kind: StateKind
    edges: list[Edge] = field(default_factory=list)
    limit: int | None = None
    """How many milliseconds after the last event a partial match may still wait here."""

    def take(self, target: State, condition: Condition) -> None:
        self.add_edge(Action.TAKE, target, condition)

    def ignore(self, target: State, condition: Condition) -> None:
        self.add_edge(Action.IGNORE, target, condition)

    def proceed(self, target: State, condition: Condition) -> None:
        self.add_edge(Action.PROCEED, target, condition)

    def add_edge(self, action: Action, target: State, condition: Condition) -> None:
        self.edges.append(Edge(action, self, target, condition))

    def forbid(self, condition: Condition) -> None:
        """Close every edge to events that fulfil the condition."""
        for edge in self.edges:
            edge.condition = both(edge.condition, Not(condition))


@dataclass
class Automaton:
    """All states of a pattern, and what holds for a match as a whole."""

    states: list[State]
    start: State
    window: int | None
    """How many milliseconds after its first event a match must be complete."""
    skip: AfterMatchSkipStrategy

    def shape(self) -> int:
        """A number that stays while the states and their edges stay, whatever their conditions and times are.

        Saved partial matches know states by their numbers, so that they fit any automaton of the same shape.
        """
        lines = [
            f"{state.name} {state.element} {state.kind.value} "
            + " ".join(f"{edge.action.value}:{edge.target.number}" for edge in state.edges)
            for state in self.states
        ]
        return crc32("\n".join(lines).encode())
