"""Files are read whole, in pieces, and with a stop after any read; each way must give the same."""

import io
import itertools
import pickle


def fail(raw, error, position):
    raise AssertionError(f"{position}: {raw!r}: {error}") from error


def drain(reader, most=3):
    values = []
    while not reader.finished:
        values.extend(reader.read(most))
    assert reader.read(most) == []
    return values


def whole(format, data, reject=fail, most=1000):
    format = pickle.loads(pickle.dumps(format))
    return drain(format.open(io.BytesIO(data), 0, len(data), None, reject), most)


def in_pieces(format, data, cuts, most=3):
    """The records of each piece of a file that is cut at these bytes."""
    edges = [0, *sorted(cuts), len(data)]
    return [
        drain(format.open(io.BytesIO(data), start, end, None, fail), most)
        for start, end in itertools.pairwise(edges)
        if start < end
    ]


def with_stops(format, data, most=1, start=0, end=None):
    """The records of a piece, each read done by a new reader at the position of the one before."""
    end = len(data) if end is None else end
    values, position = [], None
    while True:
        reader = format.open(io.BytesIO(data), start, end, position, fail)
        values.extend(reader.read(most))
        position = pickle.loads(pickle.dumps(reader.position()))
        if reader.finished:
            assert drain(format.open(io.BytesIO(data), start, end, position, fail)) == []
            return values


def written(factory, values):
    """The bytes of a file with these values."""
    stream = io.BytesIO()
    writer = pickle.loads(pickle.dumps(factory)).create(stream)
    for value in values:
        writer.add_element(value)
    writer.finish()
    assert not stream.closed
    return stream.getvalue()


class Rejected(list):
    """Keeps what is rejected, as (raw, position)."""

    def __call__(self, raw, error, position):
        self.append((raw, position))
