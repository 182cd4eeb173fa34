"""However a file is split, its lines come out once each."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.connectors.file_formats import StreamFormat
from penstock.datastream.connectors.file_system import FileEnumeratorProvider, FileSource

LINES = st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8), max_size=20)


def source_of(path: str, split_bytes: int) -> FileSource:
    pieces = FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes)
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path)
    return builder.set_file_enumerator(pieces).build()


def read(source: FileSource, subtask: int, parallelism: int, most: int) -> list[str]:
    splits = source.create_enumerator().discover()
    mine = [split for turn, split in enumerate(splits) if source.owner(split, turn, parallelism) == subtask]
    reader, lines = source.create_reader(None), []
    reader.add_splits(mine)
    while reader.snapshot_state():
        for fetched in reader.fetch(most, 0):
            assert len(fetched.values) <= most
            lines.extend(fetched.values)
    return lines


@given(
    st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans()), min_size=1, max_size=3),
    st.integers(1, 40),
    st.integers(1, 4),
    st.integers(1, 5),
)
def test_every_line_once_whatever_the_splits(files, split_bytes, parallelism, budget):
    expected: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (lines, newline, ends) in enumerate(files):
            text = newline.join(lines) + (newline if lines and ends else "")
            Path(folder, f"part-{number}").write_bytes(text.encode())
            # An unfinished last line without characters is no line.
            expected.extend(lines if ends or not lines or lines[-1] else lines[:-1])
        source = source_of(folder, split_bytes)
        got = [line for subtask in range(parallelism) for line in read(source, subtask, parallelism, budget)]
    assert sorted(got) == sorted(expected)


@given(LINES, st.integers(1, 30))
def test_one_subtask_keeps_the_order(lines, split_bytes):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "f").write_bytes("".join(f"{line}\n" for line in lines).encode())
        assert read(source_of(folder, split_bytes), 0, 1, 1000) == lines


@given(st.binary(max_size=200), st.integers(1, 20))
def test_splits_cover_a_file_without_overlap(content, split_bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f")
        path.write_bytes(content)
        splits = source_of(str(path), split_bytes).create_enumerator().discover()
    covered = [position for split in splits for position in range(split.start, split.end)]
    assert covered == list(range(len(content)))
    assert all(0 < split.end - split.start <= split_bytes for split in splits)
