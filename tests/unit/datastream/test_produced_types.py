"""ResultTypeQueryable: functions that declare the type of their results themselves."""

import pytest

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, MapFunction, ProcessWindowFunction, SourceFunction
from penstock.datastream.functions import CoMapFunction
from penstock.datastream.utils import ResultTypeQueryable
from penstock.datastream.window import CountTumblingWindowAssigner
from penstock.errors import JobFailed

REAL = Types.DOUBLE()


class Real(ResultTypeQueryable):
    def get_produced_type(self):
        return REAL


class Same(MapFunction, Real):
    def map(self, value):
        return value


class Keyed(KeyedProcessFunction, Real):
    def process_element(self, value, ctx):
        yield value


class Either(CoMapFunction, Real):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


class First(ProcessWindowFunction, Real):
    def process(self, key, context, elements):
        yield elements[0]


class One(SourceFunction, Real):
    def run(self, ctx):
        ctx.collect(1)

    def cancel(self):
        pass


BUILD = {
    "map": lambda env: env.from_elements(1).map(Same()),
    "process": lambda env: env.from_elements(1).key_by(lambda v: v).process(Keyed()),
    "connect": lambda env: env.from_elements(1).connect(env.from_elements(1)).map(Either()),
    "window": lambda env: (
        env.from_elements(1).key_by(lambda v: v).window(CountTumblingWindowAssigner(1)).process(First())
    ),
    "source": lambda env: env.add_source(One()),
}


@pytest.mark.parametrize("build", BUILD.values(), ids=BUILD)
def test_the_type_that_a_function_declares_is_that_of_its_results(run, env, build):
    assert build(env).get_type() == REAL
    assert {repr(value) for value in run(build)} == {"1.0"}


def test_a_type_of_the_call_counts_more(env):
    assert env.from_elements(1).map(Same(), Types.INT()).get_type() == Types.INT()


def test_results_are_checked_against_it(run):
    with pytest.raises(JobFailed, match=r"'a' .str. does not fit DOUBLE"):
        run(lambda env: env.from_elements("a").map(Same()))


def test_what_is_no_type_is_refused(env):
    class Wrong(Same):
        def get_produced_type(self):
            return "DOUBLE"

    with pytest.raises(TypeError, match=r"get_produced_type of Wrong must return a TypeInformation .*, not 'DOUBLE'"):
        env.from_elements(1).map(Wrong())
