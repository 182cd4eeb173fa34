"""What make compat compares of the output of Table programs."""

from tests.compat.table_outputs import forms, kinds_of_changes, settled


def test_steps_in_between_do_not_count():
    slowly = ["+I[a, 1]", "-U[a, 1]", "+U[a, 2]", "+I[b, 1]", "done"]
    assert settled(slowly) == settled(["+I[b, 1]", "done", "+I[a, 2]"]) == ["[a, 2]", "[b, 1]", "done"]
    assert settled(slowly) != settled(["+I[b, 1]", "done", "+I[a, 3]"])


def test_what_is_taken_back_must_have_been_there():
    assert settled(["+I[a, 1]", "-D[a, 2]"]) != settled(["+I[a, 1]"])


def test_plans_are_left_out_and_tables_are_not():
    table = ["+----+---+", "| op | n |", "+----+---+", "| +I | 1 |", "+----+---+", "1 row in set"]
    plan = ["== Abstract Syntax Tree ==", "LogicalProject", "+- LogicalValues", "== Optimized Physical Plan ==", "Calc"]
    assert settled([*plan, *table]) == settled(table)
    assert " | 1 |" in settled(table)


def test_random_values_count_by_their_form():
    assert forms(["+I[-71]", "| +I |  9 | db_value_for_9 |"]) == forms(["+I[5]", "| +I | f | db_value_for_f |"])
    assert forms(["+I[1]"]) != forms(["-D[1]"])
    assert kinds_of_changes(["+I[sql, 1]", "+I[state, 1]"]) == ["+I[word, #]"]
