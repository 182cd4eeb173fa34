"""From a logical plan to operators: the planner optimises, chooses physical nodes, builds operators, and explains."""

from penstock.table.builders.planner import Planner

__all__ = ["Planner"]
