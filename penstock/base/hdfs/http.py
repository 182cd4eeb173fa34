"""HDFS over HTTP: fsspec's WebHDFS with several name nodes, and with refusals as errors."""

from __future__ import annotations

import errno
import getpass
import os
from functools import partial
from typing import Any

import requests
from fsspec.implementations.webhdfs import WebHDFile, WebHDFS

PATIENCE = (10, 120)
"""Time limits for opening a connection and between two pieces of an answer, in seconds."""


class HttpHdfs(WebHDFS):
    """One cluster, by the HTTP addresses of its name nodes."""

    protocol = ("hdfs", "webhdfs", "swebhdfs")
    root_marker = "/"

    def __init__(self, addresses: list[str], kerberos: bool) -> None:
        if self._cached:
            return
        scheme, _, address = addresses[0].partition("://")
        host, _, port = address.partition(":")
        user = None if kerberos else os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        super().__init__(host, port, kerberos=kerberos, user=user, use_https=scheme == "https")
        self._addresses = [f"{address}/webhdfs/v1" for address in addresses]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        _, separator, rest = path.partition("://")
        return f"/{rest.partition('/')[2]}" if separator else path

    def _connect(self) -> None:
        super()._connect()
        self.session.request = partial(self.session.request, timeout=PATIENCE)

    def _call(self, op: str, *args: Any, **kwargs: Any) -> requests.Response:
        """Ask the name node that answered last, then the others."""
        for position, address in enumerate(self._in_turn()):
            self.url = address
            try:
                return super()._call(op, *args, **kwargs)
            except requests.ConnectionError:
                if position + 1 == len(self._addresses):
                    raise
            except RuntimeError as error:
                if "standby" not in str(error) or position + 1 == len(self._addresses):
                    raise _as_os_error(error) from None
            except ValueError as error:
                raise OSError(errno.EINVAL, str(error).partition("\n")[0]) from None
        raise AssertionError("there is a name node")

    def _in_turn(self) -> list[str]:
        return [self.url, *(address for address in self._addresses if address != self.url)]

    def mv(self, path1: str, path2: str, overwrite: bool = False, **_: Any) -> None:
        """Rename. The name node refuses another file's name unless it may overwrite that file."""
        options = "OVERWRITE" if overwrite else "NONE"
        self._call("RENAME", method="put", path=path1, destination=path2, renameoptions=options)

    def rm(self, path: str, recursive: bool = False, **_: Any) -> None:
        done = self._call("DELETE", method="delete", path=path, recursive="true" if recursive else "false")
        if not done.json()["boolean"]:
            raise FileNotFoundError(f"'{path}' does not exist")

    def rmdir(self, path: str) -> None:
        self.rm(path)

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **kwargs: Any) -> _HttpFile:
        size = block_size or self.blocksize
        return _HttpFile(self, path, mode=mode, block_size=size, tempdir=self.tempdir, autocommit=True)


class _HttpFile(WebHDFile):
    """A file that does not mistake an error message of a data node for content."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        length = min(self.size, end) - max(start, 0)
        if length <= 0:
            return b""
        answer = self.fs._call("OPEN", path=self.path, offset=max(start, 0), length=length)
        return bytes(answer.content)


def _as_os_error(error: RuntimeError) -> OSError:
    text = str(error).partition("\n")[0]
    return FileExistsError(text) if "already exists" in text else OSError(text)
