"""The metadata of a checkpoint or savepoint, which turns a set of files into a snapshot. It is JSON with a checksum.

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
"""The format's version. Since 2, names of Penstock's classes do not depend on modules; 1 is read as well."""
_KEEPING = ("source", "committing sink")
"""Kinds of operators that keep more than declared state."""


@dataclass
class Metadata:
    """Everything about a snapshot except the state itself."""

    number: int
    timestamp: int
    job_id: str
    job_name: str
    shapes: dict[str, Shape]
    """Shapes of operators by uid."""
    slots: list[SlotSnapshot]
    fingerprint: str = ""
    """The fingerprint of the plan that wrote it."""
    savepoint: bool = False
    drained: bool = False
    enumerators: dict[str, bytes] = field(default_factory=dict)
    """Pickled positions of enumerators by source uid."""
    owner: int = 0
    """The number of the token with which it was published; 0 without ownership."""

    def files(self) -> set[str]:
        """Return the URLs of all files that the snapshot needs."""
        return {file.url for slot in self.slots for file in slot.files if file.inline is None}

    def size(self) -> int:
        """Return the size of the snapshot's state in bytes."""
        return sum(slot.size() for slot in self.slots)

    def restore(self, continued: bool) -> Restore:
        """Return the instructions for slots to start from this snapshot."""
        return Restore(self.number, self.shapes, self.slots, continued, self.drained)


def encode(metadata: Metadata, folder: str) -> bytes:
    """Return the metadata as bytes, for the `_metadata` file in a checkpoint's folder."""
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
    """Return the metadata that was read from a folder, after checking it."""
    where = f"'{folder}/{FILE}'"
    head, _, body = data.partition(b"\n")
    words = head.decode("utf-8", "replace").split()
    if len(words) != 3 or words[0] != FORMAT or not re.fullmatch("[1-9][0-9]{0,8}", words[1]):
        raise CorruptSnapshot(f"{where} is not the metadata of a Penstock checkpoint or savepoint")
    if int(words[1]) > VERSION:
        raise UnknownFormat(
            f"{where} has format version {words[1]}; this version of Penstock reads up to {VERSION}: upgrade to read it"
        )
    version = int(words[1])
    if head != f"{_head(version)} {_checksum(version, body)}".encode():
        raise CorruptSnapshot(f"{where} is truncated or changed: it does not match its checksum")
    return _decode_body(json.loads(body), folder)


def _head(version: int) -> str:
    return f"{FORMAT} {version}"


def _checksum(version: int, body: bytes) -> str:
    """Return the checksum of the whole document without its own field."""
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
    """Return the URL of a path relative to a URL. Only the part after the protocol is a path."""
    protocol, separator, root = folder.rpartition("://")
    return f"{protocol}{separator}{posixpath.normpath(posixpath.join(root, path))}"


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def shapes_of(plan: Plan) -> dict[str, Shape]:
    """Return the shapes of a plan's operators by uid."""
    return {
        node.uid: Shape(node.parallelism, node.max_parallelism, node.name, keeps=node.kind in _KEEPING)
        for node in plan.nodes
    }


def fingerprint(plan: Plan) -> str:
    """Return a text that is equal for two plans if slots of one can exactly replace slots of the other."""
    nodes = [[node.uid, node.parallelism, node.max_parallelism] for node in plan.nodes]
    edges = [
        [edge.source, edge.target, edge.input_index, edge.tag, type(edge.partitioning).__name__] for edge in plan.edges
    ]
    return checksum(json.dumps([nodes, edges]).encode())
