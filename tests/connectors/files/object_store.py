"""A file system like an object store on a host: files appear whole when they are closed, and renaming is copying."""

import io

import fsspec
from fsspec.spec import AbstractFileSystem

HOSTS: dict[str, dict[str, bytes]] = {}
"""By host: the files."""


class ObjectStore(AbstractFileSystem):
    protocol = "objects"
    cachable = False

    def __init__(self, host, **settings):
        super().__init__(**settings)
        self.files = HOSTS.setdefault(host, {})

    @classmethod
    def _strip_protocol(cls, path):
        """Paths have no host, as with SFTP or HDFS."""
        if path.startswith("objects://"):
            path = "/" + path.removeprefix("objects://").partition("/")[2]
        return path.rstrip("/") or "/"

    @staticmethod
    def _get_kwargs_from_urls(url):
        return {"host": url.removeprefix("objects://").partition("/")[0]}

    def ls(self, path, detail=True, **settings):
        path = self._strip_protocol(path)
        if path in self.files:
            return [self._entry(path)] if detail else [path]
        below = [name for name in self.files if name.startswith(f"{path.rstrip('/')}/")]
        if not below:
            raise FileNotFoundError(path)
        start = len(path.rstrip("/")) + 1
        entries = {name[:start] + name[start:].partition("/")[0] for name in below}
        return [self._entry(name) for name in sorted(entries)] if detail else sorted(entries)

    def _entry(self, path):
        if path in self.files:
            return {"name": path, "size": len(self.files[path]), "type": "file"}
        return {"name": path, "size": 0, "type": "directory"}

    def _open(self, path, mode="rb", **settings):
        if mode == "wb":
            return _Upload(self.files, path)
        if path not in self.files:
            raise FileNotFoundError(path)
        return io.BytesIO(self.files[path])

    def cp_file(self, path1, path2, **settings):
        self.files[path2] = self.files[path1]

    def _rm(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)
        del self.files[path]

    def makedirs(self, path, exist_ok=False):
        pass


class _Upload(io.BytesIO):
    def __init__(self, files, path):
        super().__init__()
        self._files, self._path = files, path

    def __del__(self):
        """Leave the file unwritten: lost slots are collected at any time, and dead processes write nothing."""

    def close(self):
        if not self.closed:
            self._files[self._path] = self.getvalue()
        super().close()


fsspec.register_implementation("objects", ObjectStore, clobber=True)
