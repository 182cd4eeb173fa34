"""Slots on Spark: one Python worker process per slot, the same one for every stage of every epoch.

Three things make a slot stick, all through PySpark and the public Java RDD API:

1. A process of its own. Spark keeps a pool of Python workers per distinct environment of a Python function. Each slot
   is a one-partition PythonRDD whose environment names the job and the slot, so it always meets the same pool of one.
2. An executor of its own. `anchor` is a tiny cached RDD with one partition per slot; zipped with the exchanged data it
   gives each partition a narrow dependency on a cached block, and the scheduler prefers the executor that holds it.
   RDD.zip wants equal counts, so every task sends exactly one element to every slot. (A union by partitioner would be
   cheaper to make, but it knows hosts only, not executors.)
3. One Spark stage per stage. The slots' RDDs are unioned; an exchange is a shuffle of (slot, bytes) pairs.

What changes from epoch to epoch, the command, travels as a property of the Spark job, so that the first stage's RDDs
are made once.
"""

from __future__ import annotations

import pickle
import threading
import time
from base64 import b85encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any

import cloudpickle
from py4j.protocol import Py4JError
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer

from penstock.errors import SlotLost
from penstock.runtime.protocol import Command, Deployment, Report
from penstock.spark import worker

EXECUTOR_PATIENCE = 15.0
"""Seconds to wait for Spark to replace a lost executor before its slots are put on those that are left."""


class SparkCluster:
    """The slots of one job on a SparkContext."""

    def __init__(self, context: SparkContext, job_id: str, job_name: str, slots: int, stages: int) -> None:
        self._context = context
        self._job_id = job_id
        self._job_name = job_name
        self._slots = slots
        self._stages = stages
        self._java = _Java(context)
        self._only = [self._java.to_seq([i == slot for i in range(slots)]) for slot in range(slots)]
        self._partitioner = context._jvm.PythonPartitioner(slots, 0)
        self._ahead = ThreadPoolExecutor(1, "penstock lineage")
        self._executors = self._java.executors()
        self._token = token_hex(4)
        self._generation = 0
        self._lost = False
        self._thread = -1
        self._released = False
        self._anchor: Any = None
        self._make_slots()

    def _make_slots(self) -> None:
        """New worker pools, a new anchor, and what every epoch is made from."""
        self._functions = [self._function(slot) for slot in range(self._slots)]
        self._anchor = self._new_anchor()
        self._first_stage = self._in_slots(self._anchor)
        self._next_epoch = self._ahead.submit(self._epoch)

    def _replace_slots(self) -> None:
        """After a process was lost: none of the others is asked again, since it may still be busy with a lost epoch."""
        self._next_epoch.exception()
        self._generation += 1
        self._anchor.unpersist(False)
        deadline = time.monotonic() + EXECUTOR_PATIENCE
        while self._java.executors() < self._executors and time.monotonic() < deadline:
            time.sleep(0.1)
        self._make_slots()
        self._lost = False

    # --- the cluster protocol ---
    def deploy(self, deployment: Deployment) -> list[Report]:
        """A deployment can be large, so it travels as data."""
        if self._lost:
            try:
                self._replace_slots()
            except (Py4JError, PySparkException) as error:
                raise SlotLost(_reason(str(error))) from None
        data = self._once(worker.DEPLOY + cloudpickle.dumps(deployment))
        return self._reports(lambda: self._in_slots(self._anchored(self._java.parallelize(data, self._slots))))

    def run(self, command: Command) -> list[Report]:
        return self._reports(lambda: self._this_epoch(command))

    def release(self) -> list[Report]:
        if self._released:
            return []
        self._released = True
        try:
            return self._reports(lambda: self._ordered(worker.RELEASE, self._first_stage))
        finally:
            self._ahead.shutdown()
            self._anchor.unpersist(False)

    def interrupt(self) -> None:
        """Spark kills the tasks, and with them the workers that do not return."""
        self._context.cancelJobGroup(self._job_id)

    # --- one Spark job ---
    def _this_epoch(self, command: Command) -> Any:
        """The RDD of an epoch, made while the one before it ran, as the next one is made while this one runs."""
        rdd = self._next_epoch.result()
        self._next_epoch = self._ahead.submit(self._epoch)
        return self._ordered(worker.COMMAND + pickle.dumps(command), rdd)

    def _epoch(self) -> Any:
        """All stages. A shuffle serves one job only, so the stages behind one are made anew for every epoch."""
        rdd = self._first_stage
        for _ in range(self._stages - 1):
            rdd = self._in_slots(self._anchored(self._exchanged(rdd)))
        return rdd

    def _ordered(self, order: bytes, rdd: Any) -> Any:
        self._context.setLocalProperty(worker.ORDER_PROPERTY, b85encode(order).decode("ascii"))
        return rdd

    def _reports(self, job: Callable[[], Any]) -> list[Report]:
        """Make a job's RDD, run it and read what the slots say."""
        try:
            self._name_jobs_of_this_thread()
            answers = job().collect()
            reports = [pickle.loads(answers.get(index)) for index in range(answers.size())]
        except (Py4JError, PySparkException) as error:
            self._lost = True
            raise SlotLost(_reason(str(error))) from None
        self._lost = len(reports) != self._slots or any(report.lost for report in reports)
        if len(reports) != self._slots:
            raise SlotLost(f"{len(reports)} of {self._slots} slots answered")
        return reports

    def _name_jobs_of_this_thread(self) -> None:
        if self._thread != threading.get_ident():
            self._context.setJobGroup(self._job_id, self._job_name, interruptOnCancel=True)
            self._thread = threading.get_ident()

    def _once(self, element: bytes) -> Any:
        """An element for every slot, and empty ones up to the number that an anchor's partition has."""
        elements = self._context._jvm.java.util.ArrayList()
        one, others = self._java.copies(1, element), self._java.copies(self._slots - 1, b"")
        for _ in range(self._slots):
            elements.addAll(one)
            elements.addAll(others)
        return elements

    def _exchanged(self, rdd: Any) -> Any:
        pairs = self._java.pairwise(rdd.rdd()).asJavaPairRDD()
        return self._java.values(pairs.partitionBy(self._partitioner))

    def _anchored(self, rdd: Any) -> Any:
        return self._anchor.zip(rdd).values()

    def _in_slots(self, rdd: Any) -> Any:
        """Partition p of `rdd` through the worker process of slot p."""
        inner = rdd.rdd()
        parts = [self._in_slot(inner, slot) for slot in range(self._slots)]
        if len(parts) == 1:
            return parts[0]
        if len(parts) == 2:
            return parts[0].union(parts[1])
        union = self._context._gateway.new_array(self._java.rdd_class, len(parts))
        for index, part in enumerate(parts):
            union[index] = part
        return self._java.union(union)

    def _in_slot(self, rdd: Any, slot: int) -> Any:
        pruned = self._java.prune(rdd, self._only[slot])
        return self._java.python_rdd(pruned, self._functions[slot], False, False).asJavaRDD()

    # --- made once ---
    def _function(self, slot: int) -> Any:
        """The Python function of a slot. Its environment is what gives the slot a worker pool of its own."""
        command = (worker.serve, None, NoOpSerializer(), NoOpSerializer())
        environment = dict(self._context.environment)
        environment[worker.SLOT_VARIABLE] = f"{self._job_id}/{self._token}-{self._generation}/{slot}"
        environment[worker.STAGES_VARIABLE] = str(self._stages)
        environment[worker.SLOTS_VARIABLE] = str(self._slots)
        return self._java.python_function(
            bytearray(CloudPickleSerializer().dumps(command)),
            environment,
            self._context._python_includes,
            self._context.pythonExec,
            self._context.pythonVer,
            [],
            self._context._javaAccumulator,
        )

    def _new_anchor(self) -> Any:
        """Empty elements, as many for each slot as there are slots, in the memory of the executor that will host it."""
        anchor = self._java.parallelize(self._java.copies(self._slots * self._slots, b""), self._slots)
        anchor.persist(self._context._getJavaStorageLevel(StorageLevel.MEMORY_ONLY))
        anchor.count()
        return anchor


class _Java:
    """The JVM's classes and methods that an epoch calls, looked up once: py4j asks the JVM for every dot."""

    def __init__(self, context: SparkContext) -> None:
        jvm: Any = context._jvm
        spark: Any = context._jsc
        self.copies = jvm.java.util.Collections.nCopies
        self.to_seq = jvm.PythonUtils.toSeq
        self.pairwise = jvm.PairwiseRDD
        self.python_rdd = jvm.PythonRDD
        self.python_function = jvm.SimplePythonFunction
        self.values = jvm.PythonRDD.valueOfPair
        self.prune = jvm.org.apache.spark.rdd.PartitionPruningRDD.create
        self.rdd_class = jvm.org.apache.spark.api.java.JavaRDD
        self.parallelize = spark.parallelize
        self._spark = spark
        self.union = spark.union

    def executors(self) -> int:
        """How many executors there are, and the driver."""
        return int(self._spark.sc().getExecutorMemoryStatus().size())


def _reason(text: str) -> str:
    """What Spark says in one line, without its stack of frames."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "ExecutorLostFailure" in text:
        return "an executor was lost, and its slots with it"
    if "crashed" in text or "exited unexpectedly" in text or "EOFException" in text:
        return "a slot's process died, and its state with it"
    if "cancelled" in text:
        return "the Spark job was cancelled"
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    return (telling or lines or ["Spark gave no reason"])[-1][:400]
