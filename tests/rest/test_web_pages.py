"""The web pages as files: types, caching, what they may load, who may have them, and what is said if there are none."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from penstock.service.options.rest_options import Tokens
from penstock.service.rest.replies import EXPECTED_ERRORS, answer_error
from penstock.service.rest.web_pages import add_pages
from tests.rest.conftest import client_of
from tests.rest.scripted_jobs import RUNNING, ScriptedJobs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<html>the page</html>")
    (tmp_path / "assets" / "main-0123ABCD.js").write_text("let answer = 42;" * 100)
    (tmp_path / "assets" / "styles-0123ABCD.css").write_text("body {}")
    (tmp_path / "assets" / "icon-0123ABCD.svg").write_text("<svg/>")
    (tmp_path / "assets" / "licences.txt").write_text("MIT")
    (tmp_path / "assets" / "secret.key").write_text("hunter2")
    (tmp_path / "beside.txt").write_text("hunter2")
    return tmp_path


def pages_of(folder: Path) -> TestClient:
    app = FastAPI()
    for kind in EXPECTED_ERRORS:
        app.add_exception_handler(kind, answer_error)
    add_pages(app, folder)
    return TestClient(app)


def test_files_have_their_types_and_those_with_a_hash_are_kept_for_good(folder):
    client = pages_of(folder)
    kinds = {
        "/": "text/html",
        "/assets/main-0123ABCD.js": "text/javascript",
        "/assets/styles-0123ABCD.css": "text/css",
        "/assets/icon-0123ABCD.svg": "image/svg+xml",
        "/assets/licences.txt": "text/plain",
    }
    for path, kind in kinds.items():
        answer = client.get(path)
        assert answer.status_code == 200 and answer.headers["content-type"].startswith(kind), path
        assert ("immutable" in answer.headers["cache-control"]) == ("0123ABCD" in path), path
        assert client.head(path).status_code == 200


def test_the_page_may_load_nothing_from_elsewhere(folder):
    policy = pages_of(folder).get("/").headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    sources = {source for rule in rules.values() for source in rule.split()}
    assert sources <= {"'none'", "'self'", "data:"}


def test_what_is_large_is_packed_for_those_who_can_unpack_it(folder):
    client, path = pages_of(folder), "/assets/main-0123ABCD.js"
    packed, plain = client.get(path), client.get(path, headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert packed.text == plain.text == "let answer = 42;" * 100
    assert len(gzip.compress(plain.content)) < len(plain.content)


@pytest.mark.parametrize("name", ["none.js", "..%2Fbeside.txt", "..%2F..%2Findex.html", "secret.key", "%00"])
def test_nothing_else_is_served(folder, name):
    answer = pages_of(folder).get(f"/assets/{name}")
    assert answer.status_code == 404 and "hunter2" not in answer.text


def test_without_built_pages_the_server_says_how_to_build_them(tmp_path):
    answer = pages_of(tmp_path / "nothing").get("/")
    assert answer.status_code == 200 and "make web" in answer.text
    assert pages_of(tmp_path / "nothing").get("/assets/main-0123ABCD.js").status_code == 404


def test_pages_need_no_token_and_data_does():
    client = client_of(ScriptedJobs.usual(), tokens=Tokens(read="reading-token"))
    assert client.get("/").status_code == 200
    assert client.get("/assets/none.js").status_code == 404
    for path in ("/overview", f"/jobs/{RUNNING}/activity", "/docs", "/assets", "/assets/a/b"):
        assert client.get(path).status_code == 401, path
    assert client.post("/").status_code == 401


def test_paths_of_the_interface_are_no_pages(client):
    """An unknown path is an error in JSON, as clients expect, and not the page."""
    for path in ("/overviews", "/index.html", f"/jobs/{'0' * 32}"):
        answer = client.get(path)
        assert answer.status_code == 404 and answer.json()["errors"], path


def test_flinks_dashboard_comes_in_place_of_the_pages(jobs, tmp_path):
    (tmp_path / "index.html").write_text("<html>dashboard</html>")
    client = client_of(jobs, dashboard=tmp_path)
    answer = client.get("/")
    assert "dashboard" in answer.text and "content-security-policy" not in answer.headers
    assert client.get("/overview").json()["jobs-running"] == 1


# --- the sources ---
def test_the_lock_file_names_no_registry():
    """Whoever builds takes packages from the registry of their own."""
    lock = (ROOT / "web" / "package-lock.json").read_text()
    assert '"resolved"' not in lock and "http" not in re.sub(r'"url": "https://[^"]*"', "", lock)


def test_a_wheel_brings_the_pages_along(tmp_path):
    """What is built is not part of the sources, but of what is installed."""
    hatchling = pytest.importorskip("hatchling.build")
    built = ROOT / "penstock" / "service" / "rest" / "web" / "index.html"
    if not built.is_file():
        pytest.skip("the web pages are not built (make web)")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        wheel = hatchling.build_wheel(str(tmp_path))
    names = zipfile.ZipFile(tmp_path / wheel).namelist()
    assert "penstock/service/rest/web/index.html" in names
    assert any(re.fullmatch(r"penstock/service/rest/web/assets/main-\w{8}\.js", name) for name in names)
