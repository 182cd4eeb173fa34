"""HDFS for `penstock.base.storage`: over its own protocol where `hdfs-native` is installed, else over HTTP.

Spark's JVM has a client too, but only the driver reaches a JVM. Slots read and write files as well.
"""

from __future__ import annotations

from fsspec.spec import AbstractFileSystem

from penstock.base.hdfs.hadoop_configuration import HadoopConfiguration

NATIVE = ("hdfs", "viewfs")
HTTP = ("webhdfs", "swebhdfs")
MISSING = (
    "HDFS is reached with the package hdfs-native, or over HTTP with the package requests, and neither is installed. "
    "Install one on the driver and on all executors: pip install 'penstock[hdfs]'"
)


def is_hdfs(url: str) -> bool:
    """Return True if a URL belongs to HDFS."""
    return url.partition("://")[0] in NATIVE + HTTP


def file_system(url: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a URL, and the path on it."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return _client(scheme, authority), slash + path or "/"


def _client(scheme: str, authority: str) -> AbstractFileSystem:
    configuration = HadoopConfiguration()
    if scheme in NATIVE:
        try:
            from penstock.base.hdfs.native import NativeHdfs
        except ImportError:
            # A mount table that joins several file systems is known only to the native client.
            if scheme == "viewfs":
                raise ImportError("viewfs:// needs hdfs-native: pip install 'penstock[hdfs]'") from None
        else:
            return NativeHdfs(scheme, authority, configuration)
    try:
        from penstock.base.hdfs.http import HttpHdfs
    except ImportError:
        raise ImportError(MISSING) from None
    return HttpHdfs(configuration.addresses(scheme, authority), configuration.asks_kerberos)
