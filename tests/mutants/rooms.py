"""The critical rooms of the package: their modules, and the fast tests that must notice when one of them is wrong."""

ROOMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "timers": (
        ("penstock/engine/operators/timers.py",),
        (
            "tests/model/test_timer_queue_model.py",
            "tests/unit/runtime/test_timers.py",
            "tests/unit/runtime/test_keyed_timer_operator.py",
            "tests/unit/runtime/test_process_operator.py",
            "tests/unit/runtime/test_batch_mode.py",
        ),
    ),
    "watermarks": (
        ("penstock/engine/operators/watermarks.py",),
        (
            "tests/unit/runtime/test_watermark_operator.py",
            "tests/unit/runtime/test_alignment.py",
            "tests/unit/runtime/test_columnar_streams.py",
            "tests/model/test_gate_model.py",
        ),
    ),
    "state": (
        ("penstock/engine/state/tables.py", "penstock/engine/state/ttl.py", "penstock/engine/state/key_groups.py"),
        (
            "tests/unit/state",
            "tests/model/test_key_groups_model.py",
            "tests/model/test_tables_contract.py",
            "tests/model/test_tables_model.py",
        ),
    ),
    "windows": (
        (
            "penstock/engine/windows/window_operator.py",
            "penstock/engine/windows/column_panes.py",
            "penstock/engine/windows/window_joins.py",
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
        ("penstock/engine/exchange/frames.py", "penstock/engine/exchange/writers.py"),
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
        ("penstock/engine/operators/sinks/committing.py", "penstock/connectors/committing/two_phase_sink.py"),
        ("tests/unit/runtime/test_sinks.py", "tests/unit/recovery", "tests/connectors/two_phase"),
    ),
    "cep": (
        ("penstock/cep/cep_operator.py", "penstock/cep/event_matching.py", "penstock/cep/waiting_keys.py"),
        ("tests/unit/cep", "tests/model/test_pattern_model.py", "tests/cep", "tests/recovery/test_pattern_recovery.py"),
    ),
    "sql": (
        (
            "penstock/table/operators/window/session_aggregate.py",
            "penstock/table/operators/join/interval_join_operator.py",
            "penstock/table/operators/rank/top_n.py",
            "penstock/table/operators/aggregate/group_aggregate.py",
            "penstock/table/operators/rank/deduplicate.py",
        ),
        ("tests/table/runtime", "tests/table/sql"),
    ),
    "checkpoints": (
        (
            "penstock/engine/checkpoint/coordinator.py",
            "penstock/engine/checkpoint/rules.py",
            "penstock/engine/checkpoint/ownership.py",
        ),
        ("tests/unit/checkpoint", "tests/model/test_ownership_model.py"),
    ),
    "job": (
        ("penstock/engine/job/state_machine.py", "penstock/engine/job/restarts.py", "penstock/engine/job/adaptive.py"),
        (
            "tests/unit/job",
            "tests/unit/recovery/test_restart_loop.py",
            "tests/model/test_job_machine_model.py",
            "tests/recovery/test_adaptive_jobs.py",
        ),
    ),
    "links": (
        ("penstock/spark/links/links.py", "penstock/spark/links/mesh.py", "penstock/spark/links/lifelines.py"),
        ("tests/unit/spark", "tests/nemesis/test_hosts.py"),
    ),
}
