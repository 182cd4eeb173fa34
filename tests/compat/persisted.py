"""Which of Penstock's names are in persisted bytes; those that ever were are in `persisted_names.txt`."""

from __future__ import annotations

import pickletools
from pathlib import Path

from penstock.engine.checkpoint.metadata import FILE, decode
from penstock.engine.state.snapshot_file import SnapshotFile

RECORDED = Path(__file__).with_name("persisted_names.txt")
"""Names that were written by some version. It only grows."""
_TEXT = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")


def recorded_names() -> set[str]:
    return set(RECORDED.read_text().split())


def names_in(pickled: bytes) -> set[str]:
    """The classes and functions of Penstock that a pickle refers to, as `module:name`. Nothing is imported."""
    found, texts, memo, last = set[str](), list[str | None](), list[str | None](), None
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "MEMOIZE":
            memo.append(last)
            continue
        last = argument if opcode.name in _TEXT else None
        if opcode.name in ("BINGET", "LONG_BINGET"):
            texts.append(memo[argument])
        elif last is not None:
            texts.append(last)
        elif opcode.name == "STACK_GLOBAL":
            found.add(f"{texts[-2]}:{texts[-1]}")
        elif opcode.name == "GLOBAL":
            found.add(argument.replace(" ", ":"))
    return {name for name in found if name.startswith("penstock.")}


def names_in_snapshot(folder: Path) -> set[str]:
    """The names in everything that a checkpoint or savepoint on a local disk holds."""
    metadata = decode((folder / FILE).read_bytes(), folder.as_uri())
    pickles = list(metadata.enumerators.values())
    for ref in (ref for slot in metadata.slots for ref in slot.files):
        with SnapshotFile(ref) as file:
            pickles.extend(page for name in file.sections for page in file.pages(name))
    return set[str]().union(*map(names_in, pickles))
