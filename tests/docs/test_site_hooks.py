"""The hooks of the documentation site: diagrams bring their script along, and pictures open in their full size."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    package = tmp_path / "tiny"
    (package / "dist").mkdir(parents=True)
    (package / "dist" / "mermaid.tiny.js").write_text("script")
    (package / "LICENSE").write_text("licence")
    monkeypatch.setattr(module, "PACKAGE", package)
    return module


def page_at(url: str) -> SimpleNamespace:
    return SimpleNamespace(url=url)


def test_a_page_with_a_diagram_loads_the_script_of_the_site(hooks):
    html = hooks.on_page_content('<pre class="mermaid">flowchart</pre>', page=page_at("sql/tutorial/"))
    assert html.endswith('<script src="../../assets/javascripts/mermaid.tiny.js"></script>')


def test_a_page_without_a_diagram_loads_nothing(hooks):
    assert hooks.on_page_content("<p>text</p>", page=page_at("time/")) == "<p>text</p>"


def test_without_the_package_the_theme_loads_the_script(hooks, monkeypatch, tmp_path):
    monkeypatch.setattr(hooks, "PACKAGE", tmp_path / "missing")
    html = '<pre class="mermaid">flowchart</pre>'
    assert hooks.on_page_content(html, page=page_at("concepts/")) == html
    hooks.on_post_build({"site_dir": str(tmp_path / "site")})
    assert not (tmp_path / "site").exists()


def test_a_machine_without_npm_builds_the_site(hooks, monkeypatch):
    def fail() -> None:
        raise OSError("no Node.js")

    monkeypatch.setattr(hooks, "_web_build", lambda: SimpleNamespace(tools=fail))
    assert hooks.on_config({}) == {}


def test_a_picture_is_linked_once(hooks):
    picture = '<img alt="graph" src="../pictures/a.png" />'
    linked = f'<a href="../pictures/a.png">{picture}</a>'
    assert hooks.on_page_content(f"<p>{picture}</p>", page=page_at("x/")) == f"<p>{linked}</p>"
    assert hooks.on_page_content(linked, page=page_at("x/")) == linked


def test_the_site_gets_the_script_and_its_licence(hooks, tmp_path):
    (tmp_path / "assets" / "javascripts").mkdir(parents=True)
    hooks.on_post_build({"site_dir": str(tmp_path)})
    assert (tmp_path / hooks.SCRIPT).read_text() == "script"
    assert (tmp_path / hooks.LICENCE).read_text() == "licence"


def test_the_version_is_pinned():
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]["node_modules/@mermaid-js/tiny"]
    assert lock["version"] and lock["integrity"].startswith("sha512-")
