import io
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Types
from penstock.datastream.connectors.file_formats import StreamFormat
from penstock.datastream.formats.text import TextLineFormat
from penstock.errors import UndecodableRecord
from penstock.formats import file_lines as _lines
from tests.unit.formats.reading import Rejected, drain, fail, in_pieces, whole, with_stops

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=5), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n"])


@pytest.fixture(autouse=True, params=[1, 3, 1 << 20])
def block_bytes(request, monkeypatch):
    """Lines are found however the blocks fall."""
    monkeypatch.setattr(_lines, "BLOCK_BYTES", request.param)
    monkeypatch.setattr(_lines, "_SEARCH_BYTES", request.param)


@given(lines=LINES, end=ENDS, last=st.booleans(), cuts=st.data())
@settings(deadline=None)
def test_every_line_once_whole_in_pieces_and_with_stops(lines, end, last, cuts):
    data = "".join(line + end for line in lines).removesuffix("" if last else end).encode()
    expected = lines if last or not lines or lines[-1] else lines[:-1]
    cuts = cuts.draw(st.sets(st.integers(0, len(data)), max_size=4))
    format = TextLineFormat()
    assert whole(format, data) == expected
    assert list(itertools.chain(*in_pieces(format, data, cuts))) == expected
    assert with_stops(format, data) == expected
    for start, stop in itertools.pairwise([0, *sorted(cuts), len(data)]):
        piece = drain(format.open(io.BytesIO(data), start, stop, None, fail))
        assert with_stops(format, data, 2, start, stop) == piece


def test_a_line_belongs_to_the_piece_of_its_first_byte():
    data = b"first\nsecond\nthird\n"
    assert in_pieces(TextLineFormat(), data, [6]) == [["first"], ["second", "third"]]
    assert in_pieces(TextLineFormat(), data, [7]) == [["first", "second"], ["third"]]
    assert in_pieces(TextLineFormat(), data, [1, 2, 3]) == [["first"], [], [], ["second", "third"]]


def test_a_file_shorter_than_was_said_ends_where_it_ends():
    reader = TextLineFormat().open(io.BytesIO(b"a\nb"), 0, 1000, None, fail)
    assert drain(reader) == ["a", "b"]


def test_bytes_of_another_charset_are_rejected_with_their_place():
    rejected = Rejected()
    data = "é\nü\r\n".encode() + "é\nß\n".encode("latin-1") + b"end"
    assert whole(TextLineFormat(), data, rejected) == ["é", "ü", "end"]
    assert rejected == [(b"\xe9", "line at byte 7"), (b"\xdf", "line at byte 9")]
    assert whole(TextLineFormat("latin-1"), "é\nß".encode("latin-1")) == ["é", "ß"]


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "iso2022_jp", "cp037"])
def test_charsets_with_other_line_ends_are_read_whole(charset):
    format = TextLineFormat(charset)
    assert not format.splittable
    data = "one\r\n\n日本\nlast".encode(charset) if charset != "cp037" else "one\r\n\nxy\nlast".encode(charset)
    expected = ["one", "", "xy" if charset == "cp037" else "日本", "last"]
    assert whole(format, data) == expected
    assert with_stops(format, data) == expected
    assert whole(format, b"") == []


def test_a_file_of_another_charset_that_is_read_whole_fails():
    with pytest.raises(UndecodableRecord, match="utf-16"):
        whole(TextLineFormat("utf-16-le"), b"\x00\xd8\x00\x00")


def test_the_format_as_plain_data():
    assert StreamFormat.text_line_format("UTF-8") == TextLineFormat()
    assert TextLineFormat().splittable
    assert TextLineFormat().get_produced_type() == Types.STRING()
    with pytest.raises(ValueError, match="klingon"):
        TextLineFormat("klingon")
