"""The text form of a pattern: `start(type = 'a') -> middle+(value > start.value) within 10 s`.

    pattern    = element (arrow element)* [skip]
    arrow      = "=>" next | "->" followed_by | "->>" followed_by_any | "!=>" not_next | "!->" not_followed_by
    element    = name quantifier options ["(" condition ")"] limits | "(" pattern ")" quantifier options limits
    quantifier = "" | "?" | "+" | "*" | "{2}" | "{2,}" | "{2,4}"; a "?" behind one of the others makes it optional
    options    = any of "greedy", "consecutive", "combinations", "each" time
    limits     = ["until" "(" condition ")"] ["wait" time] ["within" time]
    skip       = "no skip" | "skip to next" | "skip past last event" | "skip to first|last" name ["or fail"]

`each` is the window time of a loop, `wait` is `within` between the previous and the current event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.cep.conditions import Always, condition_text
from penstock.cep.pattern import GroupPattern, Pattern
from penstock.cep.pattern_tokens import Reader
from penstock.cep.quantifier import ConsumingStrategy, Kind, WithinType
from penstock.cep.skipping import AfterMatchSkipStrategy, NoSkip
from penstock.cep.text_conditions import read_condition
from penstock.common.time import Duration

ARROWS = {
    "=>": ConsumingStrategy.STRICT,
    "->": ConsumingStrategy.SKIP_TILL_NEXT,
    "->>": ConsumingStrategy.SKIP_TILL_ANY,
    "!=>": ConsumingStrategy.NOT_NEXT,
    "!->": ConsumingStrategy.NOT_FOLLOW,
}
_UNITS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_OPTIONS = ("greedy", "consecutive", "combinations", "each")
_INNER = {ConsumingStrategy.STRICT: "consecutive", ConsumingStrategy.SKIP_TILL_ANY: "combinations"}


# --- reading ---


def parse_pattern(text: str, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
    """Return the pattern that a text describes. An error shows where the text is wrong."""
    reader = Reader(text)
    names = frozenset(reader.names_behind(*ARROWS))
    written = reader.cut_off(("skip", "no"), _strategy)  # it stands at the end, and the first element needs it
    pattern = _sequence(reader, names, skip or written)
    reader.expect_end()
    return pattern


def _strategy(reader: Reader) -> AfterMatchSkipStrategy:
    if reader.take("no"):
        reader.expect("skip")
        return AfterMatchSkipStrategy.no_skip()
    reader.expect("skip")
    if reader.take("past"):
        reader.expect("last")
        reader.expect("event")
        return AfterMatchSkipStrategy.skip_past_last_event()
    reader.expect("to")
    if reader.take("next"):
        return AfterMatchSkipStrategy.skip_to_next()
    last = reader.expect_one_of("first", "last") == "last"
    name = reader.name("the name of an element")
    to_name = AfterMatchSkipStrategy.skip_to_last(name) if last else AfterMatchSkipStrategy.skip_to_first(name)
    if reader.take("or"):
        reader.expect("fail")
        return to_name.throw_exception_on_miss()
    return to_name


def _sequence(reader: Reader, names: frozenset[str], skip: AfterMatchSkipStrategy | None) -> Pattern:
    pattern = _element(reader, names, lambda what: Pattern.begin(what, skip))
    while (arrow := reader.take_one_of(*ARROWS)) is not None:
        follow = getattr(pattern, ARROWS[arrow].value)
        pattern = _element(reader, names, follow)
    return pattern


def _element(reader: Reader, names: frozenset[str], make: Any) -> Pattern:
    with reader.errors_here():
        if reader.take("("):
            group = _sequence(reader, names, None)
            reader.expect(")")
            element: Pattern = make(group)
        else:
            element = make(reader.name("the name of an element"))
        _quantifier(reader, element)
        if not isinstance(element, GroupPattern) and reader.take("("):
            element.where(read_condition(reader, names))
            reader.expect(")")
        _limits(reader, element, names)
    return element


def _quantifier(reader: Reader, element: Pattern) -> None:
    sign = reader.take_one_of("?", "+", "*", "{")
    least, most = 1, None
    if sign == "{":
        least, most = _range(reader)
    options = dict(_options(reader)) if sign not in (None, "?") else {}
    optional = sign in ("?", "*") or (sign is not None and reader.take("?"))
    options.update(_options(reader) if sign not in (None, "?") else ())
    window = options.pop("each", None)
    if sign == "{" and most is not None:
        element.times(least, most, window)
    elif sign in ("+", "*", "{"):
        element.times_or_more(least, window)
    if optional:
        element.optional()
    for option in options:
        getattr(element, "allow_combinations" if option == "combinations" else option)()


def _range(reader: Reader) -> tuple[int, int | None]:
    least = most = reader.whole_number()
    if reader.take(","):
        if reader.take("}"):
            return least, None
        most = reader.whole_number()
    reader.expect("}")
    return least, most


def _options(reader: Reader) -> Iterator[tuple[str, Duration | None]]:
    while (option := reader.take_one_of(*_OPTIONS)) is not None:
        yield option, _time(reader) if option == "each" else None


def _limits(reader: Reader, element: Pattern, names: frozenset[str]) -> None:
    if reader.take("until"):
        reader.expect("(")
        element.until(read_condition(reader, names))
        reader.expect(")")
    if reader.take("wait"):
        element.within(_time(reader), WithinType.PREVIOUS_AND_CURRENT)
    if reader.take("within"):
        element.within(_time(reader))


def _time(reader: Reader) -> Duration:
    number = reader.number()
    unit = reader.expect_one_of(*_UNITS)
    return Duration.of_millis(int(number * _UNITS[unit]))


# --- printing ---


def format_pattern(pattern: Pattern) -> str:
    """Return a pattern as text. Python functions appear by name; without them the text can be parsed again."""
    skip = pattern.get_after_match_skip_strategy()
    return _format_elements(pattern) + ("" if isinstance(skip, NoSkip) else f" {skip}")


def _format_elements(pattern: Pattern) -> str:
    arrows = {strategy: arrow for arrow, strategy in ARROWS.items()}
    text = ""
    for element in pattern.elements():
        arrow = f" {arrows[element.get_quantifier().strategy]} " if text else ""
        text += arrow + _one(element)
    return text


def _one(element: Pattern) -> str:
    if isinstance(element, GroupPattern):
        return f"({_format_elements(element.get_raw_pattern())}){_how_often(element)}{_format_limits(element)}"
    condition = element.get_condition()
    where = "" if isinstance(condition, Always) else f"({condition_text(condition)})"
    how_often = _how_often(element)
    between = " " if where and " " in how_often else ""
    return f"{element.get_name()}{how_often}{between}{where}{_format_limits(element)}"


def _how_often(element: Pattern) -> str:
    quantifier, times = element.get_quantifier(), element.get_times()
    if quantifier.kind is Kind.SINGLE or times is None:
        return "?" if quantifier.is_optional else ""
    most = "" if quantifier.kind is Kind.LOOPING else str(times.most)
    text = "{" + (str(times.least) if most == str(times.least) else f"{times.least},{most}") + "}"
    text = ("+" if text == "{1,}" else text) + ("?" if quantifier.is_optional else "")
    words = [_INNER.get(quantifier.inner_strategy), "greedy" if quantifier.is_greedy else None]
    if times.window_time is not None:
        words.append(f"each {_format_time(times.window_time)}")
    return " ".join([text.replace("+?", "*"), *filter(None, words)])


def _format_limits(element: Pattern) -> str:
    until, text = element.get_until_condition(), ""
    if until is not None:
        text += f" until ({condition_text(until)})"
    for word, kind in (("wait", WithinType.PREVIOUS_AND_CURRENT), ("within", WithinType.FIRST_AND_LAST)):
        limit = element.get_window_size(kind)
        text += "" if limit is None else f" {word} {_format_time(limit)}"
    return text


def _format_time(millis: int) -> str:
    unit = max((unit for unit, length in _UNITS.items() if millis % length == 0), key=_UNITS.__getitem__)
    return f"{millis // _UNITS[unit]} {unit}"
