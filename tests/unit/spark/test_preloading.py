"""What a task imports before it forks its slot: what the program needs of Penstock, and nothing that starts threads."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.sessions.preloading import LIBRARIES, preload


def printed(program: str) -> list[str]:
    """What a program prints in a process of its own, in words."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_it_is_what_the_program_has_imported_and_the_libraries_behind_it():
    without, with_kafka = (
        printed(
            f"import penstock.datastream.{part}\n"
            "from penstock.spark.sessions.preloading import modules_to_import\n"
            "print(*modules_to_import())"
        )
        for part in ("functions", "connectors.kafka")
    )
    assert "penstock.datastream.functions" in without and "confluent_kafka.admin" not in without
    assert {"penstock.datastream.connectors.kafka", "confluent_kafka.admin"} <= set(with_kafka)
    assert not any("jdbc" in name or "sqlalchemy" in name for name in with_kafka)


@pytest.mark.parametrize("connector", LIBRARIES)
def test_a_connector_names_what_there_is(connector):
    for library in LIBRARIES[connector]:
        pytest.importorskip(library.partition(".")[0])
        assert printed(f"import {connector}, {library}, sys; print('{library}' in sys.modules)") == ["True"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not show threads")
def test_no_thread_is_started():
    """A fork takes only the thread along that calls it."""
    assert printed(
        """
import os, pkgutil, sys
from penstock import datastream
from penstock.spark.sessions.preloading import LIBRARIES, preload

parts = [module.name for module in pkgutil.walk_packages(datastream.__path__, "penstock.datastream.")]
preload([*parts, *(library for part in parts for library in LIBRARIES.get(part, ()))])
print(sum(name.startswith("penstock.") for name in sys.modules) > 100, len(os.listdir("/proc/self/task")))
"""
    ) == ["True", "1"]


def test_what_cannot_be_imported_is_left_to_the_slot():
    sys.modules.pop("colorsys", None)
    preload(["no.such_library", "colorsys"])
    assert "colorsys" in sys.modules
