"""The options of REST."""

from __future__ import annotations

import pytest

from penstock.errors import ConfigurationError
from penstock.rest.settings import OPTIONS, RestSettings, rest_settings


def test_without_options_it_listens_on_loopback_only():
    settings = rest_settings({"parallelism.default": "3"})
    assert settings == RestSettings()
    assert settings.on_loopback and settings.ports == (8081,) and not settings.submit


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.default is not None], ids=lambda o: o.name)
def test_a_default_changes_nothing(option):
    assert rest_settings({option.name: option.default}) == RestSettings()


@pytest.mark.parametrize(
    ("text", "ports"), [("8081-8083", (8081, 8082, 8083)), ("0", (0,)), ("9000, 8081-8082", (9000, 8081, 8082))]
)
def test_ports_may_be_a_range(text, ports):
    assert rest_settings({"rest.port": "1", "rest.bind-port": text}).ports == ports


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rest.port", "many"),
        ("rest.port", "65536"),
        ("rest.port", "8081-8090"),
        ("rest.bind-port", "9-1"),
        ("rest.bind-port", "1-"),
        ("rest.server.max-content-length", "lots"),
        ("rest.server.patience", "0"),
        ("web.submit.enable", "perhaps"),
        ("security.rest.token.read", "short"),
        ("security.rest.token.operate", "with a blank"),
    ],
)
def test_a_value_that_does_not_fit_is_named_but_not_shown(name, value):
    with pytest.raises(ConfigurationError, match=name) as caught:
        rest_settings({name: value})
    assert value not in str(caught.value)


def test_tls_needs_both_files(tmp_path):
    with pytest.raises(ConfigurationError, match=r"security\.ssl\.rest\.certificate"):
        rest_settings({"security.ssl.rest.enabled": "true", "security.ssl.rest.key": str(tmp_path)})


def test_a_dashboard_needs_a_page(tmp_path):
    with pytest.raises(ConfigurationError, match=r"index\.html"):
        rest_settings({"web.dashboard.dir": str(tmp_path)})


def test_secrets_are_not_in_the_text_of_settings():
    settings = rest_settings(
        {"security.rest.token.read": "hunter2-hunter2", "security.ssl.rest.key-password": "hunter3"}
    )
    assert "hunter" not in repr(settings)
