"""Every example prints what it should: in this process, and one of them on real Spark."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from penstock.testing import in_process
from tests.waiting import without_waits

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

WORD_COUNT = """\
be 2
is 1
not 1
or 1
question 1
that 1
the 1
to 2
"""

EXPECTED = {
    "k_means": """\
cluster 1: centre 1.00, 1.50
cluster 2: centre 8.50, 8.67
cluster 3: centre 1.50, 8.50
""",
    "who_knows_whom": """\
Ann's group: Ann, Bob, Cleo, Dan, Eve, Fay
Gil's group: Gil, Hal, Ida
best known: Hal 0.162, Cleo 0.139
all know each other: Ann Bob Cleo; Dan Eve Fay
should meet: Gil and Ida
""",
    "sql_best_sellers": """\
00:00 1. Pen: 34 pieces
00:00 2. Cap: 24 pieces
00:10 1. Pen: 36 pieces
00:10 2. Ink: 24 pieces
00:20 1. Pen: 16 pieces
00:20 2. Cap: 12 pieces
""",
    "sql_statement_set": """\
totals cap 33 114
totals ink 34 117
totals pen 33 115
many 15 pen 7
many 39 pen 7
many 63 pen 7
many 87 pen 7
""",
    "sqlite_totals": "ann 20\nbo 9\ncy 1\n",
    "async_lookups": """\
book: Ann, Oslo
lamp: Cy, Graz
pen: Bo, Rome
rug: Ann, Oslo
jar: the service does not answer
""",
    "fraud_patterns": """\
alarm> ann: 2 small payments, then 900 in second 9
watch> cem: 2 small payments, and nothing after them
""",
    "files_exactly_once": """\
shop=Bergen: 200 orders, 200 of them different
shop=Oslo: 200 orders, 200 of them different
shop=Tromsø: 200 orders, 200 of them different
attempts: 2
""",
    "sales_in_columns": """\
from minute 0: Bergen 9000.00
from minute 0: Tromsø 3750.00
from minute 0: Bodø 12000.00
from minute 0: Oslo 7500.00
from minute 10: Bergen 6000.00
from minute 10: Tromsø 2500.00
from minute 10: Bodø 8000.00
from minute 10: Oslo 5000.00
""",
    "word_count": WORD_COUNT,
    "state_processor": """\
savepoint 0 of job 'state processor', 2 slots
uid     name    parallelism  state  kind   of   type
totals  totals  2 of 128     total  keyed  key  value<LONG>
ann 1200
bo 450
{'ann': 1250, 'bo': 500, 'cy': 5}
""",
    "recovering_counter": """\
cellar: 300 readings
kitchen: 300 readings
600 results, 600 of them different
attempts: 2
""",
    "sensors_alerts": """\
2000 kitchen jumped from 20.0 to 34.5
6500 cellar silent for 5000 ms
14000 kitchen silent for 5000 ms
14500 cellar silent for 5000 ms
""",
    "broadcast_rules": """\
p1 150 EUR passes
p2 20000 JPY is above 15000
p3 250 EUR is above 200
p4 no limit for CHF
""",
    "custom_source": """\
minute 0: home 2
minute 1: home 1
minute 1: shop 2
minute 2: shop 1
""",
    "batch_totals": """\
+I[bo,10.0]
+I[cy,1.0]
+I[ann,12.5]
""",
    "from_spark_dataframe": """\
Oslo 6.0
Rome 17.0
""",
    "side_outputs": """\
number> 1
number> 3
rejected> two
rejected> vier
""",
    "tumbling_averages": """\
0-10000 cellar 12.0
0-10000 kitchen 21.0
10000-20000 cellar 13.0
10000-20000 kitchen 25.0
20000-30000 kitchen 25.0
""",
    "sliding_totals": """\
until 20s oslo 10
until 20s rome 7
until 40s oslo 30
until 40s rome 7
until 60s oslo 35
until 60s rome 7
until 80s oslo 25
until 80s rome 1
until 100s oslo 5
until 100s rome 1
until 120s rome 1
""",
    "sessions": """\
minute 0 ann: home > search > product > basket
minute 5 bo: home
minute 50 bo: home
minute 120 ann: home
""",
    "top_readings_with_triggers": """\
oven 27 of [20, 22, 27]
oven 90 of [22, 27, 29, 90]
oven 180 of [27, 29, 90, 180]
oven 184 of [183, 181, 184, 150]
""",
    "late_data": """\
count> until second 10: 1 of 2
count> until second 10: 1 of 3, not 1 of 2
too late> ('no', 2)
count> until second 20: 2 of 3
""",
    "window_join": """\
ann book 20
ann pen 3
bo lamp unpaid
""",
    "interval_join": """\
drill stuck: tool changed 1000 ms before
press too hot: door opened 5000 ms before
press too hot: pump failed 1000 ms before
""",
}

AGAINST_SERVERS = {
    "kafka_counts": "tests/connectors/kafka/test_kafka_example.py",
    "kafka_to_postgres": "tests/connectors/kafka/test_kafka_to_postgres.py",
}
"""Examples that need a server, and the tests that run them."""

ON_SPARK = ["word_count", "from_spark_dataframe"]
"""Examples that are also run as a user would run them. The second reads a DataFrame, and so cannot do without Spark."""


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(EXPECTED) | set(AGAINST_SERVERS)
    for tests in AGAINST_SERVERS.values():
        assert (ROOT / tests).exists()


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"from_spark_dataframe"}))
def test_example_prints_its_result(name, monkeypatch, capsys):
    module = loaded(name, monkeypatch)
    with in_process():
        module.main()
    assert capsys.readouterr().out == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_example_says_what_it_is_in_one_sentence(name, monkeypatch):
    text = loaded(name, monkeypatch).__doc__
    assert "\n" not in text and text.endswith(".") and text.count(". ") == 0


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_example_on_spark(name):
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, EXPECTED[name]), done.stderr
    if name != "from_spark_dataframe":  # which makes a session of its own, with Spark's usual log
        assert without_waits(done.stderr) == ""
