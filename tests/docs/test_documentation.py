"""The documentation holds: its code runs, its output is what it says, its links and file names exist."""

import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock import errors
from penstock.service.launch import execution_settings as environment_settings
from penstock.testing import in_process

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
LINKED = [ROOT / "CONTRIBUTING.md", *PAGES]
MOST_NOT_RUN = 5

FENCE = re.compile(r"^```(\w*)")
COMMENT = re.compile(r"^<!-- (.*) -->$")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:penstock|examples|benchmarks)/[\w./*-]+|tests/[\w/]+\.py)`")


@dataclass
class Block:
    """A fenced block, with the HTML comment right above it."""

    language: str
    line: int
    directive: str
    text: str


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    open_block: Block | None = None
    above = ""
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if open_block is not None:
            if line.startswith("```"):
                found.append(open_block)
                open_block, above = None, ""
            else:
                open_block.text += line + "\n"
        elif (fence := FENCE.match(line)) is not None:
            comment = COMMENT.match(above)
            open_block = Block(fence[1], number, comment[1] if comment else "", "")
        elif line.strip():
            above = line.strip()
    assert open_block is None, f"{named(page)}: a block is not closed"
    return found


def not_run(block: Block) -> bool:
    return block.language == "python" and block.directive.startswith("no-run")


def on_spark(block: Block) -> bool:
    """Whether a block is a program of Spark's own, which tests/spark/test_programs_of_pages.py runs."""
    return block.directive == "on-spark"


def run(block: Block, page: Path, module: types.ModuleType) -> None:
    # Empty lines in front, so that a traceback shows the line of the page.
    code = compile("\n" * block.line + block.text, named(page), "exec")
    exec(code, module.__dict__)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_python_blocks_run_and_print_what_the_page_says(page, capsys, monkeypatch):
    module = types.ModuleType(f"page_{page.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    printed = ""
    with in_process():
        for block in blocks(page):
            if block.language == "python" and not not_run(block) and not on_spark(block):
                run(block, page, module)
                printed = capsys.readouterr().out
            elif block.directive == "output":
                assert printed == block.text, f"{named(page)}:{block.line}"


def test_blocks_that_are_not_run_are_few_and_say_why():
    skipped = [(named(page), block) for page in PAGES for block in blocks(page) if not_run(block)]
    assert len(skipped) < MOST_NOT_RUN
    for page, block in skipped:
        assert re.fullmatch(r"no-run: .{10,}", block.directive), f"{page}:{block.line} gives no reason"


@pytest.mark.parametrize("page", LINKED, ids=named)
def test_emphasis_is_not_shown_as_asterisks(page):
    prose = re.sub(r"^```.*?^```|`[^`]*`", "code", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\*{3,}.*", prose) == []


@pytest.mark.parametrize("page", LINKED, ids=named)
def test_relative_links_point_to_files(page):
    targets = [target.partition("#")[0] for target in LINK.findall(page.read_text())]
    relative = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in relative if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", LINKED, ids=named)
def test_files_that_are_named_exist(page):
    paths = PATH.findall(page.read_text())
    assert [path for path in paths if not any(ROOT.glob(path.rstrip("/")))] == []


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in DOCS}


def test_every_option_is_documented():
    text = "".join((ROOT / "docs" / page).read_text() for page in ("configuration.md", "flink-options.md"))
    names = [*environment_settings._OPTIONS, environment_settings.MASTER_VARIABLE]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_exception_is_documented():
    text = (ROOT / "docs/errors.md").read_text()
    public = [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)]
    assert [name for name in public if name not in text] == []
