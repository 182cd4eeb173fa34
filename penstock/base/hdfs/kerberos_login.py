"""Logs this process in to Kerberos with a keytab, for the clients of HDFS that are not in a JVM.

MIT's library does the work: it logs in with the keytab that a variable names, whenever there is no valid ticket.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.base.hdfs.token_files import forget_tokens
from penstock.errors import ConfigurationError

KEYTAB, PRINCIPAL = "spark.kerberos.keytab", "spark.kerberos.principal"
FLINK = {KEYTAB: "security.kerberos.login.keytab", PRINCIPAL: "security.kerberos.login.principal"}
_CLIENT_KEYTAB, _TICKETS = "KRB5_CLIENT_KTNAME", "KRB5CCNAME"
_LIBRARY = "libgssapi_krb5.so.2"
_VERSION = b"\x05\x02"
_logins: dict[tuple[Path, str], bytes] = {}
"""The keytab and principal of this process's login, with the content of the keytab."""
_LENGTH = struct.Struct(">i")
_SHORT = struct.Struct(">H")


def log_in(settings: Mapping[str, str]) -> None:
    """Log in with the keytab and principal among settings of Spark, under Spark's or Flink's names, if there are any.

    Raise ConfigurationError if one of them is missing, or if the keytab has no key of the principal.
    """
    keytab, principal = (settings.get(name) or settings.get(FLINK[name]) for name in (KEYTAB, PRINCIPAL))
    if keytab is None and principal is None:
        return
    if keytab is None or principal is None:
        there, missing = (PRINCIPAL, KEYTAB) if keytab is None else (KEYTAB, PRINCIPAL)
        raise ConfigurationError(
            f"{FLINK[there]} is set to '{principal or keytab}', and {FLINK[missing]} is not set. A login needs both"
        )
    _log_in(Path(keytab.removeprefix("local:").removeprefix("file://")).absolute(), principal)


def _log_in(path: Path, principal: str) -> None:
    names = _principals(path)
    if principal not in names.values():
        known = ", ".join(sorted(f"'{name}'" for name in set(names.values()))) or "none"
        raise ConfigurationError(
            f"the keytab '{path}' has no key for '{principal}'; it has keys for these principals: {known}. Correct "
            f"{_either(PRINCIPAL)}, or name a keytab with a key of this principal in {_either(KEYTAB)}"
        )
    if _logins.get((path, principal)) != b"".join(names):
        _logins.clear()
        _use(path, principal, names)
        _logins[path, principal] = b"".join(names)


def _use(path: Path, principal: str, names: dict[bytes, str]) -> None:
    """Make Kerberos log in as `principal`. The library uses the first principal of a keytab."""
    os.environ[_CLIENT_KEYTAB] = f"FILE:{path}"
    folder = tempfile.mkdtemp(prefix="penstock-kerberos-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if next(iter(names.values())) != principal:
        own = Path(folder, "keytab")
        own.touch(0o600)
        own.write_bytes(_VERSION + b"".join(entry for entry, name in names.items() if name == principal))
        os.environ[_CLIENT_KEYTAB] = f"FILE:{own}"
    # The user's own tickets may be those of another principal.
    os.environ[_TICKETS] = f"FILE:{Path(folder, 'tickets')}"
    if _has_library():
        forget_tokens()


def _has_library() -> bool:
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def _principals(path: Path) -> dict[bytes, str]:
    """Return the principal of each entry of a keytab, in the order of the entries."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the keytab '{path}' cannot be read: {error.strerror}. Name an existing file that this user can read in "
            f"{_either(KEYTAB)}"
        ) from None
    try:
        if not data.startswith(_VERSION):
            raise ValueError
        return {entry: _principal(entry[_LENGTH.size :]) for entry in _entries(data[len(_VERSION) :])}
    except (ValueError, struct.error):
        raise ConfigurationError(f"'{path}' is not a keytab. Correct {_either(KEYTAB)}") from None


def _either(name: str) -> str:
    """Return both names of a setting."""
    return f"{FLINK[name]} ({name})"


def _entries(data: bytes) -> Iterator[bytes]:
    """Yield the entries of a keytab with their lengths. A negative length is that of a gap."""
    while data:
        (length,) = _LENGTH.unpack_from(data)
        end = _LENGTH.size + abs(length)
        if length > 0:
            yield data[:end]
        data = data[end:]


def _principal(entry: bytes) -> str:
    """Return the principal of an entry. The entry begins with a number of parts, the realm, and the parts."""
    (count,) = _SHORT.unpack_from(entry)
    at, texts = _SHORT.size, []
    for _ in range(count + 1):
        (length,) = _SHORT.unpack_from(entry, at)
        at += _SHORT.size
        texts.append(entry[at : at + length].decode())
        at += length
    return f"{'/'.join(texts[1:])}@{texts[0]}"
