"""The login of this process to Kerberos: keytabs, and delegation tokens of containers."""

import os
import struct

import pytest

from penstock.base.hdfs import kerberos_login, token_files
from penstock.base.hdfs.kerberos_login import log_in
from penstock.base.hdfs.native import _as_os_error
from penstock.base.hdfs.token_files import Token, format_tokens, parse_tokens, use_name_node, use_tokens
from penstock.errors import ConfigurationError

KIND = b"HDFS_DELEGATION_TOKEN"
GSSAPI = (
    'GSSAPIError(GssMajorCodes { raw: "0x00070000", routine_error: "GSS_S_NO_CRED" }, 2529638943, '
    '"No credentials were supplied, or the credentials were unavailable or inaccessible: %s")'
)


def keytab(path, *principals, gap=False):
    """Write a keytab as kadmin does, with a key of zeros for each principal."""
    data = b"\x05\x02"
    for principal in principals:
        name, _, realm = principal.partition("@")
        parts = [realm, *name.split("/")]
        texts = b"".join(struct.pack(">H", len(part)) + part.encode() for part in parts)
        entry = struct.pack(">H", len(parts) - 1) + texts + struct.pack(">IIBHH", 1, 0, 1, 18, 32) + bytes(32)
        data += struct.pack(">i", len(entry)) + entry
        if gap:
            data += struct.pack(">i", -4) + bytes(4)
    path.write_bytes(data)
    return path


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    """Begin without a login and without tokens, and leave nothing behind."""
    for name in ("KRB5_CLIENT_KTNAME", "KRB5CCNAME", token_files.VARIABLE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(kerberos_login, "_logins", {})
    for name, value in {"tokens": {}, "name_nodes": set(), "file": None}.items():
        monkeypatch.setattr(token_files._Held, name, value)


def login(path, principal):
    log_in({"security.kerberos.login.keytab": str(path), "security.kerberos.login.principal": principal})


def test_a_keytab_with_the_principal_first_is_used_itself(tmp_path):
    path = keytab(tmp_path / "a.keytab", "alice@TEST", "hdfs/host.example@TEST", gap=True)
    login(path, "alice@TEST")
    assert os.environ["KRB5_CLIENT_KTNAME"] == f"FILE:{path}"
    assert os.environ["KRB5CCNAME"].startswith("FILE:")


def test_another_principal_of_a_keytab_gets_a_keytab_of_its_own(tmp_path):
    login(keytab(tmp_path / "a.keytab", "alice@TEST", "hdfs/host.example@TEST", gap=True), "hdfs/host.example@TEST")
    own = os.environ["KRB5_CLIENT_KTNAME"].removeprefix("FILE:")
    assert os.stat(own).st_mode & 0o777 == 0o600
    assert list(kerberos_login._principals(kerberos_login.Path(own)).values()) == ["hdfs/host.example@TEST"]


def test_a_second_job_keeps_the_tickets_and_a_new_key_does_not(tmp_path):
    path = keytab(tmp_path / "a.keytab", "alice@TEST")
    login(path, "alice@TEST")
    tickets = os.environ["KRB5CCNAME"]
    login(path, "alice@TEST")
    assert os.environ["KRB5CCNAME"] == tickets
    keytab(path, "alice@TEST", "bob@TEST")
    login(path, "alice@TEST")
    assert os.environ["KRB5CCNAME"] != tickets


def test_without_both_settings_nothing_happens_or_the_missing_one_is_named():
    log_in({"spark.app.name": "x"})
    assert "KRB5CCNAME" not in os.environ
    with pytest.raises(ConfigurationError, match=r"login\.principal is set to 'alice@TEST', and .*keytab is not set"):
        log_in({"spark.kerberos.principal": "alice@TEST"})
    with pytest.raises(ConfigurationError, match=r"login\.keytab is set to '/a', and .*principal is not set"):
        log_in({"spark.kerberos.keytab": "/a"})


@pytest.mark.parametrize("broken", [b"", b"PK\x03\x04", b"\x05\x02\x00\x00\x00\x40\x00\x01"])
def test_a_file_that_is_no_keytab_is_named(tmp_path, broken):
    (tmp_path / "a.keytab").write_bytes(broken)
    what = "no key for 'alice@TEST'; .* none" if broken == b"\x05\x02" else "is not a keytab"
    with pytest.raises(ConfigurationError, match=what):
        login(tmp_path / "a.keytab", "alice@TEST")


def test_a_missing_keytab_and_a_missing_principal_are_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.keytab' cannot be read: No such file"):
        login(tmp_path / "none.keytab", "alice@TEST")
    path = keytab(tmp_path / "a.keytab", "alice@TEST")
    with pytest.raises(ConfigurationError, match=r"no key for 'bob@TEST'; .*: 'alice@TEST'\. Correct"):
        login(path, "bob@TEST")


def test_a_refused_login_is_not_tried_again_and_a_silent_kdc_is():
    refused = _as_os_error(GSSAPI % "Decrypt integrity check failed")
    assert isinstance(refused, PermissionError)
    assert str(refused).startswith("the login to Kerberos failed: Decrypt integrity check failed. Set security.ker")
    silent = _as_os_error(GSSAPI % r"Cannot contact any KDC for realm \"TEST\"")
    assert not isinstance(silent, PermissionError)
    assert 'KDC for realm "TEST". The krb5.conf' in str(silent)


# --- tokens ---
def token(service, identifier=b"id", alias=None):
    return Token(alias or service, identifier, b"password", KIND, service)


def tokens_in_use():
    with open(os.environ[token_files.VARIABLE], "rb") as file:
        return {found.service: found.identifier for found in parse_tokens(file.read())}


def test_a_file_of_tokens_reads_as_it_was_written():
    whole = [token(b"127.0.0.1:8020", bytes(300)), token(b"ha-hdfs:lake", b"", b"x" * 70_000)]
    assert parse_tokens(format_tokens(whole)) == whole
    with pytest.raises(IndexError):
        parse_tokens(format_tokens(whole)[:-3])
    with pytest.raises(ValueError, match="format"):
        parse_tokens(b"HDTS\x01")


def test_tokens_of_a_container_are_found_by_the_host_of_a_url(tmp_path, monkeypatch):
    given = tmp_path / "container_tokens"
    given.write_bytes(format_tokens([token(b"127.0.0.1:8020"), token(b"ha-hdfs:lake", b"other")]))
    monkeypatch.setenv(token_files.VARIABLE, str(given))
    use_name_node("LocalHost:8020")
    assert tokens_in_use() == {b"127.0.0.1:8020": b"id", b"ha-hdfs:lake": b"other", b"localhost:8020": b"id"}
    own = os.environ[token_files.VARIABLE]
    assert os.stat(own).st_mode & 0o777 == 0o600 and os.path.dirname(own) == str(tmp_path)
    assert given.read_bytes() == format_tokens([token(b"127.0.0.1:8020"), token(b"ha-hdfs:lake", b"other")])


def test_a_read_only_folder_stays_as_it_is(tmp_path, monkeypatch):
    given = tmp_path / "hadoop-tokens"
    given.write_bytes(format_tokens([token(b"127.0.0.1:8020")]))
    monkeypatch.setenv(token_files.VARIABLE, str(given))
    monkeypatch.setattr(os, "access", lambda folder, _: str(folder) != str(tmp_path))  # root may write everywhere
    use_name_node("localhost:8020")
    assert tokens_in_use()[b"localhost:8020"] == b"id"
    assert list(tmp_path.iterdir()) == [given]


def test_tokens_of_a_name_service_need_no_file(tmp_path, monkeypatch):
    given = tmp_path / "container_tokens"
    given.write_bytes(format_tokens([token(b"ha-hdfs:lake")]))
    monkeypatch.setenv(token_files.VARIABLE, str(given))
    use_name_node("localhost:8020")
    assert os.environ[token_files.VARIABLE] == str(given)


def test_renewed_tokens_replace_earlier_ones(tmp_path, monkeypatch):
    given = tmp_path / "container_tokens"
    given.write_bytes(format_tokens([token(b"127.0.0.1:8020", b"1", b"alias"), token(b"10.0.0.1:1", b"1")]))
    monkeypatch.setenv(token_files.VARIABLE, str(given))
    use_name_node("localhost:8020")
    use_tokens(format_tokens([token(b"127.0.0.1:8020", b"2")]))
    assert tokens_in_use() == {b"127.0.0.1:8020": b"2", b"10.0.0.1:1": b"1", b"localhost:8020": b"2"}


def test_a_process_without_tokens_gets_no_file():
    use_name_node("localhost:8020")
    assert token_files.VARIABLE not in os.environ
    use_tokens(format_tokens([token(b"127.0.0.1:8020")]))
    assert tokens_in_use()[b"localhost:8020"] == b"id"
