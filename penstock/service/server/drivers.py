"""Driver processes on this machine: starting them in sessions of their own, finding, asking and ending them."""

from __future__ import annotations

import os
import shutil
import signal
import site
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.engine.checkpoint.process_identity import Whereabouts
from penstock.service.options.server_options import LOG_FILES, LOG_SIZE, PYTHON, ServerSettings, job_options
from penstock.service.server.control import ask, key_in, socket_path
from penstock.service.server.driver_spec import DriverSpec
from penstock.service.server.specs import DriverPlace, Revision, Spec
from penstock.service.server.virtual_environments import python_for


class Driver:
    """A driver process on this machine."""

    def __init__(
        self,
        number: int,
        address: str,
        key_file: str,
        process: subprocess.Popen[bytes] | None = None,
        where: Whereabouts | None = None,
    ) -> None:
        self.number = number
        self._address = address
        self._key_file = key_file
        self._process = process
        self._where = where

    @classmethod
    def at(cls, place: DriverPlace) -> Driver | None:
        """Return the driver of a place in the register, or None if its process is not visible from here."""
        where = Whereabouts.of(place.where)
        if where.lives() is None:
            return None
        return cls(place.number, place.address, place.key_file, where=where)

    @property
    def pid(self) -> int:
        """The id of the process."""
        if self._process is not None:
            return self._process.pid
        assert self._where is not None
        return self._where.pid

    def is_alive(self) -> bool:
        """Return True if the process runs."""
        if self._process is not None:
            return self._process.poll() is None
        return self._where is not None and self._where.lives() is True

    def ask(self, do: str, seconds: float | None = 10.0, **more: Any) -> Any:
        """Return the driver's answer. Raise the driver's error, or DriverUnreachable."""
        return ask(self._address, self._key_file, {"do": do, **more}, seconds)

    def kill(self) -> None:
        """Kill the process and its children at once."""
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait()


class Drivers:
    """Starts the drivers of this server, and owns their folders."""

    def __init__(self, settings: ServerSettings, umask: int = -1) -> None:
        """Create the folder of all drivers. `umask` is that of the drivers; -1 means the server's own."""
        self._settings = settings
        self._umask = umask
        self._folder = settings.data / "drivers"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._key_file = str(key_in(settings.data))

    def folder(self, job_id: str) -> Path:
        """Return the folder with a job's log, standard output and working folder."""
        return self._folder / job_id

    def launch(self, spec: Spec, revision: Revision, number: int, fence: int, takeover: bool) -> Driver:
        """Start a driver process. This takes long if the program's requirements must be installed first."""
        folder = self.folder(spec.job_id)
        (folder / "work").mkdir(parents=True, exist_ok=True)
        configuration = {**self._settings.configuration, **spec.configuration}
        told = DriverSpec(
            register=self._settings.storage,
            job_id=spec.job_id,
            number=number,
            revision=revision.number,
            fence=fence,
            address=socket_path(folder, f"{number}"),
            key_file=self._key_file,
            folder=str(folder),
            configuration=job_options(self._settings.configuration),
            log_size=LOG_SIZE.value(configuration),
            log_files=LOG_FILES.value(configuration),
            takeover=takeover,
        )
        told.save(folder / "driver.json")
        python = PYTHON.of(configuration) or python_for(spec.requirements, self._settings.data / "environments")
        command = [python, "-m", "penstock.service.server.driver_process", str(folder / "driver.json")]
        process = self._spawn(command, folder)
        return Driver(number, told.address, self._key_file, process)

    def _spawn(self, command: list[str], folder: Path) -> subprocess.Popen[bytes]:
        with (folder / "driver.log").open("ab") as log, (folder / "driver.out").open("ab") as out:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                cwd=folder / "work",
                env=process_environment(),
                start_new_session=True,
                umask=self._umask,
            )

    def forget(self, job_id: str) -> None:
        """Delete the folder of a job on this machine."""
        shutil.rmtree(self.folder(job_id), ignore_errors=True)


def process_environment() -> Mapping[str, str]:
    """Return the environment variables of child processes: the server's own, with two changes.

    Output is not buffered, and a Penstock that runs from its source tree is on the Python path.
    """
    import penstock

    root = str(Path(penstock.__file__).parents[1])
    variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if root not in site.getsitepackages():
        before = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        variables["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([root, *before]))
    return variables
