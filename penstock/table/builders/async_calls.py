"""The options of asynchronous functions: their limits, timeouts and retries."""

from __future__ import annotations

import copy
from dataclasses import replace

from penstock.common.configuration import parse_duration
from penstock.table.expression.function_declarations import AsyncOptions, UserDefinedFunctionWrapper
from penstock.table.logical.nodes import Relation, rewritten_plan
from penstock.table.logical.rex import Call, Rex, rewritten
from penstock.table.rules.implementation.query_settings import Options
from penstock.table.sql.subqueries.correlation import with_rexes

_PREFIX = "table.exec.async-scalar"


def async_options(config: Options) -> AsyncOptions:
    """Return the options `table.exec.async-scalar.*`."""
    retries = config.get(f"{_PREFIX}.retry-strategy", "FIXED_DELAY").strip().upper() == "FIXED_DELAY"
    at_once = config.get(f"{_PREFIX}.buffer-capacity", "10")
    return AsyncOptions(
        repetitions=int(config.get(f"{_PREFIX}.max-attempts", "3")) if retries else 0,
        delay=parse_duration(config.get(f"{_PREFIX}.retry-delay", "100 ms")) / 1000,
        timeout=parse_duration(config.get(f"{_PREFIX}.timeout", "3 min")) / 1000,
        capacity=int(config.get(f"{_PREFIX}.max-concurrent-operations", at_once)),
    )


class AsyncCalls:
    """Rewrites the plans of one program. A function remains one object, so that it is opened once."""

    def __init__(self, options: AsyncOptions) -> None:
        self._options = options
        self._functions: dict[int, tuple[UserDefinedFunctionWrapper, UserDefinedFunctionWrapper]] = {}

    def bind_options(self, relation: Relation) -> Relation:
        """Return a plan whose asynchronous functions have the options."""
        return rewritten_plan(relation, lambda node: with_rexes(node, lambda rex: rewritten(rex, self._call)))

    def _call(self, rex: Rex) -> Rex | None:
        if not isinstance(rex, Call) or rex.udf is None or rex.udf.kind != "scalar" or not rex.udf.asynchronous:
            return None
        args = tuple(rewritten(arg, self._call) for arg in rex.args)
        return replace(rex, args=args, udf=self._function(rex.udf))

    def _function(self, function: UserDefinedFunctionWrapper) -> UserDefinedFunctionWrapper:
        known = self._functions.get(id(function))
        if known is None:
            same = copy.copy(function)
            same.async_options = self._options
            known = self._functions[id(function)] = (function, same)
        return known[1]
