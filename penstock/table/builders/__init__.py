"""From a logical plan to operators: optimising, choosing operators, explaining."""

from penstock.table.builders.physical import Physical
from penstock.table.builders.planner import Planner

__all__ = ["Physical", "Planner"]
