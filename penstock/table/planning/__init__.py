"""From a logical plan to operators: optimising, choosing operators, explaining."""

from penstock.table.planning.physical import Physical
from penstock.table.planning.planner import Planner

__all__ = ["Physical", "Planner"]
