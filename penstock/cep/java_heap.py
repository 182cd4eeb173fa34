"""A binary heap that returns equal elements in the order of `java.util.PriorityQueue`, unlike `heapq`.

The functions work on a plain list. An element is a tuple that begins with its rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def push(heap: list[Any], item: Any) -> None:
    """Add an item; it rises while it is strictly less than its parent."""
    position = len(heap)
    heap.append(item)
    while position > 0:
        parent = (position - 1) >> 1
        if item[0] >= heap[parent][0]:
            break
        heap[position] = heap[parent]
        position = parent
    heap[position] = item


def pop(heap: list[Any]) -> Any:
    """Remove and return the first item. The last item takes its place and sinks."""
    first, last = heap[0], heap.pop()
    if heap:
        _sink(heap, 0, last)
    return first


def keep(heap: list[Any], wanted: Callable[[Any], bool]) -> None:
    """Remove all unwanted items, and restore the order of the rest from the middle down."""
    kept = [item for item in heap if wanted(item)]
    if len(kept) == len(heap):
        return
    heap[:] = kept
    for position in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, position, heap[position])


def _sink(heap: list[Any], position: int, item: Any) -> None:
    """Let an item sink while it is strictly greater than its smaller child, the left one if they are equal."""
    size = len(heap)
    while position < size >> 1:
        child = 2 * position + 1
        if child + 1 < size and heap[child][0] > heap[child + 1][0]:
            child += 1
        if item[0] <= heap[child][0]:
            break
        heap[position] = heap[child]
        position = child
    heap[position] = item
