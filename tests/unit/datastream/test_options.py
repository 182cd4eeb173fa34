"""Options by their names, old and new: what they set, what they refuse, and what they mean together."""

import pickle

import pytest

from penstock.base.options.parsers import parse_memory_size
from penstock.common import Configuration, RestartStrategies
from penstock.common.time import Duration
from penstock.datastream.checkpoint_config import CheckpointConfig, ExternalizedCheckpointRetention
from penstock.datastream.checkpoint_storage import (
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.state_backend import (
    EmbeddedRocksDBStateBackend,
    FsStateBackend,
    HashMapStateBackend,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
)
from penstock.errors import ConfigurationError
from penstock.service.launch.execution_settings import (
    EnvironmentSettings,
    checkpoint_directory,
    checkpoint_storage,
    incremental_checkpoints,
    inline_threshold,
    savepoint_directory,
    state_backend,
)
from penstock.service.options.combined_options import Recovery
from penstock.service.options.environment_options import OPTIONS

Exponential = RestartStrategies.ExponentialDelayRestartStrategyConfiguration
JOB_ID = "0123456789abcdef" * 2
ROCKSDB = {"state.backend.type": "rocksdb"}
FIXED, RATE, GROWING = (
    "restart-strategy.fixed-delay",
    "restart-strategy.failure-rate",
    "restart-strategy.exponential-delay",
)


def read(*maps):
    settings = EnvironmentSettings()
    for options in maps:
        settings.read(Configuration.from_dict(options))
    return settings


def the(name):
    return lambda settings: getattr(settings, name)


def of_checkpoints(getter):
    return lambda settings: getattr(settings.checkpoints, getter)()


# name, other spellings, values that fit and what they become, how to look, values that do not fit
CASES = [
    ("parallelism.default", [], {"3": 3, "-1": -1}, lambda s: s.config.get_parallelism(), ["0", "two", "1.5", ""]),
    ("pipeline.max-parallelism", [], {"64": 64}, lambda s: s.config.get_max_parallelism(), ["0", "32769", "x"]),
    ("pipeline.name", [], {"totals": "totals"}, the("job_name"), []),
    (
        "pipeline.job-id",
        ["$internal.pipeline.job-id"],
        {JOB_ID: JOB_ID, JOB_ID.upper(): JOB_ID},
        the("job_id"),
        ["abc", "g" * 32, JOB_ID + "0"],
    ),
    (
        "pipeline.auto-watermark-interval",
        [],
        {"1 s": 1000, "0": 0},
        lambda s: s.config.get_auto_watermark_interval(),
        ["-1", "1 week"],
    ),
    (
        "pipeline.operator-chaining.enabled",
        ["pipeline.operator-chaining", "python.operator-chaining.enabled"],
        {"false": False, "TRUE": True},
        the("chaining"),
        ["yes", "1"],
    ),
    (
        "pipeline.global-job-parameters",
        [],
        {"a:1,b:x:y": {"a": "1", "b": "x:y"}, "{a: 1}": {"a": "1"}},
        lambda s: s.config.get_global_job_parameters(),
        [],
    ),
    (
        "pipeline.object-reuse",
        [],
        {"true": True, "false": False},
        lambda s: s.config.is_object_reuse_enabled(),
        ["on"],
    ),
    (
        "jobmanager.scheduler",
        [],
        {"default": "default", "Adaptive": "adaptive"},
        lambda s: s.scheduler,
        ["magic"],
    ),
    ("scheduler-mode", [], {"reactive": "reactive"}, lambda s: s.scheduler_mode, ["proactive"]),
    (
        "jobmanager.adaptive-scheduler.submission.resource-wait-timeout",
        ["jobmanager.adaptive-scheduler.resource-wait-timeout"],
        {"7 s": 7000},
        lambda s: s.adaptivity.resource_wait_timeout,
        ["0 s"],
    ),
    (
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
        ["jobmanager.adaptive-scheduler.resource-stabilization-timeout"],
        {"7 s": 7000},
        lambda s: s.adaptivity.resource_stabilization_timeout,
        ["0 s"],
    ),
    ("slot.request.timeout", [], {"7 s": 7000}, lambda s: s.patience.slot_request_timeout, ["0 s", "soon"]),
    ("heartbeat.interval", [], {"7 s": 7000}, lambda s: s.patience.heartbeat_interval, ["0 s"]),
    ("heartbeat.timeout", [], {"1 min": 60_000}, lambda s: s.patience.heartbeat_timeout, ["0 s"]),
    (
        "security.kerberos.login.keytab",
        [],
        {"/etc/u.keytab": "/etc/u.keytab"},
        lambda s: s.spark.get("spark.kerberos.keytab"),
        [" "],
    ),
    (
        "security.kerberos.login.principal",
        [],
        {"u@REALM": "u@REALM"},
        lambda s: s.spark.get("spark.kerberos.principal"),
        [" "],
    ),
    ("security.ssl.internal.enabled", [], {"true": True, "false": False}, lambda s: s.encrypts, ["maybe"]),
    ("execution.runtime-mode", [], {"batch": RuntimeExecutionMode.BATCH}, the("mode"), ["fast"]),
    ("execution.sorted-inputs.memory", [], {"64 mb": 64 << 20}, the("sort_memory"), ["0", "much"]),
    (
        "execution.buffer-timeout.interval",
        ["execution.buffer-timeout"],
        {"50 ms": 50, "-1": -1, "0": 0},
        the("buffer_timeout"),
        ["-2", "soon"],
    ),
    ("execution.buffer-timeout.enabled", [], {"false": False, "TRUE": True}, the("gathers"), ["yes"]),
    ("penstock.epoch.max-records", [], {"10": 10}, the("max_records"), ["0", "many"]),
    ("penstock.epoch.max-time", [], {"2 s": 2000, "0": 1}, the("max_millis"), ["long"]),
    ("spark.master", [], {"local[2]": "local[2]"}, the("master"), [""]),
    (
        "execution.checkpointing.interval",
        [],
        {"3 min": 180_000, "10": 10},
        of_checkpoints("get_checkpoint_interval"),
        ["9 ms", "often"],
    ),
    (
        "execution.checkpointing.mode",
        [],
        {"AT_LEAST_ONCE": CheckpointingMode.AT_LEAST_ONCE, "exactly-once": CheckpointingMode.EXACTLY_ONCE},
        of_checkpoints("get_checkpointing_mode"),
        ["AT_MOST_ONCE"],
    ),
    ("execution.checkpointing.timeout", [], {"1 min": 60_000}, of_checkpoints("get_checkpoint_timeout"), ["1 ms"]),
    (
        "execution.checkpointing.min-pause",
        [],
        {"500 ms": 500},
        of_checkpoints("get_min_pause_between_checkpoints"),
        ["-1"],
    ),
    (
        "execution.checkpointing.max-concurrent-checkpoints",
        [],
        {"2": 2},
        of_checkpoints("get_max_concurrent_checkpoints"),
        ["0", "x"],
    ),
    (
        "execution.checkpointing.tolerable-failed-checkpoints",
        [],
        {"5": 5, "0": 0},
        of_checkpoints("get_tolerable_checkpoint_failure_number"),
        ["-1"],
    ),
    (
        "execution.checkpointing.externalized-checkpoint-retention",
        [],
        {"retain_on_cancellation": ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION},
        of_checkpoints("get_externalized_checkpoint_retention"),
        ["KEEP"],
    ),
    (
        "execution.checkpointing.num-retained",
        ["state.checkpoints.num-retained"],
        {"3": 3},
        of_checkpoints("get_max_retained_checkpoints"),
        ["0", "all"],
    ),
    (
        "execution.checkpointing.incremental",
        ["state.backend.incremental"],
        {"false": False, "true": True},
        incremental_checkpoints,
        ["2"],
    ),
    (
        "execution.checkpointing.snapshot-compression",
        [],
        {"true": True, "false": False},
        lambda s: s.config.is_use_snapshot_compression(),
        ["zstd"],
    ),
    (
        "execution.checkpointing.local-backup.enabled",
        ["execution.state-recovery.from-local", "state.backend.local-recovery"],
        {"true": True},
        of_checkpoints("is_local_recovery_enabled"),
        ["disk"],
    ),
    (
        "execution.checkpointing.unaligned.enabled",
        ["execution.checkpointing.unaligned"],
        {"true": True},
        of_checkpoints("is_unaligned_checkpoints_enabled"),
        ["x"],
    ),
    (
        "execution.checkpointing.aligned-checkpoint-timeout",
        ["execution.checkpointing.alignment-timeout"],
        {"5 s": Duration.of_seconds(5)},
        of_checkpoints("get_aligned_checkpoint_timeout"),
        ["-1 s"],
    ),
    (
        "execution.checkpointing.storage",
        ["state.checkpoint-storage"],
        {"filesystem": "filesystem", "JobManager": "jobmanager"},
        lambda s: s.storage.kind,
        ["s3", ""],
    ),
    (
        "execution.checkpointing.dir",
        ["state.checkpoints.dir", "state.backend.fs.checkpointdir"],
        {"s3://b/c": "s3://b/c"},
        checkpoint_directory,
        ["", "  "],
    ),
    (
        "execution.checkpointing.savepoint-dir",
        ["state.savepoints.dir", "savepoints.state.backend.fs.dir"],
        {"/s": "/s"},
        savepoint_directory,
        [""],
    ),
    (
        "execution.checkpointing.data-inline-threshold",
        ["state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"],
        {"1 kb": 1024, "0": 0, "1m": 1 << 20},
        inline_threshold,
        ["2 mb", "-1", "some"],
    ),
    (
        "state.backend.type",
        ["state.backend"],
        {
            "hashmap": HashMapStateBackend(),
            "RocksDB": EmbeddedRocksDBStateBackend(),
            "filesystem": HashMapStateBackend(),
            "jobmanager": HashMapStateBackend(),
            "memory": HashMapStateBackend(),
        },
        the("state_backend"),
        ["forst", "org.example.Backend"],
    ),
    ("state.backend.async", [], {"false": False, "TRUE": True}, the("asynchronous_snapshots"), ["yes"]),
    (
        "state.backend.rocksdb.localdir",
        [],
        {"/a": ["/a"], "/a,/b": ["/a", "/b"], "/a:file:///b": ["/a", "/b"]},
        lambda s: state_backend(s).get_db_storage_paths(),
        ["", "/a,,/b"],
    ),
    (
        "state.backend.rocksdb.memory.fixed-per-slot",
        [],
        {"200mb": 200 << 20},
        lambda s: state_backend(s).get_memory_per_slot(),
        ["0", "200 xb", "much"],
    ),
    ("state.backend.rocksdb.memory.managed", [], {"false": EmbeddedRocksDBStateBackend()}, state_backend, ["maybe"]),
    (
        "state.backend.rocksdb.predefined-options",
        [],
        {"FLASH_SSD_OPTIMIZED": PredefinedOptions.FLASH_SSD_OPTIMIZED},
        lambda s: state_backend(s).get_predefined_options(),
        ["FAST"],
    ),
    (
        "state.backend.rocksdb.options-factory",
        [],
        {"my.Factory": "my.Factory"},
        lambda s: state_backend(s).get_options(),
        [""],
    ),
    (
        "state.backend.rocksdb.checkpoint.transfer.thread.num",
        [],
        {"8": 8},
        lambda s: state_backend(s).get_number_of_transfer_threads(),
        ["0", "x"],
    ),
    ("queryable-state.enable", [], {"true": True, "false": False}, lambda s: s.queryable.enabled, ["maybe"]),
    (
        "queryable-state.proxy.ports",
        [],
        {"0": (0,), "9069,9071-9072": (9069, 9071, 9072)},
        lambda s: tuple(s.queryable.ports),
        ["none", "70000"],
    ),
    ("queryable-state.bind-host", [], {"0.0.0.0": "0.0.0.0"}, lambda s: s.queryable.host, [" "]),
    ("queryable-state.token", [], {"abc": "abc"}, lambda s: s.queryable.token, [" "]),
    ("queryable-state.ssl.enabled", [], {"true": True}, lambda s: s.queryable.tls.enabled, ["maybe"]),
    ("queryable-state.ssl.certificate", [], {"/c.pem": "/c.pem"}, lambda s: s.queryable.tls.certificate, [" "]),
    ("queryable-state.ssl.key", [], {"/k.pem": "/k.pem"}, lambda s: s.queryable.tls.key, [" "]),
    ("queryable-state.ssl.key-password", [], {"abc": "abc"}, lambda s: s.queryable.tls.key_password, [" "]),
    (
        "restart-strategy.type",
        ["restart-strategy"],
        {
            **dict.fromkeys(["none", "off", "disable"], RestartStrategies.no_restart()),
            **dict.fromkeys(["fixed-delay", "fixeddelay"], RestartStrategies.fixed_delay_restart(1, 1000)),
            **dict.fromkeys(["failure-rate", "FailureRate"], RestartStrategies.failure_rate_restart(1, 60_000, 1000)),
            **dict.fromkeys(
                ["exponential-delay", "exponentialdelay"], Exponential(1000, 60_000, 1.5, 3_600_000, 0.1, 2**31 - 1)
            ),
        },
        the("restart"),
        ["always", ""],
    ),
    (f"{FIXED}.attempts", [], {"5": 5, "0": 0}, lambda s: s.restart.restart_attempts, ["-1", "x"]),
    (f"{FIXED}.delay", [], {"3 s": 3000}, lambda s: s.restart.delay_between_attempts_interval, ["-1 s"]),
    (f"{RATE}.max-failures-per-interval", [], {"4": 4}, lambda s: s.restart.max_failure_rate, ["0"]),
    (f"{RATE}.failure-rate-interval", [], {"5 min": 300_000}, lambda s: s.restart.failure_interval, ["0 s", "x"]),
    (f"{RATE}.delay", [], {"0": 0}, lambda s: s.restart.delay_between_attempts_interval, ["x"]),
    (f"{GROWING}.initial-backoff", [], {"5 s": 5000}, lambda s: s.restart.initial_backoff, ["0 ms", "x"]),
    (f"{GROWING}.max-backoff", [], {"2 min": 120_000}, lambda s: s.restart.max_backoff, ["0"]),
    (f"{GROWING}.backoff-multiplier", [], {"2": 2.0}, lambda s: s.restart.backoff_multiplier, ["0.9", "nan", "x"]),
    (f"{GROWING}.reset-backoff-threshold", [], {"1 d": 86_400_000}, lambda s: s.restart.reset_backoff_threshold, ["0"]),
    (f"{GROWING}.jitter-factor", [], {"0": 0.0, "1": 1.0}, lambda s: s.restart.jitter_factor, ["-0.1", "1.1", "nan"]),
    (
        f"{GROWING}.attempts-before-reset-backoff",
        [],
        {"9": 9},
        lambda s: s.restart.attempts_before_reset_backoff,
        ["0", "inf"],
    ),
    ("execution.state-recovery.path", ["execution.savepoint.path"], {"/s/1": "/s/1"}, the("restore_path"), [""]),
    (
        "execution.state-recovery.ignore-unclaimed-state",
        ["execution.savepoint.ignore-unclaimed-state"],
        {"true": True},
        the("allow_non_restored"),
        ["x"],
    ),
    (
        "execution.state-recovery.claim-mode",
        ["execution.savepoint-restore-mode"],
        {"CLAIM": True, "no_claim": False, "LEGACY": False},
        the("claim"),
        ["STEAL"],
    ),
    (
        "execution.recover",
        [],
        {"latest": Recovery.LATEST, "none": Recovery.NONE, "older": Recovery.OLDER},
        the("recovery"),
        ["first"],
    ),
    ("execution.takeover", [], {"true": True, "false": False}, the("takeover"), ["perhaps"]),
    ("execution.single-driver", [], {"true": True, "false": False}, the("single_driver"), ["perhaps"]),
]


def context(name):
    """The options without which this one has no effect to look at."""
    group, _, rest = name.partition(".")
    if group == "restart-strategy" and "." in rest:
        return {"restart-strategy.type": rest.partition(".")[0]}
    return ROCKSDB if name.startswith("state.backend.rocksdb.") else {}


SPELLED = [(spelling, case[0], case) for case in CASES for spelling in (case[0], *case[1])]


def test_every_option_has_its_case():
    assert [(case[0], tuple(case[1])) for case in CASES] == [(option.name, option.others) for option in OPTIONS]
    assert len(SPELLED) == len({spelling for spelling, _, _ in SPELLED})


@pytest.mark.parametrize(
    ("spelling", "name", "case"), SPELLED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_option_is_read_in_every_spelling(spelling, name, case):
    for text, expected in case[2].items():
        assert case[3](read({spelling: text, **context(name)})) == expected
        assert case[3](read(context(name), {spelling: text})) == expected


@pytest.mark.parametrize(
    ("spelling", "name", "case"), SPELLED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_value_that_does_not_fit_is_refused_by_name(spelling, name, case):
    for text in case[4]:
        with pytest.raises(ConfigurationError) as caught:
            read({spelling: text})
        assert str(caught.value).startswith(f"option {spelling} cannot be {text!r}: ")
        assert "invalid literal" not in str(caught.value)


def effects(settings):
    """What the rest of the program sees of the options."""
    seen = pickle.loads(pickle.dumps(settings))
    parts = (state_backend(seen), checkpoint_storage(seen), inline_threshold(seen), incremental_checkpoints(seen))
    seen.state_backend, seen.rocksdb, seen.storage, seen.restart_options = None, None, None, None
    return seen, parts


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.default is not None], ids=lambda o: o.name)
def test_reading_a_default_changes_nothing(option):
    around = context(option.name)
    assert effects(read({option.name: option.default, **around})) == effects(read(around))


def test_the_newer_spelling_wins_in_any_order():
    both = {"state.checkpoints.dir": "/old", "execution.checkpointing.dir": "/new"}
    assert checkpoint_directory(read(both)) == "/new"
    assert checkpoint_directory(read(dict(reversed(both.items())))) == "/new"


def test_a_later_configuration_wins_in_any_spelling():
    earlier, later = {"execution.checkpointing.dir": "/a"}, {"state.checkpoints.dir": "/b"}
    assert checkpoint_directory(read(earlier, later)) == "/b"


def test_options_of_other_parts_of_flink_are_left_alone():
    assert read({"blob.server.port": "4", "execution.attached": "x"}) == EnvironmentSettings()
    assert read({"spark.ui.enabled": "true"}).spark == {"spark.ui.enabled": "true"}


class TestRestartStrategies:
    def test_are_built_from_options_in_any_order(self):
        options = {
            f"{GROWING}.max-backoff": "10 min",
            f"{GROWING}.initial-backoff": "2 min",
            f"{FIXED}.attempts": "7",
            "restart-strategy": "exponential-delay",
            f"{GROWING}.attempts-before-reset-backoff": "4",
        }
        expected = Exponential(120_000, 600_000, 1.5, 3_600_000, 0.1, 4)
        assert read(options).restart == read(dict(reversed(options.items()))).restart == expected

    def test_are_completed_by_later_configurations(self):
        settings = read({f"{FIXED}.attempts": "7"}, {"restart-strategy.type": "fixed-delay"}, {f"{FIXED}.delay": "5 s"})
        assert settings.restart == RestartStrategies.fixed_delay_restart(7, 5000)

    def test_are_not_chosen_by_their_values_alone(self):
        assert read({f"{FIXED}.attempts": "7"}).restart is None

    def test_that_a_program_sets_stay_until_a_kind_is_read(self):
        settings = EnvironmentSettings(restart=RestartStrategies.no_restart())
        settings.read(Configuration.from_dict({f"{FIXED}.attempts": "7", "parallelism.default": "2"}))
        assert settings.restart == RestartStrategies.no_restart()
        settings.read(Configuration.from_dict({"restart-strategy.type": "fixed-delay"}))
        assert settings.restart == RestartStrategies.fixed_delay_restart(7, 1000)

    def test_whose_values_contradict_each_other_are_refused(self):
        with pytest.raises(
            ConfigurationError,
            match=r"restart-strategy.exponential-delay.\* contradict each "
            "other: max",
        ):
            read({"restart-strategy.type": "exponential-delay", f"{GROWING}.initial-backoff": "2 min"})


class TestWhereCheckpointsGo:
    OPTION = {"execution.checkpointing.dir": "/option", "state.savepoints.dir": "/savepoints"}

    def test_nowhere_but_memory_by_default(self):
        settings = EnvironmentSettings()
        assert checkpoint_storage(settings) == JobManagerCheckpointStorage()
        assert checkpoint_directory(settings) is savepoint_directory(settings) is None

    def test_where_the_option_says(self):
        settings = read(self.OPTION, {"state.storage.fs.memory-threshold": "7"})
        assert checkpoint_storage(settings) == FileSystemCheckpointStorage("/option", 7)
        assert savepoint_directory(settings) == "/savepoints"

    def test_where_an_old_backend_says_before_the_option(self):
        settings = read(self.OPTION)
        settings.state_backend = FsStateBackend("/backend", "/other")
        assert checkpoint_directory(settings) == "/backend"
        assert savepoint_directory(settings) == "/savepoints"
        settings.savepoint_directory = None
        assert savepoint_directory(settings) == "/other"
        settings.state_backend = RocksDBStateBackend("/rocks")
        assert checkpoint_directory(settings) == "/rocks"
        settings.state_backend = MemoryStateBackend()
        assert checkpoint_directory(settings) is None

    def test_where_the_checkpoint_config_says_before_all(self):
        settings = read(self.OPTION)
        settings.state_backend = FsStateBackend("/backend")
        settings.checkpoints.set_checkpoint_storage_dir("/config")
        assert checkpoint_directory(settings) == "/config"
        settings.checkpoints.set_checkpoint_storage(JobManagerCheckpointStorage())
        assert checkpoint_directory(settings) is None

    def test_a_file_system_needs_a_directory(self):
        for options in ({"state.backend": "filesystem"}, {"execution.checkpointing.storage": "filesystem"}):
            with pytest.raises(ConfigurationError, match=r"no directory is set: set execution\.checkpointing\.dir"):
                checkpoint_directory(read(options))
            assert checkpoint_directory(read(options, self.OPTION)) == "/option"

    def test_an_explicit_storage_overrules_what_an_old_backend_implies(self):
        options = {"execution.checkpointing.storage": "jobmanager", "state.backend": "filesystem"}
        assert (
            checkpoint_directory(read(options)) is checkpoint_directory(read(dict(reversed(options.items())))) is None
        )
        assert checkpoint_directory(read({"state.backend": "filesystem"}, {"state.backend": "rocksdb"})) is None

    def test_the_memory_of_the_driver_is_written_down_where_a_directory_is_given(self):
        for options in ({"state.backend": "memory"}, {"state.checkpoint-storage": "jobmanager"}):
            storage = checkpoint_storage(read(self.OPTION, options))
            assert storage == JobManagerCheckpointStorage("/option")
            assert checkpoint_directory(read(self.OPTION, options)) == "/option"

    def test_a_storage_of_another_kind_is_refused(self):
        settings = EnvironmentSettings()
        settings.checkpoints.set_checkpoint_storage(CustomCheckpointStorage("my.Storage"))
        with pytest.raises(ConfigurationError, match=r"my\.Storage"):
            checkpoint_directory(settings)

    def test_a_threshold_of_the_storage_goes_before_the_option(self):
        settings = read({"execution.checkpointing.data-inline-threshold": "7"})
        assert inline_threshold(settings) == 7
        settings.checkpoints.set_checkpoint_storage_dir("/config")
        assert inline_threshold(settings) == 7
        settings.checkpoints.set_checkpoint_storage(FileSystemCheckpointStorage("/config", 9))
        assert inline_threshold(settings) == 9
        assert inline_threshold(EnvironmentSettings()) == 20 * 1024


class TestRocksDB:
    OPTIONS = {
        "state.backend.rocksdb.localdir": "/option",
        "state.backend.rocksdb.memory.fixed-per-slot": "1 mb",
        "state.backend.rocksdb.checkpoint.transfer.thread.num": "8",
    }

    def test_options_fill_in_what_the_program_left_open(self):
        settings = read(self.OPTIONS)
        settings.state_backend = RocksDBStateBackend("/checkpoints")
        settings.state_backend.set_db_storage_paths("/program")
        found = state_backend(settings)
        assert isinstance(found, RocksDBStateBackend) and found.checkpoint_storage is not None
        assert found.get_db_storage_paths() == ["/program"]
        assert (found.get_memory_per_slot(), found.get_number_of_transfer_threads()) == (1 << 20, 8)
        assert settings.state_backend.get_memory_per_slot() is None

    def test_options_do_not_choose_it(self):
        assert state_backend(read(self.OPTIONS)) == HashMapStateBackend()

    def test_it_says_itself_whether_checkpoints_are_incremental_or_leaves_it(self):
        for said, configured, expected in [(None, True, True), (None, False, False), (False, True, False)]:
            settings = EnvironmentSettings(state_backend=EmbeddedRocksDBStateBackend(said))
            settings.checkpoints.set_incremental_checkpoints(configured)
            assert incremental_checkpoints(settings) is expected

    def test_its_memory_is_a_number_of_bytes(self):
        backend = EmbeddedRocksDBStateBackend()
        backend.set_memory_per_slot(1)
        assert backend.get_memory_per_slot() == 1
        backend.set_memory_per_slot(None)
        assert backend.get_memory_per_slot() is None
        with pytest.raises(ValueError, match="memory_per_slot must be at least 1, not 0"):
            backend.set_memory_per_slot(0)


def test_checkpoint_settings_beyond_pyflinks():
    config = CheckpointConfig()
    assert config.get_max_retained_checkpoints() == 1
    assert config.is_incremental_checkpoints_enabled() and not config.is_local_recovery_enabled()
    config.set_max_retained_checkpoints(3).set_incremental_checkpoints(False).set_local_recovery(True)
    assert config.get_max_retained_checkpoints() == 3
    assert not config.is_incremental_checkpoints_enabled() and config.is_local_recovery_enabled()
    with pytest.raises(ValueError, match="max_retained_checkpoints must be at least 1, not 0"):
        config.set_max_retained_checkpoints(0)
    for setter in (config.set_incremental_checkpoints, config.set_local_recovery):
        with pytest.raises(TypeError, match="must be True or False"):
            setter("true")


@pytest.mark.parametrize(
    ("text", "size"),
    [("200mb", 209715200), ("200 m", 209715200), ("1G", 1 << 30), ("5", 5), ("2 tebibytes", 2 << 40), ("7bytes", 7)],
)
def test_memory_sizes(text, size):
    """As Flink's MemorySize reads them."""
    assert parse_memory_size(text) == size


@pytest.mark.parametrize("text", ["1.5g", "1 MiB", "-1", "", "mb"])
def test_no_memory_sizes(text):
    with pytest.raises(ValueError, match="whole number followed by b, kb"):
        parse_memory_size(text)
