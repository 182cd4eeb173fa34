"""How a database is named: URLs of both kinds, credentials, and what may be shown of them."""

import pickle

import pytest

from penstock.connectors.jdbc.database import database_url
from penstock.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)


def options(url, user=None, password=None):
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url)
    if user is not None:
        builder.with_user_name(user)
    if password is not None:
        builder.with_password(password)
    return builder.with_driver_name("org.postgresql.Driver").build()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:postgresql://db.example:5433/sales", "postgresql+psycopg://db.example:5433/sales"),
        ("jdbc:postgresql://db.example/sales", "postgresql+psycopg://db.example/sales"),
        ("jdbc:postgresql:sales", "postgresql+psycopg://localhost/sales"),
        ("jdbc:postgresql://[::1]:5433/sales", "postgresql+psycopg://[::1]:5433/sales"),
        (
            "jdbc:postgresql://h/d?user=ann&password=s%26c&ssl=true&ApplicationName=job&sslfactory=x",
            "postgresql+psycopg://ann:s%26c@h/d?application_name=job&sslmode=require",
        ),
        ("jdbc:postgresql://h/d?currentSchema=own", "postgresql+psycopg://h/d?options=-csearch_path%3Down"),
        ("postgresql://ann@h/d", "postgresql+psycopg://ann@h/d"),
        ("postgresql+psycopg://ann:x@h/d", "postgresql+psycopg://ann:x@h/d"),
        ("jdbc:sqlite:/tmp/a b.db", "sqlite:////tmp/a b.db"),
        ("jdbc:sqlite:file.db", "sqlite:///file.db"),
        ("sqlite:///file.db", "sqlite:///file.db"),
        ("jdbc:mysql://h:3306/d", "mysql://h:3306/d"),
    ],
)
def test_urls(url, expected):
    assert database_url(options(url)).render_as_string(hide_password=False) == expected


def test_credentials_beside_the_url_win_and_may_hold_anything():
    url = database_url(options("jdbc:postgresql://h/d?user=bo", "ann", "p@ss:w/rd"))
    assert (url.username, url.password) == ("ann", "p@ss:w/rd")


def test_the_password_is_never_shown():
    shown = [
        options("postgresql://ann:secret@h/d").display_url,
        options("postgresql://ann:se:cret@h/d").display_url,
        options("jdbc:postgresql://h/d?user=ann&password=secret&x=1").display_url,
        repr(options("jdbc:postgresql://h/d", "ann", "secret")),
    ]
    assert not any("cret" in text for text in shown)
    assert shown[0] == "postgresql://ann:***@h/d"
    assert shown[2] == "jdbc:postgresql://h/d?user=ann&password=***&x=1"


def test_getters_and_pickling():
    made = pickle.loads(pickle.dumps(options("jdbc:postgresql://h/d", "ann", "secret")))
    assert (made.get_db_url(), made.get_driver_name()) == ("jdbc:postgresql://h/d", "org.postgresql.Driver")
    assert (made.get_user_name(), made.get_password()) == ("ann", "secret")


@pytest.mark.parametrize("url", ["", "file.db", "jdbc:", "jdbc:postgresql", "/tmp/x", "://h"])
def test_what_is_no_url_of_a_database(url):
    with pytest.raises(ValueError, match="not the URL of a database"):
        options(url)


@pytest.mark.parametrize("url", ["jdbc:sqlite::memory:", "sqlite://", "sqlite:///:memory:", "jdbc:sqlite:"])
def test_a_database_in_memory_is_refused(url):
    with pytest.raises(ValueError, match="use a database in a file"):
        options(url)


def test_a_url_is_needed():
    with pytest.raises(ValueError, match="with_url"):
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build()


def test_execution_options():
    defaults = JdbcExecutionOptions.defaults()
    got = defaults.get_batch_size(), defaults.get_batch_interval_ms(), defaults.get_max_retries()
    assert got == (5000, 0, 3)
    made = JdbcExecutionOptions.builder().with_batch_size(7).with_batch_interval_ms(50).with_max_retries(0).build()
    assert (made.get_batch_size(), made.get_batch_interval_ms(), made.get_max_retries()) == (7, 50, 0)
    with pytest.raises(ValueError, match="batch_size must be at least 0, not -1"):
        JdbcExecutionOptions.builder().with_batch_size(-1)
    with pytest.raises(TypeError, match="max_retries must be a whole number"):
        JdbcExecutionOptions.builder().with_max_retries("3")


def test_exactly_once_options():
    made = JdbcExactlyOnceOptions.builder().with_marker_table("own.markers").with_max_commit_attempts(2).build()
    assert (made.marker_table, made.max_commit_attempts) == ("own.markers", 2)
    assert JdbcExactlyOnceOptions.defaults().marker_table == "penstock_commits"
    with pytest.raises(ValueError, match="not a plain name"):
        JdbcExactlyOnceOptions("a; DROP TABLE b")
    with pytest.raises(ValueError, match="max_commit_attempts must be at least 1"):
        JdbcExactlyOnceOptions(max_commit_attempts=0)
