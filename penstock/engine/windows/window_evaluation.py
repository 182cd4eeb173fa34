"""The evaluation of a fired window: its contents are passed through, or given to a window function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Evaluation:
    """Emits the contents of the pane as they are: a reduced value or the result of an aggregate."""

    function: Any = None

    def evaluate(self, key: Any, window: Any, context: Any, elements: list[Any]) -> Any:
        """Return the results of a fired window."""
        return elements

    def clear(self, context: Any) -> None:
        """Release the state of a window that is about to be dropped."""


@dataclass
class ProcessEvaluation(Evaluation):
    """A ProcessWindowFunction."""

    def evaluate(self, key: Any, window: Any, context: Any, elements: list[Any]) -> Any:
        return self.function.process(key, context, elements)

    def clear(self, context: Any) -> None:
        self.function.clear(context)


@dataclass
class ProcessAllEvaluation(ProcessEvaluation):
    """A ProcessAllWindowFunction, which gets no key."""

    def evaluate(self, key: Any, window: Any, context: Any, elements: list[Any]) -> Any:
        return self.function.process(context, elements)


@dataclass
class ApplyEvaluation(Evaluation):
    """A WindowFunction, or a function of (key, window, elements)."""

    def evaluate(self, key: Any, window: Any, context: Any, elements: list[Any]) -> Any:
        return getattr(self.function, "apply", self.function)(key, window, elements)


@dataclass
class ApplyAllEvaluation(Evaluation):
    """An AllWindowFunction, or a function of (window, elements)."""

    def evaluate(self, key: Any, window: Any, context: Any, elements: list[Any]) -> Any:
        return getattr(self.function, "apply", self.function)(window, elements)
