"""What a server tells a driver process: a file of JSON, whose path is the process's only argument."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.engine.job.job_record import as_json, from_json


@dataclass(frozen=True)
class DriverSpec:
    """Which job to run, in whose name, and where."""

    register: str
    """URL of the register."""
    job_id: str
    number: int
    revision: int
    fence: int
    address: str
    key_file: str
    folder: str
    """For the log, the standard output and the working folder."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    """The server's options; those of the job win."""
    log_size: int = 10 << 20
    log_files: int = 5
    takeover: bool = True
    """Whether to take the job from a driver that still runs it."""

    def save(self, path: Path) -> None:
        """Only the owner may read it."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(as_json(self), file)

    @classmethod
    def load(cls, path: str) -> DriverSpec:
        return from_json(cls, json.loads(Path(path).read_text()))
