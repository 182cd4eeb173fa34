"""Classes of the main script, also those defined inside functions, travel from driver to slot and back by name."""

import subprocess
import sys
from functools import cached_property
from pathlib import Path
from textwrap import dedent

from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.testing import in_process

DRIVER = """
    import collections, pickle, subprocess, sys
    from dataclasses import dataclass
    from typing import NamedTuple
    from penstock.base.main_classes import pickle_and_gather, publish_classes

    @dataclass
    class DC:
        name: str

    class Outer:
        @dataclass
        class Inner:
            name: str

    def records(suffix=""):
        @dataclass
        class DC:
            name: str

        class Named(NamedTuple):
            name: str

        Tuple = collections.namedtuple("Tuple", "name")
        return [DC, Named, Tuple]

    def main():
        kinds = [DC, Outer.Inner, Outer, *records()]
        classes = {}
        sent = pickle_and_gather(lambda: [kind() if kind is Outer else kind("a") for kind in kinds], classes)
        addresses = publish_classes(classes)
        message = pickle.dumps((sent, addresses))
        answer = subprocess.run([sys.executable, sys.argv[1]], input=message, stdout=subprocess.PIPE, check=True).stdout
        for kind, value in zip(kinds, pickle.loads(answer), strict=True):
            print(kind.__name__, type(value) is kind)
        print(sorted(addresses.values()))

        first, second = records()[0], records()[0]
        classes = {}
        pickle_and_gather((first, second), classes)
        print(publish_classes(classes))

    main()
"""

SLOT = """
    import pickle, sys
    from penstock.base.main_classes import adopt_classes

    sent, addresses = pickle.load(sys.stdin.buffer)
    make = pickle.loads(sent)
    adopt_classes(addresses)
    sys.stdout.buffer.write(pickle.dumps(make()))
"""


def test_objects_of_main_classes_travel_by_name(tmp_path: Path) -> None:
    driver, slot = tmp_path / "driver.py", tmp_path / "slot.py"
    driver.write_text(dedent(DRIVER))
    slot.write_text(dedent(SLOT))
    ran = subprocess.run([sys.executable, driver, slot], capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == [
        "DC True",
        "Inner True",
        "Outer True",
        "DC True",
        "Named True",
        "Tuple True",
        "[('__main__', 'DC'), ('__main__', 'Outer'), ('__main__', 'Outer.Inner'), ('__main__.<locals>', 'Tuple'), "
        "('__main__.records', 'DC'), ('__main__.records', 'Named')]",
        "{}",
    ], ran.stderr


def test_a_function_may_have_a_cached_property() -> None:
    class Doubling(MapFunction):
        @cached_property
        def factor(self) -> int:
            return 2

        def map(self, value: int) -> int:
            return value * self.factor

    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        assert list(env.from_elements(1, 2).map(Doubling()).execute_and_collect()) == [2, 4]
