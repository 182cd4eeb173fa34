"""The driver process of one program: it runs the program, answers the server, and stores the outcome in the register.

    python -m penstock.service.server.driver_process SPEC

The process outlives its server. The next server finds it through its entry in the register.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.base.logs.log_formats import TEXT_FORMAT, formatter
from penstock.base.logs.log_options import log_settings
from penstock.common.configuration import Configuration
from penstock.engine.checkpoint.process_identity import Whereabouts
from penstock.engine.job.job_record import as_json, from_json
from penstock.engine.observe.current_operator import origin_here
from penstock.engine.observe.profiling import ProfileOrder
from penstock.engine.observe.stacks import own_threads
from penstock.engine.queryable.rest_form import look_up
from penstock.errors import AlreadyThere, JobCancelled, JobDisplaced, JobSuspended, PenstockError, StorageError
from penstock.service.launch.program_runner import Program
from penstock.service.launch.submission import with_defaults
from penstock.service.options.server_options import REQUIREMENTS
from penstock.service.rest.job_backend import QUERY_SECONDS
from penstock.service.server.control import ControlServer
from penstock.service.server.driver_spec import DriverSpec
from penstock.service.server.leadership.fencing_numbers import newest_fence
from penstock.service.server.log_files import keep_small
from penstock.service.server.program_jobs import ProgramJobs
from penstock.service.server.register import JobEntry, Register
from penstock.service.server.specs import DriverPlace, How, Outcome, Revision, Spec

log = logging.getLogger("penstock.server")
LAST_SECONDS = 10.0
REFUSED = 3
"""The exit code of a process that does not become the driver, because another process was faster."""


class DriverProcess:
    """One start of a program."""

    def __init__(self, spec: DriverSpec) -> None:
        self._spec = spec
        self._register = Register(spec.register)
        self._entry: JobEntry = self._register.job(spec.job_id)
        self._job: Spec = self._entry.spec()
        self._revision: Revision = self._entry.revision(spec.revision)
        self._jobs = ProgramJobs(self._entry, self._revision, spec.register, spec.takeover)
        self._ending = threading.Lock()

    def run(self) -> int:
        """Run the program, from the entry in the register to the outcome. Return the exit code."""
        if not self._enter():
            return REFUSED
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=self._suspend, daemon=True).start())
        control = ControlServer(self._spec.address, self._spec.key_file, self._handlers())
        for handler in logging.getLogger().handlers:
            handler.setFormatter(formatter(log_settings(self._configuration().to_dict()).format, origin_here))
        logs = [Path(self._spec.folder) / name for name in ("driver.log", "driver.out")]
        keep_small(logs, self._spec.log_size, self._spec.log_files)
        outcome = self._outcome_of(self._run_program)
        self._jobs.wait_for_records()
        # An outcome that a control message has decided, such as a rescaling, was stored first and takes precedence.
        with self._ending:
            self._say(outcome)
        if self._jobs.leaving:
            time.sleep(10)  # the thread that ordered it to leave ends the process when the answer has been sent
        control.close()
        _stop_spark()
        return 0 if outcome.how is How.FINISHED else 1

    def _enter(self) -> bool:
        """Become the driver of this number. Return False if another process is, or if the server was displaced."""
        spec = self._spec
        newest = newest_fence(self._register.storage)
        if newest > spec.fence:
            log.warning("server %d, which started this driver, was displaced by server %d", spec.fence, newest)
            return False
        where = Whereabouts.here().as_dict()
        place = DriverPlace(spec.number, spec.revision, spec.fence, where, spec.address, spec.key_file, spec.folder)
        try:
            self._entry.enter(place)
        except AlreadyThere:
            log.warning("job %s already has a driver with the number %d", spec.job_id, spec.number)
            return False
        return True

    # --- the program ---
    def _run_program(self) -> None:
        name, data = self._entry.program()
        work = Path(self._spec.folder) / "work"
        path = work / "program" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.chdir(work)
        with with_defaults(
            configuration=self._configuration(), before_start=self._jobs.prepare, on_start=self._jobs.register_handle
        ):
            Program(path, self._job.entry).run(self._job.arguments, self._job.pyflink)
            for handle in self._jobs.living():
                # A job of execute_async continues after the program that started it has ended.
                handle.result()

    def _configuration(self) -> Configuration:
        chosen = {**self._spec.configuration, **self._job.configuration}
        chosen.pop(REQUIREMENTS.name, None)  # this interpreter has them
        if self._revision.parallelism is not None:
            chosen["parallelism.default"] = str(self._revision.parallelism)
        return Configuration.from_dict(chosen)

    def _outcome_of(self, program: Callable[[], None]) -> Outcome:
        try:
            program()
        except BaseException as error:
            how = How.SUSPENDED if self._jobs.leaving else _how_ended(error)
            if how is How.FAILED:
                _show(error)
            return self._outcome(how, None if how is How.FINISHED else error)
        return self._outcome(How.SUSPENDED if self._jobs.leaving else How.FINISHED)

    def _outcome(self, how: How, error: BaseException | None = None) -> Outcome:
        kind = type(error).__name__ if error is not None else ""
        trace = "".join(traceback.format_exception(error)) if how is How.FAILED and error is not None else ""
        said = f"the program ended with exit code {error.code}" if isinstance(error, SystemExit) else str(error)
        message = said if error is not None else ""
        return Outcome(how, int(time.time() * 1000), kind, message, trace, self._jobs.have_run())

    def _say(self, outcome: Outcome) -> None:
        try:
            self._entry.end(self._spec.number, outcome)
        except StorageError as error:
            log.error("the driver could not store its outcome: %s", error)

    # --- questions and orders of the server ---
    def _handlers(self) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        return {
            "ping": lambda _: {"number": self._spec.number, "reached": self._jobs.has_reached_a_job()},
            "records": lambda _: self._records(),
            "cancel": self._cancel,
            "savepoint": self._savepoint,
            "checkpoint": lambda asked: self._jobs.handle(asked["job"]).trigger_checkpoint(asked["full"]),
            "query": self._query,
            "log-levels": self._log_levels,
            "profile": lambda asked: as_json(
                self._jobs.handle(asked["job"]).profile(from_json(ProfileOrder, asked["order"]))
            ),
            "threads": lambda asked: [*own_threads(), *self._jobs.handle(asked["job"]).stacks(asked["place"])],
            "suspend": lambda _: self._suspend(),
            "rescale": self._rescale,
        }

    def _records(self) -> dict[str, Any]:
        records = {str(ordinal): as_json(record) for ordinal, record in self._jobs.records().items()}
        return {"records": records, "reached": self._jobs.has_reached_a_job(), "runs": self._jobs.have_run()}

    def _cancel(self, asked: Mapping[str, Any]) -> None:
        """Cancel a job. A program that has not started a job yet is ended."""
        if self._jobs.has_reached_a_job() and self._jobs.living():
            threading.Thread(target=self._jobs.handle(asked["job"]).cancel, daemon=True).start()
            return
        self._leave_at_once(self._outcome(How.CANCELED, JobCancelled("the program was cancelled before a job started")))

    def _savepoint(self, asked: Mapping[str, Any]) -> str:
        return self._jobs.handle(asked["job"]).trigger_savepoint(asked["directory"], asked["stop"], asked["drain"])

    def _query(self, asked: Mapping[str, Any]) -> Any:
        return look_up(self._jobs.handle(asked["job"]).query, asked["name"], asked["request"], QUERY_SECONDS)

    def _log_levels(self, asked: Mapping[str, Any]) -> dict[str, str]:
        """Set the wanted log levels, and return all levels of the job."""
        handle = self._jobs.handle(asked["job"])
        if asked["levels"]:
            handle.set_log_levels(asked["levels"])
        return handle.log_levels()

    def _suspend(self) -> None:
        """Stop all jobs and end the process, without returning to the program. It begins again at the next start."""
        self._jobs.suspend()
        self._leave_at_once(self._outcome(How.SUSPENDED))

    def _rescale(self, asked: Mapping[str, Any]) -> str | None:
        """Change the parallelism of a job, here if it can continue here, else with a savepoint for the next driver.

        Return the savepoint's path, after which this process ends, or None. If the change fails, the job continues.
        """
        number, parallelism = self._spec.number, asked["parallelism"]
        ordinal, handle = self._jobs.ordinal(asked["job"]), self._jobs.handle(asked["job"])
        handle.check_capacity(parallelism)
        if handle.can_rescale(parallelism):
            handle.rescale(parallelism)
            self._revise(parallelism)
            return None
        folder = f"{self._spec.register}/rescaling/{self._spec.job_id}-{number}-{os.urandom(4).hex()}"
        now = int(time.time() * 1000)
        planned = Outcome(How.RESCALED, now, savepoint=folder, parallelism=parallelism, ordinal=ordinal)
        with self._ending:
            self._entry.plan_rescaling(number, planned)
            self._jobs.leaving = True
            try:
                path = handle.trigger_savepoint(folder, stop=True, drain=False)
            except BaseException:
                self._jobs.leaving = False
                raise
            done = Outcome(How.RESCALED, now, savepoint=path, parallelism=parallelism, ordinal=ordinal)
            self._say(done)
        threading.Timer(0.1, self._exit).start()
        return path

    def _revise(self, parallelism: int) -> None:
        """Let later drivers of this program continue with the new parallelism."""
        newest = self._entry.revision()
        self._jobs.revise(
            replace(
                newest,
                number=newest.number + 1,
                parallelism=parallelism,
                forced=True,
                previous=None,
                driver=self._spec.number,
            )
        )

    def _leave_at_once(self, outcome: Outcome) -> None:
        self._jobs.leaving = True
        with self._ending:
            self._say(outcome)
        threading.Timer(0.1, self._exit).start()

    @staticmethod
    def _exit() -> None:
        """End the process at once. The answer is on its way, and a program cannot be interrupted at every point."""
        sys.stdout.flush()
        sys.stderr.flush()
        with suppress(Exception):
            _stop_spark()
        os._exit(0)


def _how_ended(error: BaseException) -> How:
    """Return the kind of outcome of a program that ended with this error."""
    kinds = {JobCancelled: How.CANCELED, JobSuspended: How.SUSPENDED, JobDisplaced: How.DISPLACED}
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return How.FINISHED
    return next((how for kind, how in kinds.items() if isinstance(error, kind)), How.FAILED)


def _show(error: BaseException) -> None:
    """Print an error as the command line does: Penstock's errors in one line, others with their traceback."""
    if isinstance(error, PenstockError):
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    else:
        traceback.print_exception(error)
    sys.stderr.flush()


def _stop_spark() -> None:
    """Stop Spark. The JVM ends with this process anyway, but this returns the executors of a cluster sooner."""
    if "penstock.spark.sessions.session" in sys.modules:
        from penstock.spark.sessions.session import active_session

        session = active_session()
        if session is not None:
            session.stop()


def main() -> None:
    """Run the driver process."""
    logging.basicConfig(level=logging.INFO, format=TEXT_FORMAT)
    code = DriverProcess(DriverSpec.load(sys.argv[1])).run()
    # Threads of the program or of its libraries must not keep a driver alive after its program has ended.
    last = threading.Timer(LAST_SECONDS, os._exit, (code,))
    last.daemon = True
    last.start()
    sys.exit(code)


if __name__ == "__main__":
    main()
