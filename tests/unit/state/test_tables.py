"""Which entries of a table in memory count as changed: the next incremental checkpoint writes these and no others."""

from penstock.engine.state.tables import Layout, Table


def filled():
    table = Table("s", Layout.KEY)
    for address in "abc":
        table.put(address, 1)
    table.end_epoch(tracking=False)
    assert table.changed == set()
    return table


def test_removed_entries_are_changes_and_absent_ones_are_not():
    table = filled()
    table.remove_all(["a", "missing", "b", "a"])
    assert (table.entries, table.changed) == ({"c": 1}, {"a", "b"})
    table.remove("c")
    table.remove("missing")
    assert (table.entries, table.changed) == ({}, {"a", "b", "c"})


def test_an_entry_whose_value_is_none_is_an_entry():
    table = filled()
    table.put("none", None)
    table.end_epoch(tracking=False)
    table.remove_all(["none"])
    assert (sorted(table.entries), table.changed) == (["a", "b", "c"], {"none"})


def test_a_table_that_is_cleared_has_no_entries():
    table = filled()
    table.clear()
    assert (dict(table.items()), list(table.addresses())) == ({}, [])
