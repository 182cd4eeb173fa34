"""The programs of Structured Streaming that the pages show run on Spark, and print what the pages say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.docs.test_documentation import DOCS, blocks, named, on_spark

PAGES = [page for page in DOCS if any(on_spark(block) for block in blocks(page))]
SETTINGS = "--master local[2] --conf spark.sql.shuffle.partitions=1 --conf spark.ui.enabled=false pyspark-shell"
LONGEST = 600


def test_some_page_shows_programs_of_spark() -> None:
    assert PAGES


@pytest.mark.skipif(int(pyspark.__version__.split(".")[0]) < 4, reason="transformWithState is new in Spark 4")
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_programs_of_spark_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("\n".join(block.text for block in blocks(page) if on_spark(block)))
    expected = "".join(block.text for block in blocks(page) if block.directive == "output-on-spark")
    # In an interpreter of its own: the programs change settings of the session, which the other tests share.
    ended = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": SETTINGS},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    assert ended.stdout == expected
