"""Scope formats: Flink's defaults, inheritance and delimiters."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.scopes import FORMAT_OPTIONS, ScopeFormats

VARIABLES = {"<host>": "h", "<tm_id>": "t", "<job_name>": "j", "<task_name>": "k", "<subtask_index>": "0"}
PARTS = st.one_of(st.sampled_from(sorted(VARIABLES)), st.text("abcxyz_-<>", min_size=1, max_size=8))


def test_without_options_scopes_are_flinks():
    formats = ScopeFormats.from_configuration({})
    variables = {**VARIABLES, "<operator_name>": "o"}
    written = {scope: ".".join(formats.scope_parts(scope, variables)) for scope in FORMAT_OPTIONS}
    assert written == {
        "jm": "h.jobmanager",
        "jm_job": "h.jobmanager.j",
        "tm": "h.taskmanager.t",
        "tm_job": "h.taskmanager.t.j",
        "task": "h.taskmanager.t.j.k.0",
        "operator": "h.taskmanager.t.j.o.0",
    }


def test_earlier_names_of_options_count():
    formats = ScopeFormats.from_configuration({"metrics.scope.jm.job": "a", "metrics.scope.tm-job": "b"})
    assert (formats.parts["jm_job"], formats.parts["tm_job"]) == (("a",), ("b",))


@given(st.lists(PARTS, min_size=1, max_size=5), st.sampled_from([".", "_", "-", "::"]))
def test_every_part_is_itself_or_the_value_of_a_variable(parts, delimiter):
    options = {"metrics.scope.task": ".".join(parts), "metrics.scope.delimiter": delimiter}
    formats = ScopeFormats.from_configuration(options)
    scope = formats.scope_parts("task", VARIABLES)
    assert scope == tuple(VARIABLES.get(part, part) for part in parts)
    assert formats.full_name(scope, "n") == delimiter.join([*scope, "n"])


@given(st.lists(PARTS, max_size=4))
def test_a_star_stands_for_the_format_around(parts):
    outer = ScopeFormats.from_configuration({}).parts["task"]
    formats = ScopeFormats.from_configuration({"metrics.scope.operator": ".".join(["*", *parts])})
    assert formats.parts["operator"] == (*outer, *parts)
