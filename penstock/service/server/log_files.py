"""Rotation of log files, so that they do not grow without limit."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

EVERY_SECONDS = 5.0


def rotate(path: Path, limit: int, files: int) -> bool:
    """Copy a file that exceeds the limit to <name>.1 and empty it. Return True if it exceeded the limit.

    The file cannot be renamed, because other processes such as Spark's JVM have it open. They append to it, and so
    continue at its new end.
    """
    if not path.exists() or path.stat().st_size <= limit:
        return False
    for number in range(files - 1, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        if older.exists():
            os.replace(older, path.with_name(f"{path.name}.{number + 1}"))
    path.with_name(f"{path.name}.{files}").unlink(missing_ok=True)
    if files > 1:
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)
    return True


def keep_small(paths: list[Path], limit: int, files: int) -> None:
    """Rotate these files in a thread for as long as the process lives."""

    def look() -> None:
        resting = threading.Event()
        while not resting.wait(EVERY_SECONDS):
            for path in paths:
                rotate(path, limit, files)

    threading.Thread(target=look, name="penstock logs", daemon=True).start()
