"""The Python of the slots: the driver's own on this machine, and on other machines one with the same Penstock."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

from pyspark import SparkContext

from penstock import __version__

UNFIT = "the slots have another Python than the driver"
"""Beginning of the message about an interpreter that can never run a slot."""


def use_own_interpreter(context: SparkContext) -> None:
    """Run Python tasks of a local master with the driver's interpreter, unless `spark.pyspark.python` names one.

    Without this, Spark would start the `python3` of the PATH, which may lack Penstock.
    """
    if context.getConf().get("spark.pyspark.python") is None:
        context.pythonExec = sys.executable


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter with a version of Penstock."""

    path: str = field(default_factory=lambda: sys.executable)
    python: str = field(default_factory=lambda: "{}.{}".format(*sys.version_info))
    penstock: str = __version__

    def __str__(self) -> str:
        return f"'{self.path}', Python {self.python} with Penstock {self.penstock}"

    def check_slot(self) -> None:
        """Raise RuntimeError in a slot with another Penstock than this interpreter, which is the driver's."""
        own = Interpreter()
        if own.penstock != self.penstock:
            raise RuntimeError(f"{UNFIT}: it is {own}, and the driver's is {self}. {_advice()}")


def unfit_interpreter(text: str, interpreter: str | None = None) -> str | None:
    """Return a message if Spark's error text means that an interpreter cannot run slots, or None for other errors.

    `interpreter` is the command with which Spark starts the interpreter on every machine.
    """
    told = re.search(rf"{UNFIT}: .*", text)
    if told is not None:
        return told[0]
    problem = _problem(text, f"'{interpreter}'" if interpreter is not None else "it")
    if problem is None:
        return None
    return f"{UNFIT}: {problem}. The driver's is {Interpreter()}. {_advice()}"


def _problem(text: str, named: str) -> str | None:
    missing = re.search(r'Cannot run program "([^"]+)"', text)
    if missing is not None:
        return f"the program '{missing[1]}' does not exist on the executors"
    if re.search(r"No module named '?penstock\b|(?:cannot import name|Can't get attribute) .*penstock", text):
        return f"{named} has no Penstock, or another version"
    other = re.search(r"Python in worker has different (?:minor )?version:? \(?(\d+)(?:\.|, )(\d+)", text)
    return None if other is None else f"{named} is Python {other[1]}.{other[2]}"


def _advice() -> str:
    return (
        f"Install Penstock {__version__} there, or name an interpreter that has it with spark.pyspark.python "
        "(PYSPARK_PYTHON); one in an archive of spark.archives has the path ./NAME/bin/python"
    )
