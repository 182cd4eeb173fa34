"""The order of a server to a driver process: a JSON file, whose path is the only argument of the process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.engine.job.job_record import as_json, from_json


@dataclass(frozen=True)
class DriverSpec:
    """A driver's job, the number of the server that starts it, and its files and options."""

    register: str
    """URL of the register."""
    job_id: str
    number: int
    revision: int
    fence: int
    address: str
    key_file: str
    folder: str
    """The folder of the log, the standard output and the working folder."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    """The server's options for jobs. Options of the job take precedence."""
    log_size: int = 10 << 20
    log_files: int = 5
    takeover: bool = True
    """Whether the driver takes the job from another driver that still runs it."""

    def save(self, path: Path) -> None:
        """Write the order to a file that only its owner may read."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(as_json(self), file)

    @classmethod
    def load(cls, path: str) -> DriverSpec:
        """Read the order from a file."""
        return from_json(cls, json.loads(Path(path).read_text()))
