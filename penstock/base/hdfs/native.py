"""HDFS over its own protocol, with the client hdfs-native: name services, Kerberos and tokens as in Hadoop's client."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from fsspec.spec import AbstractFileSystem
from hdfs_native import Client, WriteOptions

from penstock.base.hdfs.hadoop_configuration import HadoopConfiguration
from penstock.base.hdfs.native_calls import NativeCalls
from penstock.base.hdfs.token_files import use_name_node

READ_AHEAD = 1 << 20
WRITE_TOGETHER = 1 << 20
"""Bytes that are gathered before they are handed to the client."""
PATIENCE = {"dfs.client.failover.max.attempts": "10", "dfs.client.failover.sleep.max.millis": "3000"}
"""Settings that limit the client's retries to about 20 s. Hadoop's own settings allow three minutes."""
_REMOTE = re.compile(r'RPCError\("[\w.$]*?([\w$]+)", "(.*)', re.DOTALL)
_GSSAPI = re.compile(r'GSSAPIError\(.*?, \d+, "(?P<reason>.*)"\)', re.DOTALL)
_NO_CREDENTIALS = "No credentials were supplied, or the credentials were unavailable or inaccessible: "
_LOGIN = (
    "Set security.kerberos.login.keytab and security.kerberos.login.principal, or run kinit where this process runs"
)
_REALM = "The krb5.conf that security.kerberos.krb5-conf.path names, else /etc/krb5.conf, must name the realm's KDC"
_CODES = {
    "AccessControlException": errno.EACCES,
    "InvalidPathException": errno.EINVAL,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "DSQuotaExceededException": errno.EDQUOT,
    "NSQuotaExceededException": errno.EDQUOT,
}
"""Errors of a name node that another attempt will not heal."""


_calls = NativeCalls()
_clients: list[Client] = []
"""Every client that was created, so that a forked process does not destroy one.

fsspec forgets its file systems after a fork, and the destructor of a client waits for threads that only the parent has.
"""


class NativeHdfs(AbstractFileSystem):
    """One cluster. Errors are OSError with the name node's message in one line."""

    protocol = ("hdfs", "viewfs")
    root_marker = "/"

    def __init__(self, scheme: str, authority: str, configuration: HadoopConfiguration) -> None:
        if self._cached:
            return
        super().__init__()
        if scheme == "hdfs":
            authority = configuration.with_port(authority)
        if ":" in authority:
            use_name_node(authority)
        self._authority = f"{scheme}://{authority}"
        with _calling():
            self._client = Client(
                self._authority if authority else None,
                configuration.defaults(PATIENCE),
                config_dir=configuration.folder,
            )
        _clients.append(self._client)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        _, separator, rest = path.partition("://")
        return f"/{rest.partition('/')[2]}" if separator else path

    def unstrip_protocol(self, name: str) -> str:
        return self._authority + self._strip_protocol(name)

    # --- finding ---
    def info(self, path: str, **_: Any) -> dict[str, Any]:
        with _calling():
            return _file_info(self._client.get_file_info(self._strip_protocol(path)))

    def exists(self, path: str, **_: Any) -> bool:
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        with _calling():
            listed = [_file_info(status) for status in self._client.list_status(self._strip_protocol(path), False)]
        return listed if detail else [status["name"] for status in listed]

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self.info(path)["mtime"] / 1000, UTC)

    # --- changing ---
    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        with _calling():
            self._client.mkdirs(self._strip_protocol(path), 0o755, create_parents)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        if not exist_ok and self.exists(path):
            raise FileExistsError(f"'{path}' exists already")
        self.mkdir(path)

    def mv(self, path1: str, path2: str, overwrite: bool = False, **_: Any) -> None:
        """Rename. The name node refuses another file's name unless it may overwrite that file."""
        with _calling():
            self._client.rename(self._strip_protocol(path1), self._strip_protocol(path2), overwrite)

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        with _calling():
            if not self._client.delete(self._strip_protocol(path), recursive):
                raise FileNotFoundError(f"'{path}' does not exist")

    def rm_file(self, path: str) -> None:
        self.rm(path)

    def rmdir(self, path: str) -> None:
        self.rm(path)

    # --- content ---
    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Any = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **_: Any,
    ) -> Any:
        with _calling():
            if mode == "rb":
                return io.BufferedReader(_Reader(self._client.read(path)), READ_AHEAD)
            options = WriteOptions()
            options.overwrite = mode != "xb"
            return _Writer(self._client.create(path, options))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        with _calling():
            file = self._client.read(self._strip_protocol(path))
            first, last = slice(start, end).indices(len(file))[:2]
            return bytes(file.read_range(first, last - first)) if last > first else b""

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        with self._open(path1) as source, self._open(path2, "wb") as target:
            while piece := source.read(WRITE_TOGETHER):
                target.write(piece)


class _Reader(io.RawIOBase):
    """Lets `io` seek and read in a file of the client."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        with _calling():
            data = self._file.read(min(len(buffer), len(self._file) - self.tell()))
        buffer[: len(data)] = data
        return len(data)


class _Writer(io.BufferedWriter):
    """A new file. `flush` hands on what was gathered, `sync` makes it durable on the data nodes."""

    def __init__(self, file: Any) -> None:
        self._sink = _Sink(file)
        super().__init__(self._sink, WRITE_TOGETHER)

    def sync(self) -> None:
        self.flush()
        self._sink.sync()


class _Sink(io.RawIOBase):
    def __init__(self, file: Any) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with _calling():
            return int(self._file.write(bytes(data)))

    def sync(self) -> None:
        with _calling():
            self._file.hsync()

    def close(self) -> None:
        if not self.closed:
            super().close()
            with _calling():
                self._file.close()


@contextmanager
def _calling() -> Iterator[None]:
    """Call the client. Raise its errors as OSError of the same kind, without the name node's stack of calls."""
    try:
        with _calls:
            yield
    except OSError as error:
        if _GSSAPI.match(str(error)):
            raise _as_os_error(str(error)) from None
        kind: Callable[[str], OSError] = type(error)
        raise kind(_first_line(str(error)) or kind.__name__) from None
    except RuntimeError as error:
        raise _as_os_error(str(error)) from None


def _as_os_error(said: str) -> OSError:
    refused = _GSSAPI.match(said)
    if refused is not None:
        return _kerberos_error(refused["reason"].replace('\\"', '"').removeprefix(_NO_CREDENTIALS))
    remote = _REMOTE.match(said)
    text = _first_line(remote[2] if remote else said)
    kind = remote[1] if remote else ""
    return OSError(_CODES[kind], text) if kind in _CODES else OSError(f"{kind}: {text}" if kind else text)


def _kerberos_error(reason: str) -> OSError:
    """Return the error for a login that failed: an OSError if the KDC was not reached, else a PermissionError."""
    text = f"the login to Kerberos failed: {reason}"
    return OSError(f"{text}. {_REALM}") if "KDC" in reason else PermissionError(f"{text}. {_LOGIN}")


def _first_line(text: str) -> str:
    return text.partition("\n")[0].partition("\\n")[0]


def _file_info(status: Any) -> dict[str, Any]:
    return {
        "name": status.path,
        "size": status.length,
        "type": "directory" if status.isdir else "file",
        "mtime": status.modification_time,
    }
