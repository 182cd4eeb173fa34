"""Streams and environments show their plan: as text, and as a graph for notebooks. Nothing runs for it."""

import copy
import pickle
import xml.etree.ElementTree as ET

import pytest

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import NothingToExecute
from penstock.service.launch.submission import with_defaults

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def env():
    def refuse(*_):
        raise AssertionError("showing something has started a job")

    with with_defaults(cluster=refuse):
        yield StreamExecutionEnvironment().set_parallelism(2)


def drawn(shown):
    return ET.fromstring(shown._repr_html_())


def titles(shown):
    return [text.text for text in drawn(shown).iter(f"{SVG}text") if text.get("font-weight")]


def test_an_environment_shows_its_program(env):
    assert repr(env) == "StreamExecutionEnvironment with parallelism 2, no operators yet"
    assert "<svg" not in env._repr_html_()
    env.from_collection([1]).map(str).name("Text <b>").print()
    assert repr(env) == "StreamExecutionEnvironment with parallelism 2\n" + env.explain().rstrip()
    assert titles(env) == ["Source: Collection Source", "Text <b>"]
    assert "→ Sink: Print to Std. Out" in "".join(drawn(env).itertext())
    assert "← REBALANCE from Collection Source" in "".join(drawn(env).itertext())


def test_a_stream_shows_only_what_its_records_come_from(env):
    first = env.from_collection([1], Types.INT()).name("First")
    first.map(str).name("Left").print()
    right = env.from_collection([2]).name("Second").map(str).name("Right")
    assert titles(right) == ["Source: Second", "Right"]
    assert repr(right).splitlines()[0] == "DataStream of String from 'Right'"
    assert repr(first).splitlines()[0] == "DataStream of Integer from 'First'"
    assert repr(right.union(first)).splitlines()[0] == "DataStream from 'Right' and 'First'"
    assert repr(right.key_by(len)).splitlines()[0] == "KeyedStream of String from 'Right'"


def test_the_uids_of_a_stream_are_those_of_the_program(env):
    env.from_collection([1]).map(str).print()
    second = env.from_collection([2]).map(len)
    second.print()
    (line,) = [line for line in repr(second).splitlines() if "- Map" in line]
    assert line in env.explain().splitlines()


def test_a_program_that_cannot_run_says_why(env):
    stream = env.from_collection([1]).uid("same").map(str).uid("same")
    assert repr(stream).startswith("DataStream: uid 'same' is given to 2 operators")
    assert repr(env).startswith("StreamExecutionEnvironment: uid 'same'")
    assert "uid 'same'" in "".join(drawn(env).itertext())


def test_a_source_alone_can_be_explained(env):
    with pytest.raises(NothingToExecute):
        env.explain()
    env.from_collection([1]).name("Numbers")
    assert "- Numbers [uid numbers-0, parallelism 1]" in env.explain()
    with pytest.raises(NothingToExecute):
        env.execute()
    env.from_collection([2]).name("Others").map(str)
    assert "Numbers" not in env.explain(), "a source that nothing reads is no part of the program"
    env.close()
    with pytest.raises(NothingToExecute):
        env.explain()


def test_an_explanation_is_a_text_and_a_picture(env):
    env.from_collection([1]).map(str).name("Text").print()
    explained = env.explain("words")
    assert isinstance(explained, str) and repr(explained) == str(explained) == explained
    assert explained.startswith("words: STREAMING, 2 slots")
    assert titles(explained) == ["Source: Collection Source", "Text"]
    for copied in (pickle.loads(pickle.dumps(explained)), copy.deepcopy(explained)):
        assert copied == explained and type(copied) is str
