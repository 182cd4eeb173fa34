"""Which settings are secrets, judged by their names as Flink does, and how settings are shown without them."""

from __future__ import annotations

from collections.abc import Mapping

HIDDEN = "******"
"""What is shown in place of a secret."""

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
)


def is_secret(name: str) -> bool:
    """Whether the value of a setting with this name must not be shown. Case does not matter."""
    plain = name.lower()
    return any(part in plain for part in _PARTS)


def masked(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings, with `HIDDEN` in place of every secret.

    >>> masked({"security.ssl.rest.key-password": "hunter2", "rest.port": "8081"})
    {'security.ssl.rest.key-password': '******', 'rest.port': '8081'}
    """
    return {name: HIDDEN if is_secret(name) else value for name, value in settings.items()}
