"""Java's patterns of dates and times, such as yyyy-MM-dd HH:mm:ss, for formatting and parsing."""

from __future__ import annotations

import calendar
import datetime
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
DEFAULT = "yyyy-MM-dd HH:mm:ss"


@dataclass(frozen=True)
class Part:
    """A letter of a pattern with the number of its repetitions, or a text."""

    letter: str
    width: int
    text: str = ""


@functools.lru_cache(maxsize=256)
def parts(pattern: str) -> tuple[Part, ...]:
    """Return the parts of a pattern.

    >>> [part.letter or part.text for part in parts("yyyy 'at' H")]
    ['y', ' ', 'at', ' ', 'H']
    """
    found, index = [], 0
    while index < len(pattern):
        token = _TOKEN.match(pattern, index)
        if token is None:
            raise ValueError(f"the pattern {pattern!r} has an opening quote without a closing quote")
        index = token.end()
        if token[2]:
            found.append(Part(token[2], len(token[0])))
        else:
            quoted = token[1]
            found.append(Part("", 0, token[0] if quoted is None else quoted.replace("''", "'") or "'"))
    return tuple(found)


def finest(pattern: str) -> str | None:
    """Return the smallest unit of a pattern, at most a day, or None if it shows parts of a second.

    >>> finest("yyyy-MM-dd HH")
    'hour'
    """
    letters = {part.letter for part in parts(pattern)}
    if letters & set("SnNA"):
        return None
    units = (("s", "second"), ("m", "minute"), ("HhkKa", "hour"))
    return next((unit for known, unit in units if letters & set(known)), "day")


# --- formatting ---
def format_moment(value: datetime.datetime, pattern: str) -> str:
    """Return a moment as text in a pattern."""
    return "".join(_format_part(value, part) for part in parts(pattern))


def _format_part(value: datetime.datetime, part: Part) -> str:
    if not part.letter:
        return part.text
    show = _FORMATS.get(part.letter)
    if show is None:
        raise ValueError(f"a date has no value for the letter {part.letter} of the pattern")
    return show(value, part.width)


def _pad_number(number: Callable[[datetime.datetime], int]) -> Callable[[datetime.datetime, int], str]:
    return lambda value, width: str(number(value)).zfill(width)


def _year(value: datetime.datetime, width: int) -> str:
    return f"{value.year % 100:02d}" if width == 2 else str(value.year).zfill(width)


def _month(value: datetime.datetime, width: int) -> str:
    name = _MONTHS[value.month - 1]
    return str(value.month).zfill(width) if width < 3 else {3: name[:3], 4: name}.get(width, name[0])


def _weekday(value: datetime.datetime, width: int) -> str:
    name = _DAYS[value.weekday()]
    return name[:3] if width < 4 else {4: name}.get(width, name[0])


def _local_weekday(value: datetime.datetime, width: int) -> str:
    """Return the day of the week. Numbers count from Sunday."""
    return str(value.isoweekday() % 7 + 1).zfill(width) if width < 3 else _weekday(value, width)


def _quarter(value: datetime.datetime, width: int) -> str:
    number = (value.month + 2) // 3
    names = {3: f"Q{number}", 4: f"{('1st', '2nd', '3rd', '4th')[number - 1]} quarter"}
    return str(number).zfill(width) if width < 3 else names.get(width, str(number))


def _week(value: datetime.datetime) -> int:
    """Return the week of the year. Weeks begin on Sunday, and the first week contains the first of January."""
    sunday = value.date() - datetime.timedelta(days=value.isoweekday() % 7)
    if (sunday + datetime.timedelta(days=6)).year > value.year:
        return 1
    first = datetime.date(value.year, 1, 1)
    return ((value.date() - first).days + first.isoweekday() % 7) // 7 + 1


def _fraction(value: datetime.datetime, width: int) -> str:
    return f"{value.microsecond:06d}000"[:width]


def _nano_of_day(value: datetime.datetime) -> int:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return seconds * 1_000_000_000 + value.microsecond * 1000


_FORMATS: dict[str, Callable[[datetime.datetime, int], str]] = {
    "y": _year,
    "u": _year,
    "M": _month,
    "L": _month,
    "d": _pad_number(lambda value: value.day),
    "D": _pad_number(lambda value: value.timetuple().tm_yday),
    "E": _weekday,
    "e": _local_weekday,
    "c": _local_weekday,
    "Q": _quarter,
    "q": _quarter,
    "w": _pad_number(_week),
    "a": lambda value, width: "AM" if value.hour < 12 else "PM",
    "H": _pad_number(lambda value: value.hour),
    "k": _pad_number(lambda value: value.hour or 24),
    "h": _pad_number(lambda value: value.hour % 12 or 12),
    "K": _pad_number(lambda value: value.hour % 12),
    "m": _pad_number(lambda value: value.minute),
    "s": _pad_number(lambda value: value.second),
    "S": _fraction,
    "n": _pad_number(lambda value: value.microsecond * 1000),
    "A": _pad_number(lambda value: _nano_of_day(value) // 1_000_000),
    "N": _pad_number(_nano_of_day),
    "G": lambda value, width: "AD",
}


# --- parsing ---
@functools.lru_cache(maxsize=256)
def _reader(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return a regular expression with a group for each letter, and the letters."""
    regex, letters = [], []
    found = parts(pattern)
    for index, part in enumerate(found):
        if not part.letter:
            regex.append(re.escape(part.text))
            continue
        follows = index + 1 < len(found) and bool(found[index + 1].letter)
        regex.append(f"({_regex_of(part, follows)})")
        letters.append(part.letter + ("t" if part.letter in "ML" and part.width >= 3 else ""))
    return re.compile("".join(regex), re.IGNORECASE), tuple(letters)


def _regex_of(part: Part, follows: bool) -> str:
    letter, width = part.letter, part.width
    if letter in "yu":
        return r"\d{2}" if width == 2 else rf"\d{{{width}}}" if follows else rf"\d{{{min(width, 4)},9}}"
    if letter in "ML" and width >= 3:
        return "|".join(_MONTHS if width == 4 else [month[:3] for month in _MONTHS])
    if letter == "E":
        return "|".join(_DAYS if width == 4 else [day[:3] for day in _DAYS])
    if letter in "XxZ":
        return r"Z|[+-]\d{2}:?(?:\d{2})?"
    known = {"a": "AM|PM", "S": rf"\d{{{width}}}", "z": r"[\w/+-]+", "V": r"[\w/+-]+", "G": "AD|BC"}
    if letter in known:
        return known[letter]
    if letter in "MLdHhkKmsD":
        return rf"\d{{{width}}}" if follows or width > 1 else r"\d{1,3}" if letter == "D" else r"\d{1,2}"
    raise ValueError(f"dates cannot be parsed by the letter {letter} of the pattern {pattern_text(part)}")


def pattern_text(part: Part) -> str:
    """Return a part of a pattern as it is written."""
    return part.letter * part.width or part.text


def parse_moment(text: str, pattern: str) -> datetime.datetime:
    """Return the moment of a text, with a zone if the pattern has one. Raise ValueError if the text does not match."""
    regex, letters = _reader(pattern)
    found = regex.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} does not match the pattern {pattern}")
    return _assemble(dict(zip(letters, found.groups(), strict=True)))


def _assemble(fields: dict[str, str]) -> datetime.datetime:
    year = fields.get("y") or fields.get("u") or "1970"
    number = int(year) + 2000 if len(year) == 2 else int(year)
    month = _month_number(fields)
    day = int(fields.get("d", "1"))
    hour = _hour(fields)
    fraction = int(f"{fields.get('S', ''):0<6}"[:6])
    day = min(day, calendar.monthrange(number, month)[1]) if day <= 31 else day
    value = datetime.datetime(number, month, day, hour, int(fields.get("m", 0)), int(fields.get("s", 0)), fraction)
    if "D" in fields:
        value = value.replace(month=1, day=1) + datetime.timedelta(days=int(fields["D"]) - 1)
    zone = fields.get("X") or fields.get("x") or fields.get("Z") or fields.get("z") or fields.get("V")
    return value if zone is None else value.replace(tzinfo=_zone(zone))


def _month_number(fields: dict[str, str]) -> int:
    name = fields.get("Mt") or fields.get("Lt")
    if name:
        return [month[:3].lower() for month in _MONTHS].index(name[:3].lower()) + 1
    return int(fields.get("M") or fields.get("L") or 1)


def _hour(fields: dict[str, str]) -> int:
    if "h" in fields or "K" in fields:
        hour = int(fields.get("h") or fields.get("K") or 0) % 12
        return hour + 12 if fields.get("a", "AM").upper() == "PM" else hour
    return int(fields.get("H") or int(fields.get("k", "0")) % 24)


def _zone(text: str) -> datetime.tzinfo:
    if text.upper() == "Z":
        return datetime.UTC
    offset = re.fullmatch(r"([+-])(\d{2}):?(\d{2})?", text)
    if offset is None:
        return ZoneInfo(text)
    minutes = int(offset[2]) * 60 + int(offset[3] or 0)
    return datetime.timezone(datetime.timedelta(minutes=-minutes if offset[1] == "-" else minutes))
