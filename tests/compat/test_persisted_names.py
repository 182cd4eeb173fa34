"""Checkpoints outlive the modules that wrote them: names in them are stable, and old ones are found where they went."""

import ast
import json
import pickle
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import penstock
from penstock import persisted
from penstock.base import pickling
from penstock.common import Row
from penstock.datastream.window import TimeWindow
from penstock.engine.windows.window_joins import TimeBuffer
from tests.compat.persisted import names_in, names_in_snapshot, recorded_names
from tests.compat.savepoints import FOLDER
from tests.compat.savepoints_before_0_2 import PROGRAMS, unpack

PACKAGE = Path(penstock.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
SAVEPOINTS = sorted(path for path in FOLDER.iterdir() if path.is_dir())
STABLE = {"penstock.persisted", "penstock.datastream.window", "penstock.common.types"}
"""The modules under whose names classes are written since format 2."""


class TestNames:
    @pytest.mark.parametrize("name", sorted(recorded_names()))
    def test_every_name_ever_written_is_found(self, name):
        module, _, attribute = name.partition(":")
        assert persisted.find_persisted(module, attribute).__name__ == attribute.rpartition(".")[2]

    @pytest.mark.parametrize("folder", SAVEPOINTS, ids=lambda folder: folder.name)
    def test_the_names_in_savepoints_are_recorded(self, folder):
        assert names_in_snapshot(folder) and names_in_snapshot(folder) <= recorded_names()

    @pytest.mark.parametrize("name", sorted(persisted.PLACES))
    def test_a_marked_class_is_written_without_its_place(self, name):
        assert names_in(pickling.dumps(getattr(persisted, name))) == {f"penstock.persisted:{name}"}

    @pytest.mark.parametrize("name", sorted(name for name in recorded_names() if name not in persisted.MOVED))
    def test_what_is_written_today_has_the_name_that_is_recorded(self, name):
        module, _, attribute = name.partition(":")
        assert names_in(pickling.dumps(persisted.find_persisted(module, attribute))) == {name}

    @pytest.mark.parametrize("folder", SAVEPOINTS, ids=lambda folder: folder.name)
    def test_only_format_1_names_modules_that_may_move(self, folder):
        modules = {name.partition(":")[0] for name in names_in_snapshot(folder)}
        assert (modules <= STABLE) is not folder.name.startswith("1-")

    @pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
    @pytest.mark.parametrize("kind", PROGRAMS)
    def test_savepoints_of_before_0_2_have_recorded_and_stable_names(self, kind, backend, tmp_path):
        names = names_in_snapshot(unpack(kind, backend, tmp_path))
        assert names and names <= recorded_names()
        assert {name.partition(":")[0] for name in names} <= STABLE


class TestReading:
    def test_by_the_old_name(self):
        # Protocol 2 names classes in plain text, and without a length before it.
        old = pickle.dumps(TimeBuffer([1], {1: ["a"]}), 2).replace(b"penstock.persisted", b"penstock.runtime.joins")
        assert names_in(old) == {"penstock.runtime.joins:TimeBuffer"}
        assert pickling.loads(old) == TimeBuffer([1], {1: ["a"]})

    def test_from_a_module_that_was_split(self, monkeypatch):
        first, second = ModuleType("penstock.first_half"), ModuleType("penstock.second_half")
        second.Row = Row
        for made in (first, second):
            monkeypatch.setitem(sys.modules, made.__name__, made)
        monkeypatch.setitem(persisted.MOVED_MODULES, "penstock.whole", (first.__name__, second.__name__))
        assert pickling.loads(b"cpenstock.whole\nRow\n.") is Row

    def test_a_name_that_nobody_knows(self):
        with pytest.raises(pickle.UnpicklingError, match=r"no 'Lost' of 'penstock\.runtime\.nowhere'.*newer version"):
            pickling.loads(b"cpenstock.runtime.nowhere\nLost\n.")

    def test_a_library_that_is_missing_is_named(self, tmp_path, monkeypatch):
        (tmp_path / "penstock_needing.py").write_text("import a_library_that_is_missing")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setitem(persisted.MOVED, "penstock.old:Old", "penstock_needing:New")
        with pytest.raises(ModuleNotFoundError, match="a_library_that_is_missing"):
            pickling.loads(b"cpenstock.old\nOld\n.")

    def test_classes_of_others_are_not_touched(self):
        window = TimeWindow(1, 2)
        assert pickling.loads(pickling.dumps([window, Row(a=1), Fraction])) == [window, Row(a=1), Fraction]


@dataclass
class Fraction:
    """A class that is no part of Penstock."""


class TestMarks:
    def test_a_marked_class_that_moved_asks_for_its_new_place(self):
        with pytest.raises(AssertionError, match=r"elsewhere .*TimeBuffer.*in penstock\.engine\.windows\.window_joins"):
            persisted.persisted(type("TimeBuffer", (), {"__module__": "penstock.elsewhere"}))


# --- who reads bytes ---
PICKLES = {"pickle", "cloudpickle"}
READING = {"load", "loads", "Unpickler"}
SAME_JOB = {
    # Deployments, commands, reports and frames between the processes of one attempt
    "Arrivals.take",
    "Attempt._take_answers",
    "SideLink._hear",
    "SideLinks._take",
    "SlotProcess._answer_aside",
    "SlotProcess._look_first",
    "BatchRun._failure",
    "FrameStages._run",
    "ConnectSession.map",
    "ConnectSession.regroup",
    "from_pickle",
    "InProcessCluster._answer_asides",
    "InProcessCluster.deploy",
    "InProcessCluster.look",
    "InProcessCluster.run",
    "Outfit.put_on",
    "CloseableIterator.__next__",
    "Slot._load",
    "Wiring._receiver",
    "Hub._sort_letters",
    "Slot.run_stage",
    "Spoke._exchange",
    "StageTask._read_assignments",
    "adopt_classes",
    "unpack_parcels",
    "unpack_values",
    "StageTask._run",
    "SlotProcess._deploy",
    "SlotProcess._epoch",
    "SlotProcess._look",
    "QueryAnswer.entries",
    "_packs",
    "deliver",
    "_copy_sink",
    # Files and a database that end with the process that wrote them
    "Arrivals._read_early",
    "Gathered.put",
    "IterationDriver._combine",
    "IterationDriver.put",
    "FeedbackEnumerator.put",
    "Place.__init__",
    "Entries._fetch",
    "Entries._fetch_all",
    "RocksTable.peek",
    "_Run.pieces",
    "_entries",
    # Operators and sources of a BATCH query in the tasks of Spark SQL, and their failures
    "OperatorTask.__call__",
    "SourceTask._open_operators",
    "SourceTask._read",
    "Surroundings.prepare_process",
    "failure_in",
}
"""Functions that read pickles that no other version of Penstock has written."""


def test_all_others_read_bytes_with_the_unpickler_that_knows_old_names():
    readers = {reader for path in PACKAGE.rglob("*.py") if path.name != "pickling.py" for reader in readers_in(path)}
    assert readers == SAME_JOB


def readers_in(path):
    """The functions of a file that call `loads`, `load` or `Unpickler` of pickle or cloudpickle."""
    for owner, node in walked(ast.parse(path.read_text()), ()):
        if isinstance(node, ast.Attribute) and node.attr in READING and ast.unparse(node.value) in PICKLES:
            yield ".".join(owner)
        if isinstance(node, ast.ImportFrom) and node.module in PICKLES:
            assert not {alias.name for alias in node.names} & READING, path


def walked(node, owner):
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.ClassDef | ast.FunctionDef)
        inner = (*owner, child.name) if named else owner
        yield inner, child
        yield from walked(child, inner)


# --- a move ---
MOVES = {
    "penstock.engine.operators.operator": "penstock.engine.gates.before_operators",
    "penstock.engine.windows.window_joins": "penstock.engine.sides",
    "penstock.engine.windows.merging_windows": "penstock.engine.gates.merging",
    "penstock.api.windows.windows": "penstock.api.kinds_of_windows",
}


def moved_package(target):
    """A copy of the package in which modules have moved and everything says so that names them by their place."""
    shutil.copytree(PACKAGE, target / "penstock", ignore=shutil.ignore_patterns("__pycache__"))
    for old, new in MOVES.items():
        place = target / (new.replace(".", "/") + ".py")
        place.parent.mkdir(exist_ok=True)
        (place.parent / "__init__.py").touch()
        (target / (old.replace(".", "/") + ".py")).rename(place)
    for path in target.rglob("*.py"):
        text = path.read_text()
        for old, new in MOVES.items():  # but the table of names that were written once
            text = re.sub(rf"{re.escape(old)}\b(?!:)", new, text)
        path.write_text(text)


RESTORE = """
import json, sys, penstock
from tests.compat import savepoints
results, _ = savepoints.run({"execution.state-recovery.path": sys.argv[1]}, 2)
print(json.dumps([penstock.__file__, sorted(results.elements())]))
"""


@pytest.mark.parametrize("name", ["1-hashmap", "1-rocksdb"])
def test_a_savepoint_is_restored_by_a_package_whose_modules_moved(tmp_path, name):
    moved_package(tmp_path)
    shutil.copytree(ROOT / "tests" / "compat", tmp_path / "tests" / "compat")
    command = [sys.executable, "-c", RESTORE, (FOLDER / name).as_uri()]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    used, results = json.loads(done.stdout.splitlines()[-1])
    assert used == str(tmp_path / "penstock" / "__init__.py")
    assert Counter(results) == Counter(json.loads((FOLDER / name / "expected.json").read_text()))
