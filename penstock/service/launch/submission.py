"""From an environment to a running job: plan, deployment, cluster, driver."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from penstock.api.settings.execution_mode import RuntimeExecutionMode
from penstock.base.logs.levels import apply, current
from penstock.base.logs.log_options import LogSettings, log_settings
from penstock.common.configuration import Configuration
from penstock.common.job import JobID
from penstock.engine.checkpoint.ownership import NoOwnership
from penstock.engine.job.adaptive import AdaptiveDriver
from penstock.engine.job.cluster_protocol import Cluster
from penstock.engine.job.deploying import deployment_of
from penstock.engine.job.durability import Durability
from penstock.engine.job.job_driver import Driver, EndedJob, JobDriver
from penstock.engine.job.job_handle import JobHandle
from penstock.engine.job.processing_time import WallClock
from penstock.engine.job.rescaling import RescalableDriver
from penstock.engine.messages.commands_and_reports import Deployment
from penstock.engine.operators.feedback.feedback_operators import FeedbackHead
from penstock.engine.operators.sinks.sink_operators import PrintSink
from penstock.engine.operators.sources.source_operator import SourceOperator
from penstock.engine.savepoints.description import path_with_picture
from penstock.errors import UnsupportedOperation
from penstock.graph.plan import Plan, Settings, compile_plan
from penstock.graph.transformations import Transformation, reachable
from penstock.service.launch.collected_results import ResultHandler
from penstock.service.launch.durable_jobs import (
    checkpoint_settings,
    durability,
    fit_to_start,
    give_back_on_failure,
    has_ended,
    is_checkpointed,
    take_ownership,
)
from penstock.service.launch.execution_settings import (
    EnvironmentSettings,
    checkpoint_directory,
    measuring,
    savepoint_directory,
    state_backend,
)
from penstock.service.launch.queryable_serving import Serving, serving
from penstock.service.launch.recorded_settings import settings_record
from penstock.service.launch.scheduling import check_scheduling, is_adaptive
from penstock.service.launch.spark_settings import options_in_spark
from penstock.service.launch.termination import give_back_on_sigterm, suspend_on_sigterm, suspend_with_process
from penstock.service.options.combined_options import Recovery
from penstock.service.reporters.reporter_threads import Place, place_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

log = logging.getLogger("penstock.job")


class ClusterFactory(Protocol):
    """Creates the cluster of a job. One implementation is on Spark; the testing kit has another."""

    def __call__(self, settings: EnvironmentSettings, deployment: Deployment) -> Cluster: ...


def spark_cluster(settings: EnvironmentSettings, deployment: Deployment) -> Cluster:
    """Return slots on the active Spark session, or on a new one. A BATCH job runs as an ordinary Spark job."""
    from penstock.spark.batch.batch_cluster import SparkBatchCluster
    from penstock.spark.hosts.classic_host import ClassicHost
    from penstock.spark.hosts.connect_host import ConnectHost
    from penstock.spark.sessions.cached_files import ship_files
    from penstock.spark.sessions.connect_session import is_connect
    from penstock.spark.sessions.session import is_own, session
    from penstock.spark.sessions.spark_applications import Application
    from penstock.spark.slots.spark_cluster import SparkCluster

    def make_session() -> SparkSession:
        return session(
            settings.spark_master(),
            deployment.plan.job_name,
            settings.spark_settings(),
            0 if deployment.plan.batch else deployment.plan.slots,
            keep=settings.reads_frames,
            seconds=settings.patience.slot_request_timeout / 1000,
        )

    application = Application(make_session)
    spark = application.session
    deployment.cached_files = ship_files(spark, deployment.cached_files)
    if deployment.archive is not None:
        deployment.archive = ship_files(spark, {"program": deployment.archive})["program"]
    uploaded = [*deployment.cached_files.values(), *([deployment.archive] if deployment.archive else [])]
    application.uploaded = uploaded
    host: ClassicHost | ConnectHost
    if is_connect(spark):
        host = ConnectHost(spark, settings.spark_settings(), uploaded)
    else:
        renew = application.renew if is_own(spark) and not settings.reads_frames else None
        host = ClassicHost(spark.sparkContext, renew)
    if deployment.plan.batch:
        return SparkBatchCluster(host, settings.encrypts)
    return SparkCluster(host, settings.patience, settings.encrypts)


@dataclass(frozen=True, eq=False)
class Defaults:
    """Defaults of new environments and jobs, for everything that the program does not set."""

    configuration: Configuration | None = None
    cluster: ClusterFactory = spark_cluster
    clock: Callable[[], WallClock] = WallClock
    max_records: int | None = None
    on_start: Callable[[JobHandle], None] | None = None
    """Callback that gets every job that a program starts, so that others can watch and command it."""
    archive: str | None = None
    """Path of the running program if it is an archive. Slots on other machines need the archive, too."""
    on_plan: Callable[[Plan], None] | None = None
    """Callback that gets the plan of every job before it starts. It may raise to prevent the start."""
    plans_only: bool = False
    """Whether only the plans of jobs are wanted, so that nothing runs."""
    before_start: Callable[[StreamExecutionEnvironment, str | None], bool] | None = None
    """Callback that gets the environment and the name of every job before it starts. It may complete the settings.

    It returns True if the job ended in an earlier run of the program, so that there is nothing to do.
    """


_in_force = [Defaults()]
"""Defaults in force, the innermost block last.

A context variable would not do: programs make environments in threads, which inherit no context variables.
"""


def defaults() -> Defaults:
    """Return the defaults that the innermost `with` block set, or those of the package."""
    return _in_force[-1]


@contextmanager
def with_defaults(**changes: Any) -> Iterator[Defaults]:
    """Change the named defaults within this block, in every thread. The command line and the testing kit use it."""
    changed = replace(defaults(), **changes)
    _in_force.append(changed)
    try:
        yield changed
    finally:
        _in_force.remove(changed)


def apply_defaults(settings: EnvironmentSettings) -> None:
    """Apply the settings from outside the program to a new environment."""
    given = defaults()
    settings.read(Configuration.from_dict(options_in_spark()))
    if given.configuration is not None:
        settings.read(given.configuration)
    if given.max_records is not None:
        settings.max_records = given.max_records


def plan_of(environment: StreamExecutionEnvironment, job_name: str | None) -> Plan:
    """Compile the transformations that were defined since the last execute()."""
    return plan_of_operators(environment, environment.sinks, job_name)


def plan_of_operators(
    environment: StreamExecutionEnvironment, operators: list[Transformation], job_name: str | None
) -> Plan:
    """Compile some transformations of an environment, and everything upstream of them."""
    return _plan_of(environment.settings, operators, job_name)


def _plan_of(
    settings: EnvironmentSettings,
    sinks: list[Transformation],
    job_name: str | None,
    parallelism: int | None = None,
    most: int | None = None,
) -> Plan:
    """Compile a program, in which no operator may have more than `most` subtasks.

    `parallelism` replaces that of the settings.
    """
    return compile_plan(
        sinks,
        Settings(
            parallelism=parallelism or settings.parallelism(),
            max_parallelism=settings.max_parallelism(),
            chaining=settings.chaining,
            batch=_is_batch(settings, sinks),
            most=most,
        ),
        job_name or settings.job_name or "Penstock job",
    )


def start(
    environment: StreamExecutionEnvironment,
    job_name: str | None,
    collecting: Mapping[Transformation, ResultHandler] | None = None,
) -> JobHandle:
    """Submit the program, and empty the environment for the next one."""
    job = _NewJob(environment, job_name, collecting or {})
    job.complete_settings()
    job.compile()
    job.settings.prepare_process()
    if job.has_ended():
        return job.end_at_once()
    job.check()
    job.describe()
    job.own()
    suspend_on_sigterm()
    with give_back_on_failure(job.owner), give_back_on_sigterm(job.owner):
        if job.has_ended():
            job.disown()
            return job.end_at_once()
        job.find_checkpoints()
        job.find_cluster()
        job.find_servers()
    job.make_driver()
    return job.hand_over()


class _NewJob:
    """A program on its way to a running job. Its methods are the steps, in the order in which `start` takes them."""

    plan: Plan
    job_id: JobID
    deployment: Deployment
    owner: NoOwnership
    durable: Durability
    cluster: Cluster
    driver: Driver
    reported: Place | None = None
    served: Serving | None = None

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        job_name: str | None,
        collecting: Mapping[Transformation, ResultHandler],
    ) -> None:
        self.environment = environment
        self.settings = environment.settings
        self.name = job_name
        self.collecting = collecting
        self._is_over = False

    def complete_settings(self) -> None:
        """Let a callback complete the settings. It knows whether an earlier run of the program has ended this job."""
        prepare = defaults().before_start
        self._is_over = prepare is not None and prepare(self.environment, self.name)

    def compile(self) -> None:
        """Compile the program, and show the plan to a callback, which may prevent the start."""
        self.plan = plan_of(self.environment, self.name)
        if (look := defaults().on_plan) is not None:
            look(self.plan)
        self.job_id = JobID(self.settings.job_id) if self.settings.job_id is not None else JobID()

    def has_ended(self) -> bool:
        """Return True if the job came to its end in an earlier run."""
        return self._is_over or has_ended(self.settings)

    def end_at_once(self) -> JobHandle:
        """Return the job as one that has nothing left to do."""
        return _job_already_over(self.environment, self.job_id, self.collecting)

    def check(self) -> None:
        """Refuse a program that does not fit the snapshot to start from, or its scheduler. Find its reporters."""
        fit_to_start(self.settings, self.plan, self.job_id.hex)
        check_scheduling(self.settings, self.plan)
        self.reported = place_for(self.settings.given.to_dict())

    def describe(self) -> None:
        """Describe the deployment for the slots."""
        self.environment.dependencies.add_configured(self.settings.translation)
        self.deployment = _deployment(self.environment, self.plan, self.job_id)

    def own(self) -> None:
        """Become the only driver of the job."""
        self.owner = take_ownership(self.settings, self.plan, self.job_id.hex)

    def disown(self) -> None:
        """Give the job back, since there is nothing to do."""
        self.owner.end(finished=False)
        self.owner.let_go()

    def find_checkpoints(self) -> None:
        """Find the checkpoints of the job, and the restart strategy."""
        uids = _collecting_uids(self.plan, self.collecting)
        self.durable = durability(self.settings, self.plan, self.job_id.hex, uids, self.owner)

    def find_cluster(self) -> None:
        """Find or start the cluster for the slots."""
        self.cluster = defaults().cluster(self.settings, self.deployment)

    def find_servers(self) -> None:
        """Find or start the server of queryable state."""
        self.served = None if self.plan.batch else serving(self.settings.queryable)

    def make_driver(self) -> None:
        """Make the driver, whose parallelism can change if the job has checkpoints."""
        results = _results(self.plan, self.collecting)
        first = _driver(self.settings, self.plan, self.deployment, self.cluster, self.durable, results)
        self.driver = _rescalable(self.environment, self.name, self.job_id, first, self.cluster, self.collecting)

    def hand_over(self) -> JobHandle:
        """Empty the environment, let servers and reporters know the job, and start it."""
        self.environment.close()
        handle = JobHandle(
            self.job_id,
            self.driver,
            self.cluster,
            lambda: _end(self.collecting, self.served, self.reported),
            savepoint_directory(self.settings),
            settings_record(self.settings),
        )
        handle.logs, handle.draw_path = self.deployment.logs, path_with_picture
        if self.served is not None:
            self.served.add(self.job_id.hex, handle)
            handle.queryable_address = self.served.address
        if self.reported is not None:
            self.reported.add(self.job_id.hex, handle.record)
        return start_job(handle)


def _deployment(environment: StreamExecutionEnvironment, plan: Plan, job_id: JobID) -> Deployment:
    settings, dependencies = environment.settings, environment.dependencies
    deployment = deployment_of(
        plan,
        job_id.hex,
        watermark_interval=settings.config.get_auto_watermark_interval(),
        job_parameters=dict(settings.config.get_global_job_parameters()),
        working_directory=dependencies.working_directory(),
        cached_files=dict(dependencies.cached),
        checkpoints=checkpoint_settings(settings, plan),
        state_backend=state_backend(settings),
        sort_memory=settings.sort_memory,
        archive=defaults().archive,
        measuring=measuring(settings),
        logs=logs_of(settings.given.to_dict()),
    )
    deployment.search_path[:0] = dependencies.search_path()
    return deployment


def _driver(
    settings: EnvironmentSettings,
    plan: Plan,
    deployment: Deployment,
    cluster: Cluster,
    durable: Durability,
    on_results: Mapping[str, Callable[[Any], None]],
    has_run: bool = False,
) -> JobDriver:
    return JobDriver(
        plan,
        deployment,
        cluster,
        options=settings.epochs(),
        on_results=on_results,
        durability=durable,
        clock=defaults().clock(),
        patience=settings.patience,
        has_run=has_run,
    )


def _rescalable(
    environment: StreamExecutionEnvironment,
    job_name: str | None,
    job_id: JobID,
    first: JobDriver,
    cluster: Cluster,
    collecting: Mapping[Transformation, ResultHandler],
) -> Driver:
    """Return a driver whose parallelism can change, or `first` if the job has no checkpoints to continue from.

    Each change compiles the same program to another plan.
    """
    sinks, given = list(environment.sinks), environment.settings
    adapts, has_folder = is_adaptive(given, first.plan), checkpoint_directory(given) is not None
    if not adapts and not (has_folder and is_checkpointed(given, first.plan)):
        return first
    recovery = Recovery.LATEST if has_folder else Recovery.NONE
    settings = replace(given, job_id=job_id.hex, recovery=recovery, takeover=False)

    def replan(parallelism: int | None, most: int | None) -> Plan:
        plan = _plan_of(settings, sinks, job_name, parallelism, most)
        fit_to_start(settings, plan, job_id.hex)
        return plan

    def remake(plan: Plan) -> JobDriver:
        owner = take_ownership(settings, plan, job_id.hex)
        with give_back_on_failure(owner):
            durable = durability(settings, plan, job_id.hex, _collecting_uids(plan, collecting), owner)
            made = deployment_of(plan, job_id.hex)
            deployment = replace(
                first.deployment,
                plan=made.plan,
                operators=made.operators,
                partitionings=made.partitionings,
                main_classes=made.main_classes,
                class_definitions=made.class_definitions,
                attempt=0,
                restore=None,
            )
        return _driver(settings, plan, deployment, cluster, durable, _results(plan, collecting), has_run=True)

    if adapts:
        return AdaptiveDriver(first, replan, remake, cluster.has_room, cluster.capacity, settings.adaptivity)
    return RescalableDriver(first, replan, remake, cluster.has_room)


def logs_of(configuration: Mapping[str, str]) -> LogSettings:
    """Apply the configured log levels to this process, and return the log settings of slots with its levels."""
    settings = log_settings(configuration)
    apply(settings.levels)
    return replace(settings, levels=current())


def start_job(handle: JobHandle) -> JobHandle:
    """Start the job, and pass it to the `on_start` callback."""
    suspend_on_sigterm()
    suspend_with_process(handle)
    handle.start()
    watcher = defaults().on_start
    if watcher is not None:
        watcher(handle)
    return handle


def _job_already_over(
    environment: StreamExecutionEnvironment, job_id: JobID, collecting: Mapping[Transformation, ResultHandler]
) -> JobHandle:
    """Return a job that has already ended."""
    log.warning("job %s ended in an earlier run: there is nothing to recover", job_id)
    environment.close()
    ended = EndedJob(job_id.hex, defaults().clock().now())
    return start_job(JobHandle(job_id, ended, None, lambda: _end(collecting)))


def _end(
    collecting: Mapping[Transformation, ResultHandler], served: Serving | None = None, reported: Place | None = None
) -> None:
    for results in collecting.values():
        results.end()
    for place in (served, reported):
        if place is not None:
            place.leave()


def _results(plan: Plan, collecting: Mapping[Transformation, ResultHandler]) -> dict[str, Callable[[Any], None]]:
    """Return the handlers of the sinks' payloads in this process, by uid of the sink."""
    handlers: dict[str, Callable[[Any], None]] = {
        n.uid: _print for n in plan.nodes if isinstance(n.operator, PrintSink)
    }
    by_operator = {id(node.operator): results for node, results in collecting.items()}
    for node in plan.nodes:
        if id(node.operator) in by_operator:
            handlers[node.uid] = by_operator[id(node.operator)].put
        elif isinstance(node.operator, FeedbackHead):
            handlers[node.uid] = node.operator.source.put
    return handlers


def _collecting_uids(plan: Plan, collecting: Mapping[Transformation, ResultHandler]) -> set[str]:
    operators = {id(node.operator) for node in collecting}
    return {node.uid for node in plan.nodes if id(node.operator) in operators}


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _is_batch(settings: EnvironmentSettings, roots: list[Transformation]) -> bool:
    if settings.mode is RuntimeExecutionMode.STREAMING:
        return False
    if loops := [node.name for node in reachable(roots) if isinstance(node.operator, FeedbackHead)]:
        if settings.mode is RuntimeExecutionMode.BATCH:
            raise UnsupportedOperation(f"BATCH mode has no iterations ({', '.join(loops)}): use STREAMING or AUTOMATIC")
        return False
    unbounded = sources_without_end(roots)
    if unbounded and settings.mode is RuntimeExecutionMode.BATCH:
        raise UnsupportedOperation(
            f"BATCH mode needs bounded sources, and {', '.join(unbounded)} never ends: use STREAMING or AUTOMATIC"
        )
    return not unbounded


def sources_without_end(roots: list[Transformation]) -> list[str]:
    """Return the names of the sources that never end."""
    return [
        node.name
        for node in reachable(roots)
        if isinstance(node.operator, SourceOperator) and not node.operator.source.bounded
    ]
