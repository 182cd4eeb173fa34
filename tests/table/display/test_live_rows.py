"""What live tables are made of: the rows that a changelog leaves, rows that two may read, and a terminal."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from penstock.common import Row, RowKind
from penstock.errors import TableException
from penstock.table import DataTypes
from penstock.table.display import shared_rows
from penstock.table.display.materialised_rows import Materialised
from penstock.table.display.shared_rows import SharedRows
from penstock.table.display.terminal_table import show_live
from tests.waiting import until

INSERT, BEFORE, AFTER, DELETE = RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE


def left(changes, limit=100):
    held = Materialised(limit)
    for kind, *row in changes:
        held.apply(tuple(row), kind)
    return held


# --- the rows that a changelog leaves ---
def test_an_updated_row_stays_where_it_was():
    held = left([(INSERT, "a", "1"), (INSERT, "b", "1"), (BEFORE, "a", "1"), (AFTER, "a", "2")])
    assert held.newest(9) == [("a", "2"), ("b", "1")]
    held = left([(INSERT, "a"), (INSERT, "b"), (BEFORE, "b"), (BEFORE, "a"), (AFTER, "B"), (AFTER, "A")])
    assert held.newest(9) == [("A",), ("B",)]


def test_the_oldest_rows_are_forgotten_and_may_be_taken_back():
    held = left([(INSERT, str(number)) for number in range(5)] + [(DELETE, "0"), (BEFORE, "1"), (AFTER, "9")], limit=3)
    assert held.newest(9) == [("3",), ("4",), ("9",)]
    assert held.newest(2) == [("4",), ("9",)]
    assert (len(held), held.changes) == (3, 8)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_the_rows_are_those_that_a_bag_would_have(steps):
    bag, changes = [], []
    for row, adds in steps:
        if adds:
            bag.append((row,))
            changes.append((INSERT if len(bag) % 2 else AFTER, row))
        elif (row,) in bag:
            bag.remove((row,))
            changes.append((DELETE if len(bag) % 2 else BEFORE, row))
    held = left(changes)
    assert sorted(held.newest(100)) == sorted(bag) and len(held) == len(bag)


# --- rows that a display and a program read ---
class Source:
    """Rows that come when a test says so."""

    def __init__(self, rows, error=None):
        self._rows = rows
        self._error = error
        self.given = 0
        self.may_give = threading.Semaphore(0)
        self.is_closed = False

    def __iter__(self):
        for row in self._rows:
            self.may_give.acquire()
            self.given += 1
            yield row
        if self._error is not None:
            raise self._error

    def close(self):
        self.is_closed = True


def allow(source, count):
    for _ in range(count):
        source.may_give.release()


def test_a_program_gets_all_rows_after_a_display_has_read_some():
    source, seen = Source([Row(number) for number in range(6)]), []
    shared = SharedRows(source, lambda row: seen.append(row[0]))
    allow(source, 3)
    until(lambda: seen == [0, 1, 2])
    rows = iter(shared.take_over())
    assert [next(rows)[0] for _ in range(3)] == [0, 1, 2], "rows that were read do not wait for the next one"
    allow(source, 3)
    assert [row[0] for row in rows] == [3, 4, 5]
    until(lambda: shared.is_over)
    assert seen in ([0, 1, 2], [0, 1, 2, 3]), "the display has stopped reading"
    shared.close()
    assert source.is_closed


def test_the_error_of_a_query_comes_after_its_rows():
    source = Source([Row(1)], ValueError("the query failed"))
    shared = SharedRows(source, lambda row: None)
    allow(source, 1)
    until(lambda: shared.is_over)
    assert str(shared.error) == "the query failed"
    rows = iter(shared.take_over())
    assert next(rows)[0] == 1
    with pytest.raises(ValueError, match="the query failed"):
        next(rows)


def test_too_many_rows_are_not_kept(monkeypatch):
    monkeypatch.setattr(shared_rows, "KEPT", 3)
    source = Source([Row(number) for number in range(5)])
    shared = SharedRows(source, lambda row: None)
    allow(source, 5)
    until(lambda: shared.is_over)
    with pytest.raises(TableException, match="read more than 3 rows"):
        shared.take_over()


# --- in a terminal ---
def changes(*rows):
    for kind, *values in rows:
        yield Row.of_kind(kind, *values)


def terminal():
    return Console(force_terminal=True, width=80, height=20, record=True, color_system=None)


def test_a_terminal_shows_the_rows_that_are_left():
    console = terminal()
    rows = changes((INSERT, "[b]x[/b]", 1), (INSERT, None, 2), (BEFORE, "[b]x[/b]", 1), (AFTER, "one\ntwo\x1b", 3))
    show_live(["name", "n"], [DataTypes.STRING(), DataTypes.INT()], rows, 100, console=console)
    shown = [line.split() for line in console.export_text().splitlines() if line.strip()]
    assert shown[-5:] == [
        ["name", "n"],
        ["─" * 14],
        ["one↵two\N{REPLACEMENT CHARACTER}", "3"],
        ["<NULL>", "2"],
        ["2", "rows,", "4", "changes"],
    ]


def test_ctrl_c_leaves_the_last_rows_on_the_screen():
    def interrupted():
        yield Row("a")
        raise KeyboardInterrupt

    console = terminal()
    show_live(["name"], [DataTypes.STRING()], interrupted(), 100, console=console)
    assert "1 row, 1 change" in console.export_text()
