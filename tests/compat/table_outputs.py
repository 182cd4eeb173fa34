"""What is compared of the lines that a Table program prints.

A query over a stream may reach its result in more steps or in fewer, in any order: compared is what is left of the
changes. Plans are texts of the system that made them. Random values are compared by their form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

CHANGE = re.compile(r"(?P<table>\| )?(?P<kind>[+-][IUD])(?P<row>(?: \||\[).*)")
FRAME = re.compile(r"\+(-+\+)+|\(")
"""The first line of a table, or of a schema: a plan that was printed before it is over."""
COUNT = re.compile(r"\d+ rows? in set")
RANDOM = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?|\b[0-9a-f]\b|(?<=_)[0-9a-f]\b")


def settled(lines: list[str]) -> list[str]:
    """What is left at the end of all changes, and the other lines; sorted."""
    rows, others = Counter[str](), []
    for line in without_plans(lines):
        change = CHANGE.fullmatch(line)
        if change is not None:
            rows[change["row"]] += 1 if change["kind"] in ("+I", "+U") else -1
        elif not COUNT.fullmatch(line):
            others.append(line)
    wrong = [f"taken back without having been there: {row}" for row, count in rows.items() if count < 0]
    return sorted([*others, *rows.elements(), *wrong])


def without_plans(lines: list[str]) -> Iterator[str]:
    """Lines without those of a plan: from its first title up to the next table."""
    inside = False
    for line in lines:
        inside = line.startswith("== ") or (inside and FRAME.fullmatch(line) is None)
        if not inside:
            yield line


def forms(lines: list[str]) -> list[str]:
    """Lines without their random values, sorted."""
    return sorted(" ".join(RANDOM.sub("#", line).split()) for line in lines)


def kinds_of_changes(lines: list[str]) -> list[str]:
    """For a program that never ends: which kinds of lines it prints, with words and numbers left out."""
    return sorted({re.sub(r"(?<=\[)\w+, \d+", "word, #", line) for line in lines})
