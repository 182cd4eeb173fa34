"""A declared type is checked where a record leaves its chain; a value between two chained functions is left alone."""

import pytest

from penstock.common import Row, Types, WatermarkStrategy
from penstock.datastream.functions import CoMapFunction, ProcessFunction
from penstock.errors import TypeMismatch

EXACT, ROUNDED = "1636358401000", "1636358422528"
"""A number, and the nearest one that has 32 bits."""


class Same(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Texts(CoMapFunction):
    def map1(self, value):
        return f"{value:.0f}"

    map2 = map1


def shown(stream):
    return stream.map(lambda value: f"{value:.0f}")


LEFT_ALONE = {
    "map": shown,
    "filter": lambda s: shown(s.filter(lambda value: True)),
    "flat_map": lambda s: shown(s.flat_map(lambda value: [value])),
    "process": lambda s: shown(s.process(Same())),
    "another reader behind an exchange": lambda s: (s.key_by(lambda value: 0).reduce(max).discard(), shown(s))[1],
}
CHECKED = {
    "key_by": lambda s: shown(s.key_by(lambda value: 0)),
    "rebalance": lambda s: shown(s.rebalance()),
    "another parallelism": lambda s: shown(s).set_parallelism(2),
    "no chaining": lambda s: shown(s).disable_chaining(),
    "a new chain": lambda s: shown(s).start_new_chain(),
    "timestamps": lambda s: shown(s.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())),
    "union": lambda s: shown(s.union(s.filter(lambda value: False))),
    "connect": lambda s: s.connect(s.filter(lambda value: False)).map(Texts()),
    "results": lambda s: s,
}


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    ("behind", "expected"), [(name, EXACT) for name in LEFT_ALONE] + [(name, ROUNDED) for name in CHECKED]
)
def test_a_float_has_32_bits_only_where_it_leaves_its_chain(run, behind, expected, mode):
    build = {**LEFT_ALONE, **CHECKED}[behind]
    results = run(lambda env: build(env.from_collection([1]).map(lambda _: float(EXACT), Types.FLOAT())), mode=mode)
    assert [value if isinstance(value, str) else f"{value:.0f}" for value in results] == [expected]


def test_sinks_get_the_declared_form(env, capsys):
    stream = env.from_collection([1]).map(lambda value: (value, value), Types.TUPLE([Types.DOUBLE(), Types.STRING()]))
    stream.map(lambda pair: pair[1]).print()
    env.execute()
    assert capsys.readouterr().out == "1\n"
    env.from_collection([1]).map(float, Types.DOUBLE()).map(lambda _: [1], Types.TUPLE([Types.DOUBLE()])).print()
    env.execute()
    assert capsys.readouterr().out == "(1.0)\n"


def test_what_never_leaves_its_chain_in_a_wrong_form_does_not_stop_the_job(run):
    loose = Types.MAP(Types.STRING(), Types.STRING())
    assert run(lambda env: env.from_collection([7]).map(lambda n: {"n": n}, loose).map(lambda d: d["n"])) == [7]


@pytest.mark.parametrize("sink", ["print", "discard", "add_sink", "results"])
def test_what_leaves_it_in_a_wrong_form_names_its_operator(env, sink):
    stream = env.from_collection([7]).map(lambda n: {"n": n}, Types.MAP(Types.STRING(), Types.STRING())).name("Loads")
    with pytest.raises(TypeMismatch, match=r"Loads \(uid .*\) failed: TypeMismatch: 7 \(int\) does not fit STRING"):
        if sink == "results":
            list(stream.execute_and_collect())
        else:
            getattr(stream, sink)(*([print] if sink == "add_sink" else []))
            env.execute()


def test_a_source_hands_out_rows_even_to_its_own_chain(run):
    named = Types.ROW_NAMED(["a"], [Types.INT()])
    assert run(lambda env: env.generate(lambda n: (n,), 1000, 1, named).map(repr)) == ["Row(a=0)"]
    assert run(lambda env: env.from_collection([{"a": 1}], named).map(lambda row: Row(row.a))) == [Row(1)]
