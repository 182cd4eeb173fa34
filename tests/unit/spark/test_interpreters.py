"""What Spark says about an interpreter that cannot run slots becomes one message with both interpreters."""

import sys

import pytest

from penstock.spark.sessions.interpreters import UNFIT, Interpreter, unfit_interpreter
from penstock.spark.slots.slot_tasks import reason


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "ModuleNotFoundError: No module named 'penstock'\n",
            "'python3' has no Penstock, or another version",
        ),
        (
            "AttributeError: Can't get attribute 'Invitation' on <module 'penstock.spark.slots.worker'>",
            "or another version",
        ),
        (
            "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: "
            "3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.",
            "'python3' is Python 3.12",
        ),
        (
            'java.io.IOException: Cannot run program "./env/bin/python": error=2, No such file or directory',
            "the program './env/bin/python' does not exist on the executors",
        ),
    ],
)
def test_an_interpreter_that_does_not_fit_is_named(text: str, says: str) -> None:
    said = reason(text, "python3")
    assert said.startswith(UNFIT)
    assert says in said
    assert f"'{sys.executable}', Python {sys.version_info[0]}.{sys.version_info[1]} with Penstock" in said
    assert "spark.pyspark.python" in said


def test_other_errors_are_not_about_interpreters() -> None:
    assert unfit_interpreter("ModuleNotFoundError: No module named 'penstocks_friend'") is None
    assert unfit_interpreter("ExecutorLostFailure") is None


def test_a_slot_with_another_penstock_says_so() -> None:
    Interpreter().check_slot()
    with pytest.raises(RuntimeError, match=r"with Penstock 9\.9\.9") as error:
        Interpreter("/driver/python", "3.11", "9.9.9").check_slot()
    assert unfit_interpreter(f"RuntimeError: {error.value}") == str(error.value)
