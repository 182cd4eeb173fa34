"""Recognition of secret settings by their names, as in Flink, and display of settings without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "******"
"""Text that is shown in place of a secret."""

_PARTS = (
    "password",
    "secret",
    "token",
    "api-key",
    "apikey",
    "fs.azure.account.key",
    "auth-params",
    "service-key",
    "basic-auth",
    "jaas.config",
    "http-headers",
    "exporter.headers",
)


def is_secret(name: str) -> bool:
    """Return True if the value of a setting with this name is secret. Case does not matter."""
    plain = name.lower()
    return any(part in plain for part in _PARTS)


def mask_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, with `HIDDEN` in place of every secret.

    >>> masked({"security.ssl.rest.key-password": "hunter2", "rest.port": "8081"})
    {'security.ssl.rest.key-password': '******', 'rest.port': '8081'}
    """
    return {name: HIDDEN if is_secret(name) else value for name, value in settings.items()}


_NAMED = re.compile(
    rf"(?P<before>(?:{'|'.join(map(re.escape, _PARTS))})"
    r"""[\w.-]{0,60}["']?\s{0,4}[=:]\s{0,4}["']?)[^\s"',;&)}\]]+""",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,200}:)[^\s/@]{1,200}(?=@)", re.IGNORECASE)


def conceal(text: str) -> str:
    """Return a text without recognisable secrets, such as values behind secret names, and passwords in URLs.

    >>> concealed("cannot log in to jdbc://me:hunter2@db with sasl.password = 'hunter2'")
    "cannot log in to jdbc://me:******@db with sasl.password = '******'"
    """
    hidden = rf"\g<before>{HIDDEN}"
    return _IN_URL.sub(hidden, _NAMED.sub(hidden, text))
