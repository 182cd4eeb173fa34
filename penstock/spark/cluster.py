"""Slots on Spark: one Python worker process per slot, the same one for every stage of every epoch.

Three things make a slot stick, all through PySpark and the public Java RDD API:

1. A process of its own. Spark keeps a pool of Python workers per distinct environment of a Python function. Each slot
   is a one-partition PythonRDD whose environment names the job and the slot, so it always meets the same pool of one.
2. An executor of its own. `anchor` is a tiny cached RDD with one partition per slot; zipped with the exchanged data it
   gives each partition a narrow dependency on a cached block, and the scheduler prefers the executor that holds it.
   RDD.zip wants equal counts, so every task sends exactly one element to every slot.
3. One Spark stage per stage. The slots' RDDs are unioned; an exchange is a shuffle of (slot, bytes) pairs.
"""

from __future__ import annotations

import pickle
import threading
from typing import Any

import cloudpickle
from py4j.protocol import Py4JError
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer

from penstock.errors import SlotLost
from penstock.runtime.protocol import Command, Deployment, Report
from penstock.spark import worker


class SparkCluster:
    """The slots of one job on a SparkContext."""

    def __init__(self, context: SparkContext, job_id: str, job_name: str, slots: int, stages: int) -> None:
        self._context = context
        self._job_id = job_id
        self._job_name = job_name
        self._slots = slots
        self._stages = stages
        self._java = _Java(context)
        self._functions = [self._function(slot) for slot in range(slots)]
        self._only = [self._java.to_seq([i == slot for i in range(slots)]) for slot in range(slots)]
        self._partitioner = context._jvm.PythonPartitioner(slots, 0)
        self._anchor = self._new_anchor()
        self._thread = -1
        self._released = False

    # --- the cluster protocol ---
    def deploy(self, deployment: Deployment) -> list[Report]:
        return self._on_slots(self._once(worker.DEPLOY + cloudpickle.dumps(deployment)), stages=1)

    def run(self, command: Command) -> list[Report]:
        return self._on_slots(self._copies(worker.COMMAND + pickle.dumps(command)), self._stages)

    def release(self) -> list[Report]:
        if self._released:
            return []
        self._released = True
        try:
            return self._on_slots(self._copies(worker.RELEASE), stages=1)
        finally:
            self._anchor.unpersist(False)

    def interrupt(self) -> None:
        """Spark kills the tasks, and with them the workers that do not return."""
        self._context.cancelJobGroup(self._job_id)

    # --- one Spark job ---
    def _on_slots(self, elements: Any, stages: int) -> list[Report]:
        self._name_jobs_of_this_thread()
        try:
            rdd = self._in_slots(self._anchored(self._java.parallelize(elements, self._slots)))
            for _ in range(stages - 1):
                rdd = self._in_slots(self._anchored(self._exchange(rdd)))
            answers = self._collected(rdd)
        except (Py4JError, PySparkException) as error:
            raise SlotLost(_reason(str(error))) from None
        if len(answers) != self._slots:
            raise SlotLost(f"{len(answers)} of {self._slots} slots answered")
        return [pickle.loads(answer) for answer in answers]

    def _name_jobs_of_this_thread(self) -> None:
        if self._thread != threading.get_ident():
            self._context.setJobGroup(self._job_id, self._job_name, interruptOnCancel=True)
            self._thread = threading.get_ident()

    @staticmethod
    def _collected(rdd: Any) -> list[bytes]:
        answers = rdd.collect()
        return [answers.get(index) for index in range(answers.size())]

    def _copies(self, element: bytes) -> Any:
        """The same element for every slot, as often as an anchor's partition has elements: one call to the JVM."""
        return self._java.copies(self._slots * self._slots, element)

    def _once(self, element: bytes) -> Any:
        """A large element for every slot once, followed by copies of its tag: more calls, less to carry."""
        elements = self._context._jvm.java.util.ArrayList()
        one, others = self._java.copies(1, element), self._java.copies(self._slots - 1, element[:1])
        for _ in range(self._slots):
            elements.addAll(one)
            elements.addAll(others)
        return elements

    def _exchange(self, rdd: Any) -> Any:
        pairs = self._java.pairwise(rdd.rdd())
        shuffled = pairs.asJavaPairRDD().partitionBy(self._partitioner)
        return self._java.values(shuffled)

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
        environment[worker.SLOT_VARIABLE] = f"{self._job_id}/{slot}"
        environment[worker.STAGES_VARIABLE] = str(self._stages)
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
        anchor = self._java.parallelize(self._java.copies(self._slots * self._slots, 0), self._slots)
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
        self.union = spark.union


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
