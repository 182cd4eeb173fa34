"""Checkpoint settings, storages, backends and slot sharing groups."""

from __future__ import annotations

import pickle

import pytest

from penstock.common.time import Duration
from penstock.datastream.checkpoint_config import CheckpointConfig, ExternalizedCheckpointRetention
from penstock.datastream.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from penstock.datastream.state_backend import (
    EmbeddedRocksDBStateBackend,
    FsStateBackend,
    HashMapStateBackend,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
)


class TestCheckpointConfig:
    def test_defaults_are_those_of_flink(self):
        config = CheckpointConfig()
        assert not config.is_checkpointing_enabled()
        assert config.get_checkpoint_interval() == -1
        assert config.get_checkpoint_timeout() == 600_000
        assert config.get_min_pause_between_checkpoints() == 0
        assert config.get_max_concurrent_checkpoints() == 1
        assert config.get_tolerable_checkpoint_failure_number() == 0
        assert config.is_fail_on_checkpointing_errors()
        assert config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        assert not config.is_externalized_checkpoints_enabled()
        assert not config.is_unaligned_checkpoints_enabled()
        assert not config.is_force_unaligned_checkpoints()
        assert config.get_aligned_checkpoint_timeout() == Duration.of_millis(0)
        assert config.get_checkpoint_storage() is None

    def test_setters_chain_and_are_read_back(self):
        config = (
            CheckpointConfig()
            .set_checkpoint_interval(10)
            .set_checkpoint_timeout(20)
            .set_min_pause_between_checkpoints(30)
            .set_max_concurrent_checkpoints(2)
            .set_tolerable_checkpoint_failure_number(3)
            .set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
            .set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
            .enable_unaligned_checkpoints()
            .set_force_unaligned_checkpoints()
            .set_alignment_timeout(Duration.of_seconds(1))
            .set_checkpoint_storage_dir("s3://bucket/checkpoints")
        )
        assert config.is_checkpointing_enabled()
        assert config.get_checkpoint_interval() == 10
        assert config.get_checkpoint_timeout() == 20
        assert config.get_min_pause_between_checkpoints() == 30
        assert config.get_max_concurrent_checkpoints() == 2
        assert config.get_tolerable_checkpoint_failure_number() == 3
        assert not config.is_fail_on_checkpointing_errors()
        assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
        assert config.is_externalized_checkpoints_enabled()
        assert config.is_unaligned_checkpoints_enabled()
        assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
        assert config.is_force_unaligned_checkpoints()
        assert config.get_alignment_timeout() == Duration.of_seconds(1)
        assert config.get_checkpoint_storage().get_checkpoint_path() == "s3://bucket/checkpoints"

    @pytest.mark.parametrize(
        ("setter", "too_small", "smallest"),
        [
            ("set_checkpoint_interval", 9, 10),
            ("set_checkpoint_timeout", 9, 10),
            ("set_min_pause_between_checkpoints", -1, 0),
            ("set_max_concurrent_checkpoints", 0, 1),
            ("set_tolerable_checkpoint_failure_number", -1, 0),
        ],
    )
    def test_numbers_have_a_lower_limit(self, setter, too_small, smallest):
        config = CheckpointConfig()
        getattr(config, setter)(smallest)
        with pytest.raises(ValueError, match=f"at least {smallest}, not {too_small}"):
            getattr(config, setter)(too_small)
        for wrong in (10.5, "10", True, None):
            with pytest.raises(TypeError, match="whole number"):
                getattr(config, setter)(wrong)

    def test_choices_must_be_of_their_enum(self):
        with pytest.raises(TypeError, match="CheckpointingMode"):
            CheckpointConfig().set_checkpointing_mode("EXACTLY ONCE")
        with pytest.raises(TypeError, match="ExternalizedCheckpointRetention"):
            CheckpointConfig().set_externalized_checkpoint_retention(True)
        with pytest.raises(TypeError, match="CheckpointStorage"):
            CheckpointConfig().set_checkpoint_storage("s3://bucket")

    def test_errors_are_tolerated_without_limit_or_not_at_all(self):
        config = CheckpointConfig().set_fail_on_checkpointing_errors(False)
        assert config.get_tolerable_checkpoint_failure_number() == 2**31 - 1
        assert config.set_fail_on_checkpointing_errors(True).get_tolerable_checkpoint_failure_number() == 0

    def test_it_is_plain_data(self):
        config = CheckpointConfig().set_checkpoint_interval(1000)
        assert pickle.loads(pickle.dumps(config)) == config != CheckpointConfig()


def test_file_storage_wants_a_path_and_a_sensible_threshold():
    assert FileSystemCheckpointStorage("/c").get_min_file_size_threshold() == 20 * 1024
    assert FileSystemCheckpointStorage("/c", 100).get_write_buffer_size() == 4096
    assert FileSystemCheckpointStorage("/c", 8192, 4096).get_write_buffer_size() == 8192
    with pytest.raises(ValueError, match="checkpoint_path"):
        FileSystemCheckpointStorage("")
    with pytest.raises(ValueError, match="at most"):
        FileSystemCheckpointStorage("/c", FileSystemCheckpointStorage.MAX_FILE_STATE_THRESHOLD + 1)


def test_backends_are_plain_data():
    assert HashMapStateBackend() == HashMapStateBackend() != EmbeddedRocksDBStateBackend()
    rocksdb = EmbeddedRocksDBStateBackend(True)
    rocksdb.set_db_storage_paths("/a", "/b")
    rocksdb.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    rocksdb.set_number_of_transfer_threads(8)
    copy = pickle.loads(pickle.dumps(rocksdb))
    assert copy == rocksdb
    assert copy.is_incremental_checkpoints_enabled()
    assert copy.get_db_storage_paths() == ["/a", "/b"]
    with pytest.raises(ValueError, match="transfering_threads"):
        rocksdb.set_number_of_transfer_threads(0)
    with pytest.raises(TypeError, match="incremental"):
        EmbeddedRocksDBStateBackend("/checkpoints")


def test_the_spellings_of_flink_1_bring_their_storage_along():
    assert HashMapStateBackend().checkpoint_storage is None
    assert isinstance(MemoryStateBackend().checkpoint_storage, JobManagerCheckpointStorage)
    assert isinstance(FsStateBackend("/c"), HashMapStateBackend)
    assert FsStateBackend("/c").checkpoint_storage == FileSystemCheckpointStorage("/c")
    assert FsStateBackend("/c").asynchronous_snapshots
    assert not FsStateBackend("/c", using_asynchronous_snapshots=False).asynchronous_snapshots
    rocksdb = RocksDBStateBackend("/c", True)
    assert rocksdb.checkpoint_storage == FileSystemCheckpointStorage("/c")
    assert rocksdb.is_incremental_checkpoints_enabled()
    on_top = RocksDBStateBackend(checkpoint_stream_backend=FsStateBackend("/c", "/s"))
    assert (on_top.checkpoint_storage, on_top.savepoint_path) == (FileSystemCheckpointStorage("/c"), "/s")
    with pytest.raises(ValueError, match="either"):
        RocksDBStateBackend()


def test_memory_sizes_are_rounded_down_and_ordered():
    size = MemorySize(3 * 2**30 + 1)
    assert (size.get_gibi_bytes(), size.get_mebi_bytes(), size.get_kibi_bytes()) == (3, 3072, 3145728)
    assert size.get_tebi_bytes() == 0
    assert MemorySize(1) < MemorySize(2) <= MemorySize(2)
    assert MemorySize.of_mebi_bytes(1) == MemorySize(2**20)
    assert str(MemorySize(5)) == "5 bytes"
    with pytest.raises(ValueError, match="bytes_size"):
        MemorySize(-1)


def test_a_group_without_resources_fits_any_slot():
    group = SlotSharingGroup.builder("g").build()
    assert group.get_name() == "g"
    assert group.get_cpu_cores() is group.get_task_heap_memory() is group.get_managed_memory() is None
    assert group.get_external_resources() == {}


def test_a_group_with_resources_needs_cores_and_heap():
    group = SlotSharingGroup.builder("g").set_cpu_cores(2).set_task_heap_memory_mb(100).set_external_resource("gpu", 1)
    built = group.build()
    assert built == pickle.loads(pickle.dumps(built))
    assert built.get_cpu_cores() == 2.0
    assert built.get_task_heap_memory() == MemorySize.of_mebi_bytes(100)
    assert built.get_managed_memory() == built.get_task_off_heap_memory() == MemorySize(0)
    assert built.get_external_resources() == {"gpu": 1.0}
    for incomplete in (
        SlotSharingGroup.builder("g").set_cpu_cores(1),
        SlotSharingGroup.builder("g").set_managed_memory_mb(1),
    ):
        with pytest.raises(ValueError, match="needs cpu_cores and task_heap_memory"):
            incomplete.build()
    for wrong in (
        lambda b: b.set_cpu_cores(0),
        lambda b: b.set_task_heap_memory_mb(0),
        lambda b: b.set_external_resource("g", 0),
    ):
        with pytest.raises(ValueError, match="positive"):
            wrong(SlotSharingGroup.builder("g"))
