"""The bytes of many messages at once: reading numbers and texts at given positions, and writing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

Places = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Run = tuple[Bytes, Places]
"""Some bytes of all messages, one message after the other, and the number of bytes of each message."""


class Misfit(Exception):
    """Raised if some message must be read by itself."""


# --- reading ---
class Input:
    """The bytes of all messages, one after the other."""

    def __init__(self, data: Any, ends: Places) -> None:
        self.data = data
        self.ends = ends

    def bytes_at(self, at: Places, end: Places) -> Any:
        if (at >= end).any():
            raise Misfit
        return self.data[at]

    def longs(self, at: Places, end: Places) -> tuple[Places, Places]:
        """Read numbers of variable length. Return them and the positions of their ends."""
        lowest = self.bytes_at(at, end)
        found = (lowest & 0x7F).astype(np.uint64)
        behind = at + 1
        longer, shift = np.flatnonzero(lowest & 0x80), 7
        while longer.size:
            part = self.bytes_at(behind[longer], end[longer])
            if shift > 63 or (shift == 63 and (part > 1).any()):
                raise Misfit
            found[longer] |= (part & 0x7F).astype(np.uint64) << np.uint64(shift)
            behind[longer] += 1
            longer, shift = longer[(part & 0x80) != 0], shift + 7
        negative = -(found & np.uint64(1)).astype(np.int64)
        return (found >> np.uint64(1)).astype(np.int64) ^ negative, behind

    def wide(self, at: Places, end: Places, kind: str) -> tuple[Any, Places]:
        """Read numbers of a fixed width. Return them and the positions of their ends."""
        width = np.dtype(kind).itemsize
        behind = at + width
        if (behind > end).any():
            raise Misfit
        return self.data[at[:, None] + np.arange(width)].view(kind).reshape(-1), behind

    def runs(self, at: Places, lengths: Places, end: Places) -> tuple[pa.Buffer, pa.Buffer, Places]:
        """Read bytes from some positions on. Return offsets, the bytes themselves, and the positions of their ends."""
        behind = at + lengths
        if (lengths < 0).any() or (behind > end).any() or (behind < at).any():
            raise Misfit
        offsets = np.zeros(len(at) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        total = int(offsets[-1])
        if total >= 1 << 31:
            raise Misfit
        places = np.repeat(at - offsets[:-1], lengths) + np.arange(total)
        return pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.data[places]), behind


# --- writing ---
def write_longs(numbers: Places) -> Run:
    """Write numbers in their variable length."""
    rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    widest = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    parts = rest[:, None] >> (np.uint64(7) * np.arange(widest, dtype=np.uint64))
    lengths = 1 + (parts[:, 1:] > 0).sum(axis=1)
    place = np.arange(widest)
    data = (parts & np.uint64(0x7F)).astype(np.uint8) | np.where(place < lengths[:, None] - 1, 0x80, 0).astype(np.uint8)
    return data[place < lengths[:, None]], lengths


def write_wide(numbers: Any) -> Run:
    """Write numbers of a fixed width."""
    return numbers.view(np.uint8), np.full(len(numbers), numbers.dtype.itemsize)


def messages_of(runs: Sequence[Run]) -> list[bytes]:
    """Return messages that consist of the bytes of the first run, then those of the second, and so on."""
    lengths = np.stack([own for _, own in runs], axis=1)
    behind = np.cumsum(lengths.ravel())
    starts = (behind - lengths.ravel()).reshape(lengths.shape)
    whole = np.empty(int(behind[-1]), np.uint8)
    for index, (data, own) in enumerate(runs):
        before = np.cumsum(own) - own
        whole[np.repeat(starts[:, index] - before, own) + np.arange(len(data))] = data
    text, ends = whole.tobytes(), behind.reshape(lengths.shape)[:, -1].tolist()
    return [text[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
