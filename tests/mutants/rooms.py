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
            "tests/unit/runtime/test_watermark_times.py",
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
            "tests/contract/test_tables_contract.py",
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
        ),
    ),
    "exchange": (
        ("penstock/engine/exchange/frames.py", "penstock/engine/exchange/writers.py"),
        (
            "tests/model/test_frames_model.py",
            "tests/model/test_exchange_model.py",
            "tests/model/test_columns_model.py",
            "tests/unit/runtime/test_frames.py",
            "tests/unit/runtime/test_writers.py",
            "tests/unit/runtime/test_distribution.py",
            "tests/unit/runtime/test_columnar_streams.py",
            "tests/unit/runtime/test_latency_markers.py",
        ),
    ),
    "sinks": (
        ("penstock/engine/operators/sinks/committing.py", "penstock/connectors/committing/two_phase_sink.py"),
        (
            "tests/unit/recovery/test_batch_commits.py",
            "tests/unit/recovery/test_committing_operator.py",
            "tests/unit/recovery/test_committing_sink.py",
            "tests/connectors/two_phase/test_two_phase_commit.py",
        ),
    ),
    "cep": (
        ("penstock/cep/cep_operator.py", "penstock/cep/event_matching.py", "penstock/cep/waiting_keys.py"),
        ("tests/unit/cep", "tests/model/test_pattern_model.py", "tests/cep"),
    ),
    "sql": (
        (
            "penstock/table/operators/window/session_aggregate.py",
            "penstock/table/operators/join/interval_join_operator.py",
            "penstock/table/operators/rank/top_n.py",
            "penstock/table/operators/aggregate/group_aggregate.py",
            "penstock/table/operators/rank/deduplicate.py",
        ),
        ("tests/table/runtime",),
    ),
    "checkpoints": (
        (
            "penstock/engine/checkpoint/coordinator.py",
            "penstock/engine/checkpoint/rules.py",
            "penstock/engine/checkpoint/ownership.py",
        ),
        (
            "tests/unit/checkpoint/test_coordinator.py",
            "tests/unit/checkpoint/test_coordinator_orders.py",
            "tests/unit/checkpoint/test_ownership.py",
            "tests/unit/checkpoint/test_ownership_records.py",
            "tests/unit/checkpoint/test_protocol.py",
        ),
    ),
    "job": (
        (
            "penstock/engine/job/state_machine.py",
            "penstock/engine/job/restarts.py",
            "penstock/engine/job/adaptive.py",
        ),
        (
            "tests/unit/job/test_adaptive_driver.py",
            "tests/unit/job/test_asked_checkpoints.py",
            "tests/unit/job/test_driver.py",
            "tests/unit/job/test_endings.py",
            "tests/unit/job/test_restarts.py",
            "tests/unit/job/test_state_machine.py",
            "tests/model/test_job_machine_model.py",
        ),
    ),
    "links": (
        (
            "penstock/spark/links/links.py",
            "penstock/spark/links/door.py",
            "penstock/spark/links/mesh.py",
            "penstock/spark/links/lifelines.py",
        ),
        (
            "tests/contract/test_links.py",
            "tests/unit/spark/test_lifelines.py",
            "tests/unit/spark/test_lifelines_by_hand.py",
            "tests/unit/spark/test_link_options.py",
            "tests/unit/spark/test_mesh.py",
            "tests/unit/spark/test_side_links.py",
        ),
    ),
}
