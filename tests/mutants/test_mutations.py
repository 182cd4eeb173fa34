"""Mutants differ from the program in one place each, and are programs themselves."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.harmless import CHOSEN, HARMLESS, reason
from tests.mutants.mutations import Mutant, changes_of, mutants_of
from tests.mutants.rooms import ROOMS

ROOT = Path(__file__).parents[2]


@cache
def changes_in(module):
    return changes_of((ROOT / "penstock" / module).read_text())


TEXT = """
def first(values: list[int], least: int = 3) -> int:
    for value in values:
        if value < least and value:
            continue
        note(value)
        return value + 1
    return 0
"""


def test_each_kind_of_change_is_made():
    found = {(one.line, one.change.partition(":")[0]) for one in mutants_of(TEXT)}
    assert found >= {(4, "compare"), (4, "and-or"), (4, "negate"), (5, "jump"), (6, "delete"), (7, "compute")}
    assert changes_of(TEXT) == [(one.source, one.change) for one in mutants_of(TEXT)]
    plain = ast.unparse(ast.parse(TEXT))
    for mutant in mutants_of(TEXT):
        ast.parse(mutant.text)
        changed = sum(a != b for a, b in zip(plain.splitlines(), mutant.text.splitlines(), strict=True))
        assert changed == 1, mutant


def test_a_text_that_is_put_together_stays():
    assert mutants_of("a = 'b' + c") == []


@pytest.mark.parametrize("place", HARMLESS)
def test_harmless_mutants_exist(place):
    module, source, change = place
    assert (source, change) in changes_in(module)


@pytest.mark.parametrize("place", sorted(CHOSEN))
def test_chosen_numbers_exist_and_only_they_are_left_alone(place):
    module, name = place
    (source,) = {source for source, _ in changes_in(module) if source.startswith(f"{name} = ")}
    why = {text: reason(f"penstock/{module}", Mutant(1, "constant: 1  ->  2", ast.parse(""), source=text)) for text in
           (source, f"if size > {name} + 1:")}  # fmt: skip
    assert list(map(bool, why.values())) == [True, False]


def test_lines_for_the_log_and_checks_of_lengths_are_left_alone():
    assert mutants_of("def f(a, b):\n    log.info('x')\n    return zip(a, b, strict=True)") == []


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_have_modules_and_tests(room):
    modules, tests = ROOMS[room]
    assert all((ROOT / path).exists() for path in (*modules, *tests))
