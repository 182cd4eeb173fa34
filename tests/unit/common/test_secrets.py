"""Settings whose names say that they are secret are not shown."""

import pytest

from penstock.common.secrets import HIDDEN, conceal, is_secret, mask_settings

SECRET = [
    "security.ssl.rest.keystore-password",
    "s3.Secret-Key",
    "kafka.properties.sasl.jaas.config",
    "rest.client.token",
    "fs.azure.account.key.store7.core.windows.net",
    "metrics.reporter.x.apikey",
    "metrics.reporter.x.api-key",
    "catalog.auth-params",
    "some.service-key",
    "registry.basic-auth.credentials-source",
    "exporter.http-headers",
]
PLAIN = ["rest.port", "parallelism.default", "security.ssl.rest.keystore", "high-availability.storageDir"]


@pytest.mark.parametrize("name", SECRET)
def test_a_secret_is_known_by_its_name_whatever_its_case(name: str) -> None:
    assert is_secret(name)
    assert is_secret(name.upper())


@pytest.mark.parametrize("name", PLAIN)
def test_other_settings_are_shown(name: str) -> None:
    assert not is_secret(name)


def test_masking_keeps_names_order_and_plain_values_and_leaves_the_original_alone() -> None:
    settings = dict.fromkeys([*SECRET, *PLAIN], "value")
    shown = mask_settings(settings)
    assert list(shown) == list(settings)
    assert shown == {**dict.fromkeys(SECRET, HIDDEN), **dict.fromkeys(PLAIN, "value")}
    assert set(settings.values()) == {"value"}


@pytest.mark.parametrize(
    "text",
    [
        "sasl.password=hunter2",
        "{'s3.secret-key': 'hunter2', 'a': 1}",
        '{"security.rest.token.read": "hunter2"}',
        "PASSWORD : hunter2",
        "cannot reach postgresql+psycopg://me:hunter2@db:5432/x",
        "https://me:hunter2@a/ and https://you:hunter2@b/",
        "http://localhost/?api-key=hunter2&n=1",
    ],
)
def test_what_can_be_recognised_in_a_text_is_hidden(text: str) -> None:
    assert "hunter2" not in conceal(text)
    assert HIDDEN in conceal(text)


@pytest.mark.parametrize("text", ["no secret", "http://a:80/b@c", "the token is missing", "a = b", ""])
def test_a_text_without_secrets_stays(text: str) -> None:
    assert conceal(text) == text
