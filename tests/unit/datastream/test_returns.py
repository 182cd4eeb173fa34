"""returns() declares a type after the fact."""

import pytest

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import TypeMismatch
from penstock.testing import in_process


def test_returns_checks_and_coerces():
    with in_process():
        env = StreamExecutionEnvironment()
        stream = env.from_elements(1, 2).map(lambda x: x).returns(Types.DOUBLE())
        assert stream.get_type() == Types.DOUBLE()
        with stream.execute_and_collect() as results:
            assert [type(value) for value in results] == [float, float]
        env.from_elements(1).map(lambda x: "a").name("Words").returns(Types.INT()).discard()
        with pytest.raises(TypeMismatch, match="Words"):
            env.execute()


def test_returns_takes_a_type():
    with pytest.raises(TypeError, match="returns: the argument type_info must be a TypeInformation"):
        StreamExecutionEnvironment().from_elements(1).map(str).returns("str")
