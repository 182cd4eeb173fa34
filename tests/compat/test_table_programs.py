"""Small Table programs of PyFlink run unchanged through the command line, and print what PyFlink printed.

What PyFlink 2.3 printed is in the comment at the end of each program. Where ours stays different, it says why.
"""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import compat
from penstock.service.cli import app
from penstock.testing import in_process

PROGRAMS = sorted((Path(__file__).parent / "repros/tables").glob("*.py"))
NEEDS_SPARK = "16_python_file_twice"
"""The program that brings Python files, which only slots in processes of their own import."""
RECORDED = "# --- recorded on PyFlink 2.3.0:\n"
DIFFERENT = {
    # Modules are ours.
    # Messages name the function, too.
    "15_async_retry_default": {
        "Async scalar": "the function g has func_type='pandas': Async scalar",
        "Invalid returnType": "the function <lambda>: Invalid returnType",
    },
    # The types are found out.
    "06_from_elements_row_expression": {
        "EXCEPTION TypeError not supported type: <class 'py4j.java_gateway.JavaObject'>": (
            "[\"<Row(1, 'abc', 2.0)>\", \"<Row(2, 'def', 3.0)>\"]"
        )
    },
    "20_empty_folder": {
        f"no_folder batch={batch} -> EXCEPTION Py4JJavaError Caused by: java.io.FileNotFoundException: File <folder>/x "
        "does not exist or the user running Flink ('root') has insufficient permissions to access it.": (
            f"no_folder batch={batch} -> EXCEPTION NotFound files default_catalog.default_database.no_folder (uid "
            "files-default-catalog-default-database-no-folder-0, subtask 0) failed: NotFound: there is no file at "
            "file:<folder>/x"
        )
        for batch in (False, True)
    },
    # Errors are ours: they have other classes, and say what is there.
    "17_catalogs_modules": {
        "TableNotExistException at java.base/java.lang.Thread.run(Thread.java:840)": (
            "TableNotExistException there is no table nodb.t"
        ),
        "twice -> EXCEPTION Py4JJavaError at java.base/java.lang.Thread.run(Thread.java:840)": (
            "twice -> EXCEPTION ValidationException Module 'core' appears more than once"
        ),
        "dummy -> EXCEPTION Py4JJavaError at java.base/java.lang.Thread.run(Thread.java:840)": (
            "dummy -> EXCEPTION ValidationException No module with name 'dummy' exists; loaded are: core"
        ),
    },
    "25_sql_refused": {
        "Py4JJavaError Caused by: org.apache.flink.sql.parser.impl.ParseException:": "ValidationException",
    },
    "10_names_of_types": {"pyflink.table.types": "penstock.table.types.data_types"},
    "09_types_checked": {
        "TypeError field a in element in array field c: VARCHAR can not accept object True in type <class 'bool'>": (
            "WrongType field a in element of the array in field c: STRING cannot hold True (bool)"
        ),
        "TypeError field a: INT can not accept object 'x' in type <class 'str'>": (
            "WrongType field a: INT cannot hold 'x' (str)"
        ),
        "TypeError field a: VARCHAR can not accept object 1 in type <class 'int'>": (
            "WrongType field a: STRING cannot hold 1 (int)"
        ),
        "TypeError field a: INT can not accept object True in type <class 'bool'>": (
            "WrongType field a: INT cannot hold True (bool)"
        ),
        "TypeError field a: BOOLEAN can not accept object 1 in type <class 'int'>": (
            "WrongType field a: BOOLEAN cannot hold 1 (int)"
        ),
        "TypeError field a: INT can not accept object 1.5 in type <class 'float'>": (
            "WrongType field a: INT cannot hold 1.5 (float)"
        ),
        "ValueError field a: object of TinyIntType out of range, got: 300": (
            "WrongValue field a: 300 is out of the range of TINYINT"
        ),
        "ValueError field a: This field is not nullable, but got None": (
            "WrongValue field a: INT NOT NULL cannot hold None"
        ),
    },
    # Types for some of the columns would leave out the others without a word.
    "23_from_pandas_types": {
        "too few types -> root\n |-- a: TINYINT": (
            "too few types -> EXCEPTION ValidationException 1 types do not fit the 3 columns of the DataFrame"
        )
    },
    # PyFlink has no form in Python for the type.
    "26_local_time_zone": {
        "EXCEPTION Py4JJavaError at java.base/java.lang.Thread.run(Thread.java:840)": (
            "[\"<Row(datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=zoneinfo.ZoneInfo(key='UTC')))>\"]"
        )
    },
}
"""Parts of PyFlink's output and what stands in their place here."""


@pytest.fixture
def run(monkeypatch):
    """Runs a program as `penstock run --pyflink` does, and gives what it printed."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))

    def run(program, *options):
        result = CliRunner().invoke(app, ["run", *options, "--pyflink", str(program)])
        assert result.exit_code == 0, result.output
        return without_folders(result.stdout)

    yield run
    compat.uninstall()


def without_folders(text):
    """A text without the paths of temporary folders and without empty lines, which were not recorded."""
    return re.sub(r"\n+", "\n", re.sub(r"/\S*/tmp\w+|<folder>", "<folder>", text))


def expected(program):
    lines = program.read_text().partition(RECORDED)[2].splitlines(keepends=True)
    text = "".join(line.removeprefix("# ") for line in lines)
    for theirs, ours in DIFFERENT.get(program.stem, {}).items():
        assert theirs in text
        text = text.replace(theirs, ours)
    return without_folders(text)


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.stem != NEEDS_SPARK], ids=lambda path: path.stem)
def test_on_our_operators(run, program):
    with in_process():
        assert run(program, "-D", "table.exec.batch.engine=penstock") == expected(program)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["21_stream_env_in_batch_mode", NEEDS_SPARK])
def test_on_spark(run, name):
    program = Path(__file__).parent / "repros/tables" / f"{name}.py"
    assert run(program) == expected(program)
