"""The critical rooms of the package: their modules, and the fast tests that must notice when one of them is wrong."""

ROOMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "timers": (
        ("penstock/runtime/core/timers.py",),
        (
            "tests/model/test_timer_queue_model.py",
            "tests/unit/runtime/test_timers.py",
            "tests/unit/runtime/test_keyed_timer_operator.py",
            "tests/unit/runtime/test_process_operator.py",
            "tests/unit/runtime/test_batch_mode.py",
        ),
    ),
    "watermarks": (
        ("penstock/runtime/core/watermarks.py",),
        (
            "tests/unit/runtime/test_watermark_operator.py",
            "tests/unit/runtime/test_alignment.py",
            "tests/unit/runtime/test_columnar_streams.py",
            "tests/model/test_gate_model.py",
        ),
    ),
    "state": (
        ("penstock/state/tables.py", "penstock/state/ttl.py", "penstock/state/key_groups.py"),
        (
            "tests/unit/state",
            "tests/model/test_key_groups_model.py",
            "tests/model/test_tables_contract.py",
            "tests/model/test_tables_model.py",
        ),
    ),
    "windows": (
        (
            "penstock/runtime/windows/window_operator.py",
            "penstock/runtime/windows/column_panes.py",
            "penstock/runtime/windows/joins.py",
        ),
        (
            "tests/unit/windows",
            "tests/model/test_windows_model.py",
            "tests/model/test_window_cleanup_model.py",
            "tests/model/test_column_folds_model.py",
            "tests/model/test_joins_model.py",
            "tests/recovery/test_joins_recovery.py",
        ),
    ),
    "exchange": (
        ("penstock/runtime/exchange/frames.py", "penstock/runtime/exchange/writers.py"),
        (
            "tests/model/test_frames_model.py",
            "tests/model/test_exchange_model.py",
            "tests/unit/runtime/test_frames.py",
            "tests/unit/runtime/test_distribution.py",
            "tests/unit/runtime/test_columnar_streams.py",
            "tests/unit/runtime/test_latency_markers.py",
        ),
    ),
    "sinks": (
        ("penstock/runtime/sinks/committing.py", "penstock/connectors/committing/two_phase_commit.py"),
        ("tests/unit/runtime/test_sinks.py", "tests/unit/recovery", "tests/connectors/two_phase"),
    ),
    "cep": (
        ("penstock/cep/operator.py", "penstock/cep/matching.py", "penstock/cep/waiting.py"),
        ("tests/unit/cep", "tests/model/test_pattern_model.py", "tests/cep", "tests/recovery/test_pattern_recovery.py"),
    ),
    "sql": (
        (
            "penstock/table/runtime/session_aggregate.py",
            "penstock/table/runtime/interval_join.py",
            "penstock/table/runtime/top_n.py",
            "penstock/table/runtime/group_aggregate.py",
            "penstock/table/runtime/deduplicate.py",
        ),
        ("tests/table/runtime", "tests/table/sql"),
    ),
    "checkpoints": (
        ("penstock/checkpoint/coordinator.py", "penstock/checkpoint/rules.py", "penstock/checkpoint/ownership.py"),
        ("tests/unit/checkpoint", "tests/model/test_ownership_model.py"),
    ),
    "job": (
        ("penstock/job/machine.py", "penstock/job/restarts.py", "penstock/job/adaptive.py"),
        (
            "tests/unit/job",
            "tests/unit/recovery/test_restart_loop.py",
            "tests/model/test_job_machine_model.py",
            "tests/recovery/test_adaptive_jobs.py",
        ),
    ),
    "links": (
        ("penstock/spark/links.py", "penstock/spark/mesh.py", "penstock/spark/lifelines.py"),
        ("tests/unit/spark", "tests/nemesis/test_hosts.py"),
    ),
}
