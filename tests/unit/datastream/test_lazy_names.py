"""penstock.datastream resolves its names when they are used, and lists each exactly once."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import penstock.datastream as datastream

BUILDERS = ("data_stream", "stream_execution_environment")
MODULE_OF = {
    name: module.removeprefix("penstock.datastream").removeprefix(".")
    for module, names in datastream._NAMES_BY_MODULE.items()
    for name in names.split()
}


def vocabulary_names():
    return [name for name in datastream.__all__ if MODULE_OF[name] not in BUILDERS]


def test_the_table_the_list_and_the_imports_for_type_checkers_agree():
    imported = {
        alias.name: node.module.removeprefix("penstock.datastream.")
        for node in ast.walk(ast.parse(Path(datastream.__file__).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("penstock.datastream.")
        for alias in node.names
    }
    assert imported == MODULE_OF
    assert sorted(imported) == sorted(datastream.__all__)


@pytest.mark.parametrize("name", vocabulary_names())
def test_a_name_is_the_object_of_its_module(name):
    module = import_module(f"penstock.datastream.{MODULE_OF[name]}")
    assert getattr(datastream, name) is getattr(module, name)


@pytest.mark.parametrize("module", ["functions", "state"])
def test_every_name_of_these_modules_is_in_the_package(module):
    exported = {name for name, origin in MODULE_OF.items() if origin == module}
    assert exported == set(import_module(f"penstock.datastream.{module}").__all__)


def test_dir_shows_names_and_submodules():
    assert {*datastream.__all__, "functions", "state", "window", "data_stream"} <= set(dir(datastream))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchStream"):
        datastream.NoSuchStream


def test_importing_the_package_imports_nothing_else_until_a_name_is_used():
    program = """
import sys
import penstock.datastream as d
assert not any(name.startswith("penstock.datastream.") for name in sys.modules), sorted(sys.modules)
assert d.window.TimeWindow is d.TimeWindow
assert d.functions.MapFunction is d.MapFunction
assert d.state.ValueState is d.ValueState
assert "penstock.datastream.data_stream" not in sys.modules
assert "pyspark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
