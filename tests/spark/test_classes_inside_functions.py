"""Classes that a function of the main script defines can be records: they come back as the very same classes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.service.cli import app

KINDS = ["Global", "Named", "Made", "Data", "Plain", "Choice"]


@pytest.mark.spark
def test_records_of_classes_inside_functions() -> None:
    program = Path(__file__).with_name("classes_inside_functions.py")
    result = CliRunner().invoke(app, ["run", str(program)])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert [line for line in lines if line.endswith("True")] == [f"{kind} True" for kind in KINDS]
    assert sorted(line.split("> ")[1] for line in lines if "> " in line) == sorted(KINDS)
