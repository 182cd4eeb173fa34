"""What of PySpark is not public, and used all the same: each has its reason in the decision on resident slots."""

import ast
from pathlib import Path

import penstock.spark

ROOT = Path(penstock.spark.__file__).parent
DECISION = ROOT.parent.parent / "docs" / "decisions" / "0013-resident-slots.md"
CLASSIC = {"_ensure_initialized", "_gateway", "_instantiatedSession", "_jsc", "_jvm"}
CONNECT = {"_builder", "_explain_string", "_get_default_session"}
NOT_SPARKS = {"_exit", "_replace"}
"""Of `os`, and of named tuples."""


def private_names() -> dict[str, set[str]]:
    """The private attributes of other objects that are used, each with the files that use it."""
    found: dict[str, set[str]] = {}
    for path in set(ROOT.rglob("*.py")) - set((ROOT / "sql").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and is_private_of_another(node):
                found.setdefault(node.attr, set()).add(path.name)
    return found


def is_private_of_another(node: ast.Attribute) -> bool:
    own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return node.attr.startswith("_") and not node.attr.startswith("__") and not own


def test_no_other_private_name_is_used():
    found = private_names()
    assert set(found) - NOT_SPARKS == CLASSIC | CONNECT
    assert {file for name in CLASSIC for file in found[name]} == {"session.py", "jvm.py"}
    assert {file for name in CONNECT for file in found[name]} == {"connect_session.py"}


def test_each_is_in_the_decision():
    text = DECISION.read_text()
    assert all(name in text for name in CLASSIC | CONNECT)
