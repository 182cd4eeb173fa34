"""Relations that only the optimiser makes: each stands for one operator."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.plan.nodes import Relation
from penstock.table.plan.rex import Rex


@dataclass(frozen=True)
class Calc(Relation):
    """Filter and projection at once, both over the columns of the input."""

    input: Relation
    exprs: tuple[Rex, ...]
    condition: Rex | None

    def details(self) -> str:
        select = ", ".join(
            str(expr) if str(expr) == name else f"{expr} AS {name}"
            for expr, name in zip(self.exprs, self.names(), strict=True)
        )
        return f"select=[{select}]" + ("" if self.condition is None else f", where=[{self.condition}]")
