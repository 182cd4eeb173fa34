"""The plan of a program. The program is stopped before it starts its first job."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import NothingToExecute
from penstock.graph.plan import Plan
from penstock.service.launch.program_runner import Program
from penstock.service.launch.submission import with_defaults


class _Planned(BaseException):
    """Ends the program with its plan. The program's `except Exception` does not catch it."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


def plan_of_program(program: Program, arguments: Sequence[str] = (), pyflink: bool = False) -> Plan:
    """Run a program up to its first job, and return that job's plan. Code before the first job does run."""
    try:
        with with_defaults(on_plan=_end, plans_only=True):
            program.run(arguments, pyflink)
    except _Planned as planned:
        return planned.plan
    raise NothingToExecute("the program ended without starting a job")


def _end(plan: Plan) -> None:
    raise _Planned(plan)
