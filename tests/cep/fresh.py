"""Compares Penstock with FlinkCEP itself on random cases that nobody has recorded: `make compare-cep`.

Needs a JDK and the jars that PyFlink brings along (`pip install apache-flink`). Cases on which they differ are printed,
and written to a folder with what Flink gave.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.testing import ManualClock, in_process
from tests.cep import check
from tests.cep.random_patterns import Generator

HERE = Path(__file__).parent
EPOCHS = (1, 3, None)


def jars(folder):
    found = sorted(str(path) for path in folder.glob("**/pyflink/lib/*.jar"))
    if not found:
        sys.exit(
            f"there are no jars of PyFlink under {folder}: install apache-flink==2.3.0 in a virtual environment there, "
            "as `make bench-cep` does, or name another one with --flink"
        )
    return found


def recorded(cases, flink, folder):
    """What FlinkCEP gives for the cases."""
    path, results = folder / "cases.json", folder / "expected.json"
    path.write_text(json.dumps(cases))
    classes = os.pathsep.join([str(folder), *jars(flink)])
    subprocess.run(["javac", "-nowarn", "-d", folder, "-cp", classes, HERE / "flink" / "Recorder.java"], check=True)
    subprocess.run(["java", "-Dlog4j.rootLogger=OFF", "-cp", classes, "Recorder", path, results], check=True)
    return json.loads(results.read_text())


def differences(cases, expected, epoch_records):
    """The cases on which Penstock gives something else, each with the lines that say what."""
    with in_process(epoch_records, ManualClock()):
        for case in cases:
            verdict, lines = check.compare(case, expected[case["name"]], check.run([case])[case["name"]])
            if verdict != "ok":
                yield case, [f"{case['name']} with epochs of {epoch_records}: {verdict}", *lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--flink", type=Path, required=True, help="a virtual environment with PyFlink")
    parser.add_argument("--folder", type=Path, help="where to leave cases, results and differences")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    cases = Generator(options.seed).cases(options.cases)
    expected = recorded(cases, options.flink, folder)
    wrong = {}
    for epoch_records in EPOCHS:
        for case, lines in differences(cases, expected, epoch_records):
            wrong[case["name"]] = case
            print("\n    ".join([*lines, json.dumps(case)]), flush=True)
    (folder / "wrong.json").write_text(json.dumps(list(wrong.values())))
    print(f"{len(cases) - len(wrong)} equal, {len(wrong)} different; see {folder}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
