"""The options of REST."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from penstock.service.options.rest_options import OPTIONS, RestSettings, rest_settings


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


# --- the page ---
PAGE = Path(__file__).parents[2] / "docs/configuration.md"
HEADER = "| option of REST | other spellings | default | meaning |"


def rows() -> list[list[str]]:
    below = PAGE.read_text().partition(HEADER)[2].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in takewhile(lambda line: line, below)]


def test_the_configuration_page_lists_all_options():
    assert [row[0] for row in rows()] == [f"`{option.name}`" for option in OPTIONS]


@pytest.mark.parametrize(
    ("row", "option"), list(zip(rows(), OPTIONS, strict=False)), ids=lambda v: getattr(v, "name", "")
)
def test_a_row_of_the_page_is_what_the_code_says(row, option):
    _, others, default, meaning = row
    assert tuple(re.findall(r"`([^`]+)`", others)) == option.others
    assert re.findall(r"`([^`]+)`", default) == ([] if option.default is None else [option.default])
    assert meaning


def test_other_spellings_mean_the_same():
    assert rest_settings({"web.port": "9000"}).ports == (9000,)
    assert rest_settings({"web.port": "9000", "rest.port": "9001"}).ports == (9001,)
