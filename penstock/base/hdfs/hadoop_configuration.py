"""The configuration of Hadoop's clients: its folder, and the name nodes in it."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

from penstock.errors import ConfigurationError

ON_YARN = "__spark_conf__/__hadoop_conf__"
"""Folder in a container of YARN that holds the driver's configuration."""
RPC_PORT, HTTP_PORT, HTTPS_PORT = 8020, 9870, 9871
"""Default ports of name nodes of Hadoop 3."""


class HadoopConfiguration:
    """The settings in `core-site.xml` and `hdfs-site.xml`. It is empty if there is no configuration."""

    def __init__(self) -> None:
        self.folder = _folder()
        self._settings: dict[str, str] = {}
        for name in ("core-site.xml", "hdfs-site.xml"):
            file = Path(self.folder or "", name)
            if self.folder is not None and file.exists():
                self._settings.update(_properties(file))

    def __repr__(self) -> str:
        # fsspec keeps one client for all arguments that look the same.
        return f"HadoopConfiguration({self.folder!r}, {self._settings!r})"

    @property
    def asks_kerberos(self) -> bool:
        """Return True if the configuration requires Kerberos."""
        return self._settings.get("hadoop.security.authentication", "simple").lower() == "kerberos"

    def defaults(self, settings: dict[str, str]) -> dict[str, str]:
        """Return the given settings that the configuration does not set."""
        return {key: value for key, value in settings.items() if key not in self._settings}

    def with_port(self, authority: str) -> str:
        """Return the host and port of a name node. A name service, or an empty name, is returned unchanged."""
        default = self._settings.get("fs.defaultFS", "")
        if not authority and default.startswith("hdfs://"):
            authority = default.removeprefix("hdfs://").strip("/")
        is_host = authority and ":" not in authority and f"dfs.ha.namenodes.{authority}" not in self._settings
        return f"{authority}:{RPC_PORT}" if is_host else authority

    def addresses(self, scheme: str, authority: str) -> list[str]:
        """Return the HTTP addresses of the name nodes of a URL. A name service has several name nodes."""
        if not authority:
            authority = self._default_authority(scheme)
        names = [name.strip() for name in self._settings.get(f"dfs.ha.namenodes.{authority}", "").split(",")]
        https = scheme == "swebhdfs" or self._settings.get("dfs.http.policy") == "HTTPS_ONLY"
        if names != [""]:
            return [self._http_of(f".{authority}.{name}", authority, https) for name in names]
        if scheme in ("webhdfs", "swebhdfs"):
            return [_url(https, authority, "")]
        return [self._http_of("", authority, https)]

    def _default_authority(self, scheme: str) -> str:
        default = self._settings.get("fs.defaultFS", "")
        kind, _, authority = default.partition("://")
        if kind not in ("hdfs", scheme) or not authority:
            raise ConfigurationError(
                f"'{scheme}:///' has no name node, and the Hadoop configuration names none: fs.defaultFS in "
                f"core-site.xml is {default!r}, in the folder {self.folder!r}. Write {scheme}://host:port/…, or set "
                "HADOOP_CONF_DIR to the folder with the cluster's configuration"
            )
        return authority.strip("/")

    def _http_of(self, suffix: str, authority: str, https: bool) -> str:
        """Return the HTTP address of a name node that RPC reaches as `authority`."""
        key = "dfs.namenode.https-address" if https else "dfs.namenode.http-address"
        return _url(https, self._settings.get(key + suffix, ""), authority)


def _url(https: bool, address: str, authority: str) -> str:
    host, _, port = address.partition(":")
    if host in ("", "0.0.0.0"):  # a name node can listen on all addresses; this is not its own address
        host = authority.partition(":")[0]
    return f"{'https' if https else 'http'}://{host}:{port or (HTTPS_PORT if https else HTTP_PORT)}"


def _folder() -> str | None:
    """Return the folder with the configuration, where Hadoop's own clients would look."""
    home = os.environ.get("HADOOP_HOME")
    candidates = [os.environ.get("HADOOP_CONF_DIR"), ON_YARN, home and os.path.join(home, "etc", "hadoop")]
    return next((os.path.abspath(path) for path in candidates if path and os.path.isdir(path)), None)


def _properties(file: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(file).getroot()
    except ElementTree.ParseError as error:
        raise ConfigurationError(f"'{file}' of the Hadoop configuration is not valid XML: {error}") from None
    return {
        (prop.findtext("name") or "").strip(): (prop.findtext("value") or "").strip() for prop in root.iter("property")
    }
