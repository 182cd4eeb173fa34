"""Runs examples that ship with PyFlink, unchanged, on Penstock and on PyFlink itself, and compares what they print.

    make compat

The examples are taken from the apache-flink package, which is installed into a virtual environment of its own under
.venvs/ (or found in the folder that PENSTOCK_BENCH_VENVS names). Lines are compared without the number of the subtask
that printed them and without regard to order; numbers may differ in the last bits.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLINK = "apache-flink==2.3.0"
REMARKS = ("No module named google", "PYFLINK_CYTHON_ENABLED", "Using Any for unsupported type")
"""What PyFlink's own dependencies log into the examples' output."""
EXAMPLES = [
    "word_count.py",
    "basic_operations.py",
    "event_time_timer.py",
    "state_access.py",
    "windowing/tumbling_time_window.py",
    "windowing/tumbling_count_window.py",
    "windowing/sliding_time_window.py",
    "windowing/session_with_gap_window.py",
    "windowing/session_with_dynamic_gap_window.py",
]


def flink_environment() -> Path:
    """The virtual environment that holds PyFlink; made on first use."""
    home = Path(os.environ.get("PENSTOCK_BENCH_VENVS", ROOT / ".venvs")) / "flink"
    if not (home / "bin" / "python").exists():
        print(f"installing {FLINK} into {home} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "python"), "-m", "pip", "install", "-q", FLINK], check=True)
    return home


def examples_folder(home: Path) -> Path:
    return next(home.glob("lib/python*/site-packages/pyflink/examples/datastream"))


def printed(command: list[str], **environment: str) -> list[str]:
    """The sorted lines of a program's output, without subtask numbers."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment}
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    lines = [re.sub(r"^\d+> ", "", line) for line in done.stdout.splitlines()]
    return sorted(line for line in lines if line.strip() and not line.startswith(REMARKS))


def same(ours: str, theirs: str) -> bool:
    """Equal texts, or texts that differ in the last digits of their numbers only."""
    number = re.compile(r"-?\d+\.\d+(?:[eE]-?\d+)?")
    if number.sub("#", ours) != number.sub("#", theirs):
        return False
    pairs = zip(number.findall(ours), number.findall(theirs), strict=True)
    return all(abs(float(a) - float(b)) <= 1e-5 * max(1.0, abs(float(b))) for a, b in pairs)


def main() -> int:
    home = flink_environment()
    folder = examples_folder(home)
    failed = 0
    for name in EXAMPLES:
        program = str(folder / name)
        ours = printed([sys.executable, "-m", "penstock", "run", "--pyflink", program])
        theirs = printed(
            [str(home / "bin" / "python"), program], PATH=f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        )
        fine = len(ours) == len(theirs) > 0 and all(map(same, ours, theirs))
        failed += not fine
        print(f"{'ok  ' if fine else 'FAIL'} {name} ({len(ours)} lines)", flush=True)
        if not fine:
            print("  Penstock:", *ours, "  PyFlink:", *theirs, sep="\n    ")
    print(f"{len(EXAMPLES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
