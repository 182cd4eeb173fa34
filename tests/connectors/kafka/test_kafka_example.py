"""The example against a real broker."""

import importlib.util
import sys
from pathlib import Path

from penstock.testing import in_process

ROOT = Path(__file__).parents[3]


def test_the_example_counts(kafka, capsys):
    kafka.create_topic("page-views", 2)
    kafka.create_topic("views-per-minute", 2)
    spec = importlib.util.spec_from_file_location("example_kafka_counts", ROOT / "examples" / "kafka_counts.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    with in_process():
        module.main(kafka.bootstrap)
    assert capsys.readouterr().out.splitlines() == [
        "minute 0: home 2",
        "minute 0: shop 1",
        "minute 1: home 1",
        "minute 1: shop 2",
        "minute 2: home 1",
    ]
