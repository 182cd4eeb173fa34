"""CEP: patterns over streams, with the semantics of FlinkCEP.

pattern = Pattern.begin("small").where(lambda p: p.amount < 10).followed_by("large").where(lambda p: p.amount > 500)
CEP.pattern(payments.key_by(lambda p: p.card), pattern.within(Duration.of_minutes(10))).select(alarm)
"""

from typing import TYPE_CHECKING

from penstock.base.lazy_names import lazy_names
from penstock.cep.conditions import ConditionContext, IterativeCondition, RichIterativeCondition, SimpleCondition
from penstock.cep.pattern import GroupPattern, Pattern
from penstock.cep.pattern_functions import (
    EventComparator,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    RichPatternFlatSelectFunction,
    RichPatternSelectFunction,
    TimedOutPartialMatchHandler,
)
from penstock.cep.pattern_updates import PatternUpdate
from penstock.cep.quantifier import ConsumingStrategy, Quantifier, Times, WithinType
from penstock.cep.skipping import AfterMatchSkipStrategy
from penstock.errors import MalformedPatternException

if TYPE_CHECKING:
    from penstock.datastream.builders.pattern_stream import CEP, PatternStream
else:  # the builders stand above this package, and a worker must not import them
    __getattr__, __dir__ = lazy_names(__name__, {"penstock.datastream.builders.pattern_stream": "CEP PatternStream"})

__all__ = [
    "CEP",
    "AfterMatchSkipStrategy",
    "ConditionContext",
    "ConsumingStrategy",
    "EventComparator",
    "GroupPattern",
    "IterativeCondition",
    "MalformedPatternException",
    "Pattern",
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternStream",
    "PatternTimeoutFunction",
    "PatternUpdate",
    "Quantifier",
    "RichIterativeCondition",
    "RichPatternFlatSelectFunction",
    "RichPatternSelectFunction",
    "SimpleCondition",
    "TimedOutPartialMatchHandler",
    "Times",
    "WithinType",
]
