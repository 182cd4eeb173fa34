"""Reasons why slots have not started yet, as far as Spark tells them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark import SparkContext

from penstock.spark.sessions.kubernetes import pod_client, pods_obstacle
from penstock.spark.sessions.session import is_on_this_machine, scala_context

_LIMITS = (
    "spark.dynamicAllocation.maxExecutors",
    "spark.dynamicAllocation.executorAllocationRatio",
    "spark.executor.cores",
    "spark.task.cpus",
    "spark.cores.max",
)
"""Settings that limit how many tasks run at once with dynamic allocation."""


@dataclass(frozen=True)
class Resources:
    """Executors and tasks of a Spark application at one moment. None stands for an unknown number."""

    master: str
    executors: int | None = None
    wanted_executors: int | None = None
    """Number of executors that the application asks for, if that is fixed."""
    capacity: int | None = None
    """Number of tasks that can run at once."""
    busy: int = 0
    """Number of running tasks of other Spark jobs."""
    pods: str | None = None
    """The reason why pods of executors do not start, on Kubernetes."""
    is_dynamic: bool = False
    """Whether Spark adds executors for tasks that wait."""
    limits: str = ""
    """Texts of the set options that limit how many executors Spark adds."""

    def obstacle(self, slots: int, started: int) -> str:
        """Describe what the slots of a job wait for. Give advice only if cores are known to be missing."""
        if self.pods is not None and (self.capacity is None or self.capacity < slots):
            return self.pods
        if self.executors == 0 and not self.is_dynamic and not is_on_this_machine(self.master):
            return (
                f"no executor has registered with Spark yet. The cluster manager ('{self.master}') starts them when it "
                "has free machines with spark.executor.cores and spark.executor.memory"
            )
        if self.capacity is None:
            return "Spark does not report how many tasks it can run at once"
        if self.capacity < slots:
            return self._missing_cores(slots)
        if self.capacity - self.busy < slots:
            return (
                f"Spark can run {_count(self.capacity, 'task')} at once, and other jobs of this Spark application use "
                f"{self.busy} of them. End other jobs, lower the job's parallelism, or give Spark more cores"
            )
        waiting = _count(slots - started, "Python process")
        return (
            f"Spark can run {_count(self.capacity, 'task')} at once, which is enough. The job waits for {waiting} "
            "to start"
        )

    def _missing_executors(self, slots: int) -> str:
        within = f"; these limits have to suffice for {slots} tasks at once: {self.limits}" if self.limits else ""
        return (
            f"Spark can run {self.capacity} tasks at once on {self.executors or 0} executors, and asks the "
            f"cluster manager ('{self.master}') for more (spark.dynamicAllocation.enabled){within}"
        )

    def _missing_cores(self, slots: int) -> str:
        if self.is_dynamic:
            return self._missing_executors(slots)
        has = f"Spark can run {_count(self.capacity or 0, 'task')} at once"
        if is_on_this_machine(self.master):
            return f"{has}, and the job needs {slots}. Name a master with more threads, such as local[{slots}]"
        if self.executors is not None:
            has += f" on {_count(self.executors, 'executor')}"
        if self.wanted_executors is not None and (self.executors or 0) < self.wanted_executors:
            return f"{has}; {self.wanted_executors} executors (spark.executor.instances) were asked for"
        return (
            f"{has}, and the job needs {slots}. Give Spark more cores (spark.executor.instances, spark.executor.cores, "
            "spark.cores.max), or lower the job's parallelism"
        )


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def resources(context: SparkContext, group: str) -> Resources:
    """Ask Spark for its executors and tasks. Tasks of the job group `group` are the slots and do not count as busy."""
    configuration = context.getConf()
    instances = configuration.get("spark.executor.instances")
    executors: int | None = None
    busy = 0
    with suppress(Py4JError):
        # The driver's own block manager is counted, too.
        executors = max(0, int(scala_context(context).getExecutorMemoryStatus().size()) - 1)
        busy = _busy(context, group)
    wanted = int(instances) if instances is not None and instances.isdecimal() else None
    pods = pods_obstacle(pod_client(), context.applicationId) if context.master.startswith("k8s://") else None
    limits = ", ".join(f"{name}={value}" for name in _LIMITS if (value := configuration.get(name)) is not None)
    is_dynamic = allocates_dynamically(context)
    return Resources(context.master, executors, wanted, capacity(context), busy, pods, is_dynamic, limits)


def allocates_dynamically(context: SparkContext) -> bool:
    """Return True if Spark adds and removes executors as tasks need them. On a local master it never does."""
    enabled: str = context.getConf().get("spark.dynamicAllocation.enabled", "false")
    return enabled.lower() == "true" and not is_on_this_machine(context.master)


def capacity(context: SparkContext) -> int | None:
    """Return the number of tasks that the current executors can run at once, or None if Spark does not tell it.

    Spark's scheduler counts cores and other resources of every executor, as before a start of barrier tasks.
    """
    with suppress(Py4JError, OSError):
        scala = scala_context(context)
        return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))
    return None


def _busy(context: SparkContext, group: str) -> int:
    tracker = context.statusTracker()
    own_jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    own = {stage for job in own_jobs if job is not None for stage in job.stageIds}
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds() if stage not in own)
    return sum(stage.numActiveTasks for stage in stages if stage is not None)
