"""File systems that fail where a test says so."""

import os
import shutil
from io import BytesIO

import fsspec
import pytest
from fsspec.implementations.local import LocalFileOpener, LocalFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from penstock.base import storage


class Faults:
    """Counts the calls to a file system, and lets a test make some of them fail before or after they take effect."""

    def __init__(self):
        self.calls = []
        self.before = lambda number, call: None
        self.after = lambda number, call: None

    def call(self, name, action):
        number = len(self.calls)
        self.calls.append(name)
        self.before(number, name)
        result = action()
        self.after(number, name)
        return result


class _Flat(AbstractFileSystem):
    """Paths to contents, in memory. Folders are what the paths imply, as in an object store."""

    cachable = False
    files: dict[str, bytes]
    faults: Faults
    url: str

    # --- for the test ---
    @classmethod
    def content(cls, name):
        return cls.files.get(f"place/folder/{name}")

    @classmethod
    def put(cls, name, content):
        cls.files[f"place/folder/{name}"] = content

    @classmethod
    def clear(cls):
        cls.files.clear()

    # --- for fsspec ---

    def makedirs(self, path, exist_ok=False):
        self.faults.call("makedirs", lambda: None)

    def info(self, path, **_):
        path = self._strip_protocol(path)
        if path in self.files:
            return {"name": path, "size": len(self.files[path]), "type": "file"}
        if any(name.startswith(f"{path}/") for name in self.files):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def exists(self, path, **_):
        return self.faults.call("exists", lambda: super(_Flat, self).exists(path))

    def ls(self, path, detail=True, **_):
        path = self._strip_protocol(path)
        below = {f"{path}/{name[len(path) + 1 :].split('/')[0]}" for name in self.files if name.startswith(f"{path}/")}
        found = [self.info(name) for name in sorted(below)]
        return found if detail else [entry["name"] for entry in found]

    def find(self, path, **_):
        path = self._strip_protocol(path)
        return self.faults.call("find", lambda: {n: self.info(n) for n in self.files if n.startswith(f"{path}/")})

    def cat_file(self, path, start=None, end=None, **_):
        return self.faults.call("cat_file", lambda: self._content(path)[start:end])

    def rm_file(self, path):
        self.faults.call("rm_file", lambda: self._remove(path))

    def rmdir(self, path):
        self.faults.call("rmdir", lambda: None)

    def _remove(self, path):
        self._content(path)
        del self.files[self._strip_protocol(path)]

    def _content(self, path):
        try:
            return self.files[self._strip_protocol(path)]
        except KeyError:
            raise FileNotFoundError(path) from None


class _Growing(BytesIO):
    """A file that others see grow while it is written."""

    def __init__(self, fs, path):
        super().__init__()
        self._fs, self._path = fs, path
        fs.files[path] = b""

    def write(self, data):
        half = len(data) // 2
        self._fs.faults.call("write", lambda: self._append(data[:half]))
        self._fs.faults.call("write", lambda: self._append(data[half:]))
        return len(data)

    def _append(self, data):
        self._fs.files[self._path] += bytes(data)

    def close(self):
        if not self.closed:
            super().close()
            self._fs.faults.call("close", lambda: None)


class Shelf(_Flat):
    """Like HDFS or SFTP: a file is there while it grows, and a rename is atomic."""

    protocol = "shelf"

    def _open(self, path, mode="rb", **_):
        if mode == "rb":
            return BytesIO(self.faults.call("open", lambda: self._content(path)))
        return self.faults.call("open", lambda: _Growing(self, path))

    def mv(self, path1, path2, **_):
        self.faults.call("mv", lambda: self._rename(path1, path2))

    def _rename(self, path1, path2):
        self.files[path2] = self._content(path1)
        del self.files[path1]


class _Upload(AbstractBufferedFile):
    """An upload in parts, as fsspec's object stores do it: the file appears when the last part is in."""

    def _initiate_upload(self):
        self.parts = self.fs.faults.call("initiate", list)

    def _upload_chunk(self, final=False):
        self.parts.append(self.fs.faults.call("upload", self.buffer.getvalue))
        if final:
            self.fs.faults.call("finish", self._finish)
        return True

    def _finish(self):
        """An exclusive upload looks once more at the very end, as a conditional put does."""
        if self.mode == "xb" and self.path in self.fs.files:
            raise FileExistsError(self.path)
        self.fs.files[self.path] = b"".join(self.parts)

    def _fetch_range(self, start, end):
        return self.fs.cat_file(self.path, start, end)


class Bucket(_Flat):
    """Like S3: a file appears whole, when its upload ends."""

    protocol = ("bucket", "s3")

    def _open(self, path, mode="rb", **_):
        if mode == "rb":
            return BytesIO(self.faults.call("open", lambda: self._content(path)))
        self.faults.call("open", lambda: None)
        return _Upload(self, path, mode, block_size=8)

    def pipe_file(self, path, value, mode="overwrite", **_):
        """Create exclusively with mode 'create', as s3fs, gcsfs and adlfs do."""
        with self.open(path, "xb" if mode == "create" else "wb") as file:
            file.write(value)


class Disk:
    """The local disk, with every call on the way to a new file counted."""

    def __init__(self, folder, monkeypatch):
        self.url, self.faults, self._folder = f"file://{folder}", Faults(), folder
        for owner, name in [(os, "link"), (os, "unlink"), (os, "fsync"), (os, "open")]:
            self._count(owner, name, monkeypatch)
        for owner, name in [(LocalFileSystem, "makedirs"), (LocalFileSystem, "_open"), (LocalFileOpener, "write")]:
            self._count(owner, name, monkeypatch)

    def _count(self, owner, name, monkeypatch):
        original, faults = getattr(owner, name), self.faults
        monkeypatch.setattr(owner, name, lambda *a, **k: faults.call(name, lambda: original(*a, **k)))

    def content(self, name):
        path = self._folder / name
        return path.read_bytes() if path.exists() else None

    def put(self, name, content):
        self._folder.mkdir(exist_ok=True)
        (self._folder / name).write_bytes(content)

    def clear(self):
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(params=["disk", "renaming", "whole puts"])
def faulty(request):
    """A file system without files and without faults so far."""
    if request.param == "disk":
        return request.getfixturevalue("disk")
    return fresh(Shelf if request.param == "renaming" else Bucket)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Retries come at once."""
    monkeypatch.setattr(storage, "_WAITS", (0.0,) * storage.ATTEMPTS)


def fresh(kind):
    kind.files, kind.faults = {}, Faults()
    name = kind.protocol if isinstance(kind.protocol, str) else kind.protocol[0]
    kind.url = f"{name}://place/folder"
    fsspec.register_implementation(name, kind, clobber=True)
    return kind


@pytest.fixture
def disk(monkeypatch, tmp_path):
    return Disk(tmp_path / "folder", monkeypatch)


@pytest.fixture
def bucket():
    return fresh(Bucket)


@pytest.fixture
def shelf():
    return fresh(Shelf)


@pytest.fixture
def memory_url():
    """A folder of fsspec's own memory file system, empty."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield "memory://folder"
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


@pytest.fixture(params=["file", "memory"])
def place(request, tmp_path, memory_url):
    """URLs of a folder that does not exist yet."""
    return f"file://{tmp_path}/folder" if request.param == "file" else memory_url
