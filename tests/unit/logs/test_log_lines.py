"""Levels, lines, limits and formats of logging."""

import json
import logging
import os
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.logs.levels import _WORDS, apply, check_levels, current, levels_of
from penstock.base.logs.log_formats import formatter
from penstock.base.logs.log_lines import Allowance, Line, Origin, record_of, show
from penstock.base.logs.log_options import LogSettings, log_settings
from penstock.engine.observe.log_capture import CUT, LogCapture
from penstock.errors import ConfigurationError

ORIGIN = Origin("a" * 32, "orders", "", "", 1, 4, 2)
COUNT = Origin("a" * 32, "orders", "Count", "count-1", 1, 4, 2)


@pytest.fixture(autouse=True)
def _levels_stay():
    before = current()
    yield
    apply({**dict.fromkeys(current(), ""), **before})


# --- levels ---
def test_levels_come_from_options_and_are_applied():
    levels = levels_of({"logging.level.root": "info", "logging.level.a.b": "TRACE", "logging.format": "json"})
    assert levels == {"root": "info", "a.b": "TRACE"}
    apply(levels)
    assert logging.getLogger().level == logging.INFO
    assert logging.getLogger("a.b.c").getEffectiveLevel() == 5
    assert {name: current()[name] for name in levels} == {"root": "INFO", "a.b": "TRACE"}
    apply({"a.b": ""})
    assert logging.getLogger("a.b.c").getEffectiveLevel() == logging.INFO
    assert "a.b" not in current()


@pytest.mark.parametrize("word", _WORDS)
def test_every_level_survives_the_way_to_a_slot(word):
    apply({"way.to.slot": word})
    level = logging.getLogger("way.to.slot").level
    told = current()
    logging.getLogger("way.to.slot").setLevel(logging.NOTSET)
    apply(told)
    assert logging.getLogger("way.to.slot").level == level


def test_a_level_without_a_name_becomes_the_next_one_below():
    logging.getLogger("between").setLevel(25)
    assert current()["between"] == "INFO"


@pytest.mark.parametrize("levels", [{"root": "LOUD"}, {"": "INFO"}])
def test_levels_that_there_are_not_are_refused(levels):
    with pytest.raises(ConfigurationError):
        check_levels(levels)


@pytest.mark.parametrize(
    "options",
    [
        {"logging.format": "xml"},
        {"logging.max-lines-per-second": "-1"},
        {"logging.max-lines-per-second": "many"},
        {"logging.max-line-length": "10"},
        {"logging.level.x": "LOUD"},
    ],
)
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(ConfigurationError):
        log_settings(options)


# --- what a slot takes ---
@contextmanager
def captured(settings=None, room=None):
    """What a logger says in a slot; `room` is how many lines there is room for."""
    lines = []

    def send(line):
        if room is not None and len(lines) >= room[0]:
            return False
        lines.append(line)
        return True

    handler = LogCapture(ORIGIN, settings or LogSettings(), send)
    logger = logging.getLogger("captured")
    logger.propagate, logger.handlers = False, [handler]
    logger.setLevel(logging.DEBUG)
    try:
        yield logger, lines
    finally:
        logger.handlers = []


def test_a_line_says_what_was_logged_and_where():
    with captured() as (logger, lines):
        logger.info("seen %d of %s", 3, "b")
        try:
            raise ValueError("no")
        except ValueError:
            logger.exception("it failed")
    first, second = lines
    assert (first.text, first.level, first.logger, first.origin) == ("seen 3 of b", logging.INFO, "captured", ORIGIN)
    assert os.path.basename(first.path) == "test_log_lines.py"
    assert second.error.startswith("Traceback") and second.error.endswith("ValueError: no")


def test_a_line_that_cannot_be_made_harms_nobody():
    with captured() as (logger, lines):
        logger.info("%d", "no number")
        logger.info("and on")
    assert [line.text for line in lines][-1] == "and on"
    assert "1 lines were left out" in lines[0].text


def test_long_lines_are_cut():
    with captured(LogSettings(line_length=100)) as (logger, lines):
        logger.info("x" * 1000)
    assert lines[0].text == "x" * 100 + CUT


def test_a_chatty_function_is_limited_and_told_so():
    with captured(LogSettings(lines_per_second=400)) as (logger, lines):  # 100 for each of four slots
        for number in range(5000):
            logger.info("line %d", number)
        logger.error("the end")
    assert lines[0].text == "line 0"
    assert lines[-1].text == "the end"
    left_out = [line.text for line in lines if "were left out" in line.text]
    assert "a slot may log 100 a second (logging.max-lines-per-second)" in left_out[-1]
    passed = sum(line.text.startswith("line") for line in lines)
    assert passed + sum(int(text.split()[0]) for text in left_out) == 5000
    assert passed < 5000


def test_without_room_lines_are_counted_until_there_is_some():
    room = [1]
    with captured(room=room) as (logger, lines):
        for number in range(5):
            logger.info("line %d", number)
        room[0] = 100
        logger.info("again")
    assert [line.text for line in lines][0::2] == ["line 0", "again"]
    assert lines[1].text.startswith("4 lines were left out")


@given(st.lists(st.floats(0, 10), min_size=1, max_size=200), st.integers(1, 20))
def test_an_allowance_never_lets_more_through_than_it_says(steps, per_second):
    allowance, now, passed = Allowance(per_second, 0.0), 0.0, 0
    for step in steps:
        now += step
        passed += allowance.takes(now)
        assert passed <= per_second * (now + 2) + 1e-6


# --- what the driver shows ---
LINE = Line(1_800_000_000.25, logging.WARNING, "my.code", "seen", COUNT, "", "/p/code.py", 7, "f", "MainThread", 99)


def test_a_line_reaches_the_handlers_of_its_logger(caplog):
    caplog.set_level(logging.CRITICAL)
    caplog.handler.setLevel(logging.NOTSET)
    show(LINE._replace(level=logging.DEBUG))  # its level was judged in the slot
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == ("my.code", "DEBUG", "[orders: Count (2/4)] seen")
    assert (record.created, record.process) == (LINE.created, 99)


def test_text_and_json():
    text = formatter("text").format(record_of(LINE))
    assert text.endswith(" WARNING my.code: [orders: Count (2/4)] seen")
    said = json.loads(formatter("json").format(record_of(LINE._replace(error="Traceback"))))
    assert said == {
        "time": "2027-01-15T08:00:00.250Z",
        "level": "WARNING",
        "logger": "my.code",
        "message": "seen",
        "job_id": "a" * 32,
        "job_name": "orders",
        "attempt": 2,
        "operator": "Count",
        "operator_uid": "count-1",
        "subtask": 1,
        "place": "code.py:7",
        "exception": "Traceback",
        "process": 99,
    }


def test_lines_of_no_operator_name_their_slot():
    assert record_of(LINE._replace(origin=ORIGIN)).getMessage() == "[orders: slot 2/4] seen"


def test_functions_in_this_process_are_named_too():
    own = logging.LogRecord("x", logging.INFO, "f.py", 1, "hello", (), None)
    assert formatter("text", lambda: COUNT).format(own).endswith("x: [orders: Count (2/4)] hello")
    assert json.loads(formatter("json", lambda: COUNT).format(own))["operator"] == "Count"
    assert "operator" not in json.loads(formatter("json").format(own))
