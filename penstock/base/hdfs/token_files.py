"""Hadoop's delegation tokens in this process, in a file that its clients of HDFS read for every new connection.

A token names its name node by address and port, and hdfs-native looks for the host and port of the URL. So the file of
this process has a second token for each host. It lies beside the file of YARN's container, and goes with it.
Where the given file is on a read-only volume, as on Kubernetes, it lies in a temporary folder.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
"""Variable that names the file. Clients of HDFS prefer its tokens to a ticket."""
_MAGIC = b"HDTS\x00"
"""First bytes of a file in the older of Hadoop's two formats, which Hadoop writes by default."""


@dataclass(frozen=True)
class Token:
    """One entry of a file with tokens."""

    alias: bytes
    identifier: bytes
    password: bytes
    kind: bytes
    service: bytes
    """Service that the token is for: `address:port` of a name node, or `ha-hdfs:` and a name service."""


class _Held:
    """The state of this process."""

    tokens: dict[tuple[bytes, bytes], Token] = {}
    """Every token, by its kind and service."""
    name_nodes: set[str] = set()
    """Host and port of every name node of which this process has a client."""
    file: Path | None = None
    lock = threading.RLock()


def use_tokens(data: bytes) -> None:
    """Replace the tokens of this process by the newer ones in `data`. Open connections are not affected."""
    with _Held.lock:
        _read_own()
        _Held.tokens.update(_by_service(parse_tokens(data)))
        _write()


def use_name_node(authority: str) -> None:
    """Make the tokens of this process, if there are any, available for a name node, given as `host:port`."""
    with _Held.lock:
        _Held.name_nodes.add(authority.lower())
        _read_own()
        if _with_hosts():
            _write()


def forget_tokens() -> None:
    """Make this process use no tokens, because it has a keytab, which does not expire."""
    os.environ.pop(VARIABLE, None)
    _Held.tokens = {}


def _read_own() -> None:
    """Read the file that this process was started with, or that the program has set since."""
    path = os.environ.get(VARIABLE)
    if path is not None and path != str(_Held.file):
        with suppress(OSError, ValueError, IndexError):
            _Held.tokens = _by_service(parse_tokens(Path(path).read_bytes()))


def _write() -> None:
    tokens = [*_Held.tokens.values(), *_with_hosts()]
    file = _Held.file
    if file is None:
        file = _folder() / f"penstock_tokens.{os.getpid()}"
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    new.touch(0o600)
    new.write_bytes(format_tokens(tokens))
    new.replace(file)
    _Held.file = file
    if os.environ.get(VARIABLE) != str(file):  # another thread may read the environment
        os.environ[VARIABLE] = str(file)


def _folder() -> Path:
    """Return the folder for this process's file: that of the given file, or a temporary one if it is not writable."""
    given = os.environ.get(VARIABLE)
    folder = Path(given).absolute().parent if given else None
    if folder is not None and os.access(folder, os.W_OK):
        return folder
    return Path(tempfile.mkdtemp(prefix="penstock-tokens-"))


def _with_hosts() -> list[Token]:
    """Return a copy of the token of each name node for the host in its URL."""
    copies = []
    for name_node in sorted(_Held.name_nodes):
        host, _, port = name_node.rpartition(":")
        with suppress(OSError):
            address = f"{socket.gethostbyname(host)}:{port}".encode()
            own = name_node.encode()
            copies += [
                replace(token, alias=own, service=own)
                for (kind, service), token in _Held.tokens.items()
                if service == address and (kind, own) not in _Held.tokens
            ]
    return copies


def _by_service(tokens: list[Token]) -> dict[tuple[bytes, bytes], Token]:
    return {(token.kind, token.service): token for token in tokens}


# --- the format ---
def parse_tokens(data: bytes) -> list[Token]:
    """Parse a file with tokens. Raise ValueError for another format, and IndexError for a file that is cut off."""
    if not data.startswith(_MAGIC):
        raise ValueError("the file does not hold delegation tokens in the format that Hadoop writes by default")
    reader = _Reader(data, len(_MAGIC))
    return [Token(*(reader.text() for _ in range(5))) for _ in range(reader.number())]


def format_tokens(tokens: list[Token]) -> bytes:
    """Return a file with these tokens and no secret keys."""
    parts = [_MAGIC, _number(len(tokens))]
    for token in tokens:
        for text in (token.alias, token.identifier, token.password, token.kind, token.service):
            parts += [_number(len(text)), text]
    return b"".join([*parts, _number(0)])


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def number(self) -> int:
        """Read a length or a count: one byte, or a byte that tells how many bytes follow."""
        first = self._take(1)[0]
        if first <= 127:
            return first
        return int.from_bytes(self._take(144 - first), "big")

    def text(self) -> bytes:
        return self._take(self.number())

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise IndexError("the file of delegation tokens is truncated")
        taken, self._at = self._data[self._at : end], end
        return taken


def _number(value: int) -> bytes:
    if value <= 127:
        return bytes([value])
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([144 - len(digits)]) + digits
