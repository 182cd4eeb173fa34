"""The plan of a program that is not run: it is stopped when it would start its first job."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import NothingToExecute
from penstock.graph.plan import Plan
from penstock.service.launch.program_runner import Program
from penstock.service.launch.submission import with_defaults


class _Planned(BaseException):
    """Ends the program with its plan; no `except Exception` of the program's holds it up."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


def plan_of_program(program: Program, arguments: Sequence[str] = (), pyflink: bool = False) -> Plan:
    """Run a program up to its first job, and give that job's plan. What the program does before, it does."""
    try:
        with with_defaults(on_plan=_end, plans_only=True):
            program.run(arguments, pyflink)
    except _Planned as planned:
        return planned.plan
    raise NothingToExecute("the program has come to its end without a job")


def _end(plan: Plan) -> None:
    raise _Planned(plan)
