"""Options of Flink that cannot have an effect in Penstock, each with the reason.

A job with such an option runs, and a warning gives the reason. `docs/flink-options.md` lists them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

_REASONS = [
    (
        "there is no Akka and no Pekko: slots and driver exchange messages over links of their own",
        "akka.* pekko.* taskmanager.exit-on-fatal-akka-error",
    ),
    (
        "Spark distributes programs and files to the slots",
        "blob.* rest.client.max-content-length user.artifacts.*",
    ),
    (
        "programs are Python and load no Java classes",
        """
        classloader.* pipeline.classpaths pipeline.jars pipeline.force-* pipeline.generic-types
        pipeline.closure-cleaner-level pipeline.serialization-config yarn.classpath.* yarn.per-job-cluster.*
        execution.job-listeners execution.job-status-changed-listeners jobmanager.failure-enrichers
        shuffle-service-factory.class security.context.factory.classes security.module.factory.classes
        """,
    ),
    (
        "Spark knows the addresses and ports of its processes: set spark.driver.host, spark.driver.port and "
        "spark.driver.bindAddress",
        """
        jobmanager.rpc.port jobmanager.rpc.bind-port jobmanager.retrieve-taskmanager-hostname taskmanager.host
        taskmanager.bind-host taskmanager.rpc.* taskmanager.data.* taskmanager.collect-sink.port
        resourcemanager.rpc.port jobmanager.resource-id taskmanager.resource-id
        high-availability.jobmanager.port yarn.application-master.port yarn.appmaster.rpc.* jmx.server.port
        """,
    ),
    (
        "slots exchange records over links without buffers of a fixed size",
        """
        taskmanager.network.* taskmanager.memory.network.* taskmanager.memory.segment-size
        taskmanager.memory.min-segment-size taskmanager.memory.preallocate taskmanager.memory.off-heap
        task.checkpoint.alignment.max-size
        """,
    ),
    (
        "an executor has memory for its JVM and for its Python processes: set "
        "taskmanager.memory.process.size, or spark.executor.memory and spark.executor.memoryOverhead",
        """
        taskmanager.memory.* jobmanager.memory.* containerized.heap-cutoff-*
        state.backend.rocksdb.memory.fixed-per-tm
        """,
    ),
    (
        "Spark starts, places and removes executors: see spark.dynamicAllocation.*",
        """
        cluster.registration.* taskmanager.registration.* resourcemanager.* slot.idle.timeout
        slot.request.max-interval slotmanager.* taskmanager.slot.timeout taskmanager.load-balance.mode
        jobmanager.resourcemanager.* heartbeat.rpc-failure-threshold local.number-resourcemanager
        minicluster.number-of-taskmanagers
        """,
    ),
    (
        "a job keeps its parallelism until `penstock modify` changes it",
        """
        jobmanager.adaptive-scheduler.* jobmanager.scheduler scheduler-mode web.adaptive-scheduler.*
        pipeline.jobvertex-parallelism-overrides
        """,
    ),
    (
        "all slots of a job restart together",
        "jobmanager.execution.failover-strategy",
    ),
    (
        "a job in BATCH mode is an ordinary Spark job, whose tasks and shuffles are Spark's",
        "execution.batch.* execution.batch-shuffle-mode slow-task-detector.* jobmanager.partition.*",
    ),
    (
        "a keyed operator in BATCH mode sorts within execution.sorted-inputs.memory",
        "execution.sort-partition.memory execution.sort-keyed-partition.memory",
    ),
    (
        "the option is for the DataSet API, or for the processes of Flink 1.4 and older",
        "compiler.* taskmanager.runtime.* mode",
    ),
    (
        "a server keeps its jobs in one register: see jobstore.*",
        """
        completed-application-store.* application-result-store.* job-result-store.* jobstore.cache-size
        job-event.store.* historyserver.archive.retained-applications historyserver.archive.clean-expired-*
        """,
    ),
    (
        "a server tries to delete the files of ended jobs until it succeeds",
        "cleanup-strategy.*",
    ),
    (
        "the command line says where and how to run: `penstock run`, with -m and -d",
        """
        execution.target execution.attached execution.shutdown-on-* execution.terminate-application-*
        client.heartbeat.*
        """,
    ),
    (
        "a program may set every option",
        "execution.program-config.*",
    ),
    (
        "the option is about threads and exits of Flink's JVMs",
        """
        cluster.* jobmanager.future-pool.size jobmanager.io-pool.size taskmanager.debug.memory.*
        taskmanager.jvm-exit-on-oom
        """,
    ),
    (
        "logs of a server are in its folder: see penstock.server.log.* and logging.level.*",
        """
        env.log.* taskmanager.log.path web.log.path kubernetes.flink.log.dir taskmanager.system-out.*
        historyserver.log.*
        """,
    ),
    (
        "command line, server and SQL gateway are Python processes, without Flink's scripts",
        """
        env.java.opts.client env.java.opts.historyserver env.java.opts.sql-gateway env.hbase.conf.dir
        env.pid.dir env.ssh.opts env.stdout-err.redirect-to-file process.*
        """,
    ),
    (
        "there are reporters of metrics and of traces",
        "events.*",
    ),
    (
        "an epoch needs no alignment, and a checkpoint holds no records of channels",
        """
        execution.checkpointing.unaligned.* execution.checkpointing.during-recovery.enabled
        execution.state-recovery.without-channel-state.*
        """,
    ),
    (
        "checkpoints go on after subtasks have finished",
        "execution.checkpointing.checkpoints-after-tasks-finish",
    ),
    (
        "every job has a folder of its own for its checkpoints, and one slot writes one file for a checkpoint",
        """
        execution.checkpointing.create-subdir execution.checkpointing.file-merging.*
        execution.checkpointing.cleaner.parallel-mode execution.checkpointing.write-buffer-size
        """,
    ),
    (
        "sources do not report a backlog",
        "execution.checkpointing.interval-during-backlog",
    ),
    (
        "Spark gives GPUs and the like to executors: see spark.executor.resource.*",
        "external-resource*",
    ),
    (
        "Spark passes settings on to Hadoop: see spark.hadoop.*",
        "flink.yarn.*",
    ),
    (
        "a path without a scheme is a local one, and files of a sink are never overwritten",
        "fs.*",
    ),
    (
        "Penstock elects a leader in its own way: see high-availability.storage.* and high- availability.zookeeper.*",
        "high-availability.* zookeeper.sasl.*",
    ),
    (
        "a server shows archived jobs on its own pages",
        "historyserver.*",
    ),
    (
        "the number of checkpoints and failures that REST shows is fixed",
        """
        web.history web.checkpoints.history web.exception-history-size
        jobmanager.execution.attempts-history-size
        """,
    ),
    (
        "Spark starts executors on Kubernetes: see spark.kubernetes.*",
        "kubernetes.*",
    ),
    (
        "materialized tables are not offered",
        "materialized-table.* partition.fields.*",
    ),
    (
        "Spark no longer supports Mesos",
        "mesos.*",
    ),
    (
        "a driver holds the metrics of its job itself, and asks no other process",
        "metrics.fetcher.* metrics.internal.* metrics.job.status.enable metrics.scope.jm-operator",
    ),
    (
        "slots report the processor time and the memory that they use",
        "metrics.system-resource*",
    ),
    (
        "identities of operators come from the plan: set a uid where it may change",
        "pipeline.auto-generate-uids pipeline.operator-chaining.chain-operators-* pipeline.vertex-*",
    ),
    (
        "files are cached with `env.register_cached_file`",
        "pipeline.cached-files",
    ),
    (
        "a partial match is a row of state, without a cache before it",
        "pipeline.cep.*",
    ),
    (
        "sources read from the first epoch on, and aligned sources wait for each other",
        "pipeline.sources.* pipeline.watermark-alignment.*",
    ),
    (
        "functions run in the process that holds the state, without bundles, caches and copies between",
        """
        python.execution-mode python.fn-execution.* python.map-state.* python.state.* python.profile.enabled
        python.systemenv.enabled
        """,
    ),
    (
        "slots import from the same places as the driver, and from python.files",
        "python.pythonpath",
    ),
    (
        "a lookup is answered by one thread of the driver, which asks the slot",
        "queryable-state.*",
    ),
    (
        "REST is served by one event loop, from records that the drivers write",
        """
        rest.await-leader-timeout rest.cache.* rest.connection-timeout rest.idleness-timeout rest.path
        rest.url-prefix rest.retry.* rest.server.numThreads rest.server.thread-priority web.timeout web.tmpdir
        web.upload.dir web.address web.ssl.enabled client.retry-period
        """,
    ),
    (
        "there are flame graphs in place of profiles of a JVM: see rest.flamegraph.*",
        "rest.profiling.* web.backpressure.*",
    ),
    (
        "who holds security.rest.token.operate may rescale",
        "web.rescale.enable",
    ),
    (
        "certificates and keys are PEM files: see security.ssl.rest.certificate, and security.ssl.internal.enabled",
        "security.ssl.*",
    ),
    (
        "Spark logs in to Kerberos and renews tokens: see spark.kerberos.* and spark.security.credentials.*",
        "security.kerberos.* security.delegation.* yarn.security.*",
    ),
    (
        "a sink itself decides how often it tries to commit",
        "sink.committer.retries",
    ),
    (
        "the client of SQL has no such setting",
        "sql-client.*",
    ),
    (
        "each session of the gateway has an environment, and each of its statements a thread",
        "sql-gateway.*",
    ),
    (
        "there is no disaggregated backend of state: use rocksdb",
        "state.backend.forst.*",
    ),
    (
        "RocksDB's Python package does not report it",
        "state.backend.rocksdb.metrics.*",
    ),
    (
        "timers are in the backend that holds the state",
        "state.backend.rocksdb.timer-service.*",
    ),
    (
        "expired state is removed as the StateTtlConfig says",
        "state.backend.rocksdb.ttl.* state.backend.rocksdb.compaction.filter.*",
    ),
    (
        "an options factory sets it: see state.backend.rocksdb.options-factory",
        "state.backend.rocksdb.*",
    ),
    (
        "incremental checkpoints write the changes of state; there is no other log of changes",
        "state.changelog.*",
    ),
    (
        "single accesses to state are not measured",
        "state.latency-track.* state.size-track.*",
    ),
    (
        "a slot that does not end when it should is killed",
        "task.cancellation.*",
    ),
    (
        "a checkpoint is one span",
        "traces.checkpoint.span-detail-level",
    ),
    (
        "Spark starts applications on YARN: see spark.yarn.*",
        "yarn.*",
    ),
]
"""Reasons, each with patterns of names. The first pattern that matches a name decides."""

_PATTERNS = [(pattern, reason) for reason, patterns in _REASONS for pattern in patterns.split()]


def reason_without_effect(name: str) -> str | None:
    """Return the reason why an option of Flink has no effect, or None for any other name."""
    return next((reason for pattern, reason in _PATTERNS if fnmatchcase(name, pattern)), None)
