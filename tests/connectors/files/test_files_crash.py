"""Two file sinks and a store in one job that reads files: whatever dies, each shows every record once."""

import logging
from collections import Counter

import pytest

from penstock.common import Encoder, WatermarkStrategy
from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from penstock.testing.crashes import CrashFileSystem, StoreSink, crash_point, simulate

RECORDS = 60
SEEDS = 100
BATCH = 25


class Folder(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"rest={int(element) % 2}"


class Blocks(BulkWriterFactory):
    """A format whose files are worth nothing without their last line."""

    def create(self, stream):
        return BlockWriter(stream)


class BlockWriter(BulkWriter):
    def __init__(self, stream):
        self._stream = stream
        self._values = []

    def add_element(self, element):
        self._values.append(element)

    def flush(self):
        pass

    def finish(self):
        self._stream.write("".join(f"{value}\n" for value in [*self._values, f"end {len(self._values)}"]).encode())


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    for first in range(0, RECORDS, 20):
        (folder / f"from-{first}.txt").write_text("".join(f"{n}\n" for n in range(first, first + 20)))
    return folder


def slowly(value):
    crash_point("mapping")
    return value


def program(folder):
    pieces = FileEnumeratorProvider.default_splittable_file_enumerator(25)
    lines = StreamFormat.text_line_format()
    source = FileSource.for_record_stream_format(lines, str(folder)).set_file_enumerator(pieces).build()

    def build(environment):
        environment.set_parallelism(2)
        numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(slowly)
        for name, sink in sinks().items():
            numbers.sink_to(sink.build()).name(name)
        numbers.sink_to(StoreSink("store")).name("store")

    return build


def sinks():
    every_two = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
    rows = (
        FileSink.for_row_format("crash://rows", Encoder.simple_string_encoder())
        .with_bucket_assigner(Folder())
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=40, rollover_interval=50))
        .with_bucket_check_interval(20)
    )
    compacted = (
        FileSink.for_row_format("crash://compacted", Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .enable_compact(every_two, FileCompactor.concat_file_compactor())
    )
    blocks = FileSink.for_bulk_format("crash://blocks", Blocks()).with_bucket_assigner(Folder())
    return {"rows": rows, "compacted": compacted, "blocks": blocks}


def files(root, hidden=False):
    paths = [path for path in CrashFileSystem.store if path.startswith(f"/{root}/")]
    return {p: CrashFileSystem.store[p].getvalue() for p in paths if p.rpartition("/")[2].startswith(".") == hidden}


def seen(outcome):
    blocks = [data.decode().splitlines() for data in files("blocks").values()]
    assert [int(lines[-1].removeprefix("end ")) for lines in blocks] == [len(lines) - 1 for lines in blocks]
    shown = {root: [line for data in files(root).values() for line in data.decode().splitlines()] for root in ROOTS}
    shown["blocks"] = [line for lines in blocks for line in lines[:-1]]
    shown["store"] = outcome.store.visible("store")
    return {name: Counter(map(int, values)) for name, values in shown.items()}


ROOTS = ("rows", "compacted")
ONCE = Counter(range(RECORDS))
EXPECTED = {"rows": ONCE, "compacted": ONCE, "blocks": ONCE, "store": ONCE}


def check(seed, build, steps):
    outcome = simulate(build, seed, steps=steps)
    assert seen(outcome) == EXPECTED, f"seed {seed}, {outcome.crashes}, {outcome.settings}"
    if outcome.drivers == 1:  # a driver that died before its first checkpoint leaves files behind that nobody knows
        left = [path for root in EXPECTED for path in files(root, hidden=True)]
        assert left == [], f"seed {seed}, {outcome.crashes}, {outcome.settings}"
    return outcome


def rounds(folder, seeds):
    build = program(folder)
    whole = simulate(build, seed=0)
    assert seen(whole) == EXPECTED
    outcomes = [check(seed, build, whole.steps) for seed in seeds]
    assert sum(len(outcome.crashes) for outcome in outcomes) > len(outcomes) / 2
    assert any(outcome.drivers > 1 for outcome in outcomes)


@pytest.mark.parametrize("first", range(1, SEEDS + 1, BATCH))
def test_each_record_is_seen_once(folder, first):
    rounds(folder, range(first, first + BATCH))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SEEDS + 1, 3000, SEEDS))
def test_each_record_is_seen_once_for_more_seeds(folder, first):
    rounds(folder, range(first, first + SEEDS))
