"""The metadata of a checkpoint or savepoint: it turns a set of files into a snapshot. Plain JSON after a checksum.

The first line names the format and its version and holds the checksum of the rest. Files are named relative to the
metadata, so that a folder can be moved as a whole.
"""

from __future__ import annotations

import json
import posixpath
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.state.snapshot_file import FileRef, Kind, Name, Restore, Shape, SlotSnapshot, checksum
from penstock.errors import CorruptSnapshot, UnknownFormat
from penstock.graph.plan import Plan

FILE = "_metadata"
FORMAT = "penstock-snapshot"
VERSION = 2
"""Since 2, classes of Penstock's are written under names that do not depend on modules; 1 is read as well."""
_KEEPING = ("source", "committing sink")
"""Kinds of operators that keep something beside declared state."""


@dataclass
class Metadata:
    """Everything about a snapshot except the state itself."""

    number: int
    timestamp: int
    job_id: str
    job_name: str
    shapes: dict[str, Shape]
    """By operator uid."""
    slots: list[SlotSnapshot]
    fingerprint: str = ""
    """The fingerprint of the plan that wrote it."""
    savepoint: bool = False
    drained: bool = False
    enumerators: dict[str, bytes] = field(default_factory=dict)
    """By source uid: the pickled position of the driver's part."""
    owner: int = 0
    """The number of the token with which it was published; 0 without ownership."""

    def files(self) -> set[str]:
        """URLs of every file that it needs."""
        return {file.url for slot in self.slots for file in slot.files if file.inline is None}

    def size(self) -> int:
        return sum(slot.size() for slot in self.slots)

    def restore(self, continued: bool) -> Restore:
        return Restore(self.number, self.shapes, self.slots, continued, self.drained)


def encode(metadata: Metadata, folder: str) -> bytes:
    """The metadata as bytes, for the `_metadata` file in a checkpoint's folder."""
    body = json.dumps(
        {
            "number": metadata.number,
            "timestamp": metadata.timestamp,
            "job_id": metadata.job_id,
            "job_name": metadata.job_name,
            "savepoint": metadata.savepoint,
            "drained": metadata.drained,
            "fingerprint": metadata.fingerprint,
            "owner": metadata.owner,
            "operators": {uid: shape._asdict() for uid, shape in metadata.shapes.items()},
            "enumerators": {uid: _text(position) for uid, position in metadata.enumerators.items()},
            "slots": [_slot_out(slot, folder) for slot in metadata.slots],
        }
    ).encode()
    return f"{_head(VERSION)} {_checksum(VERSION, body)}\n".encode() + body


def decode(data: bytes, folder: str) -> Metadata:
    """Metadata read from a folder, checked."""
    where = f"'{folder}/{FILE}'"
    head, _, body = data.partition(b"\n")
    words = head.decode("utf-8", "replace").split()
    if len(words) != 3 or words[0] != FORMAT or not re.fullmatch("[1-9][0-9]{0,8}", words[1]):
        raise CorruptSnapshot(f"{where} is no metadata of a Penstock checkpoint or savepoint")
    if int(words[1]) > VERSION:
        raise UnknownFormat(
            f"{where} has format version {words[1]}; this version of Penstock reads up to {VERSION}: upgrade to read it"
        )
    version = int(words[1])
    if head != f"{_head(version)} {_checksum(version, body)}".encode():
        raise CorruptSnapshot(f"{where} was torn or changed: it does not match its checksum")
    return _decode_body(json.loads(body), folder)


def _head(version: int) -> str:
    return f"{FORMAT} {version}"


def _checksum(version: int, body: bytes) -> str:
    """The checksum of the whole document without its own field."""
    return checksum(_head(version).encode() + body)


def _decode_body(body: dict[str, Any], folder: str) -> Metadata:
    return Metadata(
        number=body["number"],
        timestamp=body["timestamp"],
        job_id=body["job_id"],
        job_name=body["job_name"],
        savepoint=body["savepoint"],
        drained=body["drained"],
        fingerprint=body["fingerprint"],
        owner=body.get("owner", 0),
        shapes={uid: Shape(**shape) for uid, shape in body["operators"].items()},
        enumerators={uid: b64decode(text) for uid, text in body["enumerators"].items()},
        slots=[_slot_in(slot, folder) for slot in body["slots"]],
    )


def _slot_out(slot: SlotSnapshot, folder: str) -> dict[str, Any]:
    return {
        "files": [
            {
                "path": posixpath.relpath(file.url, folder),
                "size": file.size,
                "index_at": file.index_at,
                "checksum": file.checksum,
                **({"inline": _text(file.inline)} if file.inline is not None else {}),
            }
            for file in slot.files
        ],
        "states": [[n.uid, n.kind.value, n.name, n.scope, schema] for n, schema in slot.schemas.items()],
    }


def _slot_in(slot: dict[str, Any], folder: str) -> SlotSnapshot:
    files = [
        FileRef(
            url=_join_url(folder, file["path"]),
            size=file["size"],
            index_at=file["index_at"],
            checksum=file["checksum"],
            inline=b64decode(file["inline"]) if "inline" in file else None,
        )
        for file in slot["files"]
    ]
    schemas = {Name(uid, Kind(kind), name, scope): schema for uid, kind, name, scope, schema in slot["states"]}
    return SlotSnapshot(files, schemas)


def _join_url(folder: str, path: str) -> str:
    """A path relative to a URL. Only the part after the protocol is a path."""
    protocol, separator, root = folder.rpartition("://")
    return f"{protocol}{separator}{posixpath.normpath(posixpath.join(root, path))}"


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def shapes_of(plan: Plan) -> dict[str, Shape]:
    """How the operators of a plan are spread."""
    return {
        node.uid: Shape(node.parallelism, node.max_parallelism, node.name, keeps=node.kind in _KEEPING)
        for node in plan.nodes
    }


def fingerprint(plan: Plan) -> str:
    """Equal for plans whose slots can take over from each other exactly."""
    nodes = [[node.uid, node.parallelism, node.max_parallelism] for node in plan.nodes]
    edges = [
        [edge.source, edge.target, edge.input_index, edge.tag, type(edge.partitioning).__name__] for edge in plan.edges
    ]
    return checksum(json.dumps([nodes, edges]).encode())
