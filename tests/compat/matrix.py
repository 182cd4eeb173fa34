"""Runs a part of the suite with several versions of Spark, Python and pandas, each in an environment of its own.

`python -m tests.compat.matrix spark=3.5 python=3.12` runs the combinations that have these versions; without arguments
all of them run. Environments, logs and results stay in .venvs/matrix. A combination that has passed with the same
sources is not run again; `again` runs it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".venvs" / "matrix"
WHEELS = HOME / "wheels"
RESULTS = HOME / "results.json"
EXTRAS = "files,avro,sql,table,server,tls"
TEST_TOOLS = ("pytest>=8", "pytest-timeout>=2.3", "hypothesis>=6.100", "psutil>=5.9", "httpx>=0.27")
REPORTED = ("pyspark", "py4j", "pandas", "numpy", "pyarrow", "cloudpickle", "rocksdict")
SUITE = {
    "tests/spark/test_versions_on_spark.py": (),
    "tests/spark/test_on_spark.py": (
        "test_a_user_exception_shows_the_operator_and_only_the_users_traceback",
        "test_an_unchanged_pyflink_program_runs",
        "test_cancel_ends_the_job_and_its_processes",
        "test_rows_of_a_data_frame",
        "test_rows_keep_names_across_an_exchange",
        "test_values_of_a_class_defined_inside_a_function",
    ),
    "tests/spark/test_resident_slots.py": ("test_a_killed_worker_fails_the_job_with_slot_lost",),
    "tests/spark/test_columns_on_spark.py": (),
    "tests/spark/test_batch.py": (
        "test_side_outputs_and_timers_at_the_end_of_a_key",
        "test_a_process_that_is_killed_is_run_again_and_files_and_results_have_each_record_once",
        "test_a_data_frame",
    ),
    "tests/spark/test_streaming_source.py": (),
    "tests/spark/test_queries_on_spark_sql.py": (),
    "tests/spark/test_state_processor.py": (
        "test_a_savepoint_of_a_job_on_spark_is_read_changed_and_continued",
        "test_classes_of_the_main_script_travel",
        "test_large_state_is_written_by_the_tasks_that_have_it",
    ),
    "tests/spark/test_recovery_on_spark.py": (),
    "tests/unit/runtime/test_batches.py": (),
    "tests/unit/runtime/test_pandas_frames.py": (),
    "tests/unit/state/test_rocksdb_tables.py": (),
    "tests/unit/state/test_ttl.py": (),
    "tests/unit/state/test_evolution.py": (),
    "tests/unit/spark/test_versions.py": (),
}
"""What runs in each combination. It is chosen for what depends on versions: DataStream programs in STREAMING and BATCH
mode on Spark, DataFrames as sources, queries on Spark SQL, functions of pandas, savepoints, RocksDB and killed slots.
By file: the tests of it, or none for all of them."""


@dataclass(frozen=True)
class Combination:
    """The versions of one environment."""

    spark: str
    python: str
    pandas: str

    def __str__(self) -> str:
        return f"spark{self.spark}-python{self.python}-pandas{self.pandas}"

    @property
    def folder(self) -> Path:
        return HOME / str(self)

    @property
    def interpreter(self) -> Path:
        return self.folder / "bin" / "python"

    def has(self, chosen: dict[str, str]) -> bool:
        """Whether this is one of the combinations that were chosen."""
        return all(asdict(self)[name] == value for name, value in chosen.items())


COMBINATIONS = (
    Combination("4.3", "3.11", "3"),
    Combination("4.3", "3.12", "3"),
    Combination("4.3", "3.13", "3"),
    Combination("4.3", "3.14", "3"),
    Combination("4.3", "3.12", "2"),
    Combination("4.2", "3.11", "2"),
    Combination("4.1", "3.11", "2"),
    Combination("4.0", "3.11", "2"),
    Combination("4.0", "3.13", "2"),
    Combination("3.5", "3.11", "2"),
    Combination("3.5", "3.12", "2"),
)
"""The whole suite runs with Spark 4.3, Python 3.11 and pandas 3."""


@dataclass
class Result:
    """The outcome of one combination."""

    versions: dict[str, str]
    passed: int
    failed: int
    skipped: int
    seconds: int
    day: str
    sources: str

    @property
    def is_good(self) -> bool:
        return self.failed == 0 and self.passed > 0

    @property
    def outcome(self) -> str:
        return f"{self.passed} passed" + (f", {self.failed} failed" if self.failed else "")


# --- environments ---
def find_python(version: str) -> str | None:
    """The path of an interpreter of this minor version: on PATH, or one of pyenv's."""
    on_path = shutil.which(f"python{version}")
    managed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for candidate in [on_path, *map(str, reversed(managed))]:
        if candidate is not None and _version_of(candidate) == version:
            return candidate
    return None


def _version_of(python: str) -> str:
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def prepare(combination: Combination, python: str) -> None:
    """Create the environment and install into it, unless that has been done for these requirements."""
    wanted = _requirements(combination)
    stamp = combination.folder / ".installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"{combination}: installing (some minutes for a version of Spark that is new here) ...", flush=True)
    shutil.rmtree(combination.folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", "--without-pip", str(combination.folder)], check=True)
    _pip(combination, "install", "-q", "--find-links", str(_wheel_of_spark(combination.spark)), *wanted.split())
    stamp.write_text(wanted)


def _requirements(combination: Combination) -> str:
    pins = [f"pyspark=={combination.spark}.*", f"pandas=={combination.pandas}.*"]
    # pyspark 3.5 imports distutils, which Python 3.12 no longer has, and setuptools does.
    old = ["setuptools<81"] if combination.spark.startswith("3.") and combination.python != "3.11" else []
    return "\n".join([f"-e\n.[{EXTRAS}]", *pins, *TEST_TOOLS, *old])


def _wheel_of_spark(version: str) -> Path:
    """A folder with a wheel of pyspark, which comes as sources: it is built once for all versions of Python."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    if not list(WHEELS.glob(f"pyspark-{version}.*.whl")):
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(WHEELS), f"pyspark=={version}.*"]
        subprocess.run(build, check=True)
    return WHEELS


def _pip(combination: Combination, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(combination.interpreter), *arguments]
    subprocess.run(command, cwd=ROOT, check=True)


def versions_in(combination: Combination) -> dict[str, str]:
    """The exact versions of the libraries that matter, and of Python."""
    program = (
        "import json, platform; from importlib.metadata import version\n"
        f"print(json.dumps({{'python': platform.python_version(), **{{n: version(n) for n in {REPORTED!r}}}}}))"
    )
    said = subprocess.run([str(combination.interpreter), "-c", program], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(said.stdout)
    return found


# --- runs ---
def run(combination: Combination, sources: str) -> Result:
    """Run the suite. Its output is shown, and kept beside the environment."""
    report = combination.folder / "report.xml"
    report.unlink(missing_ok=True)
    began = time.monotonic()
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "SPARK_HOME"}}
    command = [str(combination.interpreter), "-m", "pytest", "-q", "-m", "not soak", f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider", *_tests()]
    with (
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process,
        (combination.folder / "output.log").open("wb") as log,
    ):
        assert process.stdout is not None
        while said := os.read(process.stdout.fileno(), 1 << 16):
            for stream in (log, sys.stdout.buffer):
                stream.write(said)
                stream.flush()
    counts = _counts(report)
    seconds = round(time.monotonic() - began)
    return Result(versions_in(combination), *counts, seconds, date.today().isoformat(), sources)


def _tests() -> list[str]:
    return [f"{path}::{name}" if name else path for path, names in SUITE.items() for name in names or ("",)]


def _counts(report: Path) -> tuple[int, int, int]:
    """How many tests passed, failed and were skipped; a run that ended before its report counts as one failure."""
    if not report.exists():
        return 0, 1, 0
    suites = list(ET.parse(report).iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    return total - failures - errors - skipped, failures + errors, skipped


def sources_digest() -> str:
    """A digest of everything that a run depends on."""
    digest = hashlib.sha256()
    for path in sorted(_sources()):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    yield ROOT / "pyproject.toml"
    for folder in ("penstock", "tests"):
        yield from (ROOT / folder).rglob("*.py")


def load_results() -> dict[str, Result]:
    if not RESULTS.exists():
        return {}
    return {name: Result(**fields) for name, fields in json.loads(RESULTS.read_text()).items()}


def table(results: dict[str, Result]) -> str:
    """The results in Markdown, as docs/compatibility.md has them."""
    lines = [
        "| Spark | Python | pandas | NumPy | pyarrow | tests | minutes | on |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for combination in COMBINATIONS:
        result = results.get(str(combination))
        if result is None:
            continue
        v = result.versions
        exact = (v["pyspark"], v["python"], v["pandas"], v["numpy"], v["pyarrow"])
        lines.append(f"| {' | '.join(exact)} | {result.outcome} | {result.seconds / 60:.1f} | {result.day} |")
    return "\n".join(lines)


def choice(arguments: list[str]) -> dict[str, str]:
    """The versions that the arguments choose."""
    chosen = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    names = {"spark", "python", "pandas"}
    wrong = [argument for argument in arguments if argument != "again" and argument.split("=")[0] not in names]
    if wrong or not any(combination.has(chosen) for combination in COMBINATIONS):
        known = "\n  ".join(f"spark={c.spark} python={c.python} pandas={c.pandas}" for c in COMBINATIONS)
        sys.exit(f"no combination has {' '.join(arguments)!r}. Allowed are parts of these, and 'again':\n  {known}")
    return chosen


def main(arguments: list[str]) -> int:
    chosen = choice(arguments)
    results, sources, missing = load_results(), sources_digest(), []
    for combination in (one for one in COMBINATIONS if one.has(chosen)):
        known = results.get(str(combination))
        if known is not None and known.is_good and known.sources == sources and "again" not in arguments:
            print(f"{combination}: {known.outcome} with these sources before", flush=True)
            continue
        python = find_python(combination.python)
        if python is None:
            missing.append(combination)
            print(f"{combination}: no python{combination.python} on PATH or in ~/.pyenv; not run", flush=True)
            continue
        prepare(combination, python)
        print(f"{combination}: running", flush=True)
        results = {**load_results(), str(combination): run(combination, sources)}
        RESULTS.write_text(json.dumps({name: asdict(result) for name, result in results.items()}, indent=1))
    shown = {str(c): results[str(c)] for c in COMBINATIONS if c.has(chosen) and str(c) in results}
    print(f"\n{table(shown)}")
    return 1 if missing or not all(result.is_good for result in shown.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
