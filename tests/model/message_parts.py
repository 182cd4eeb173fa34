"""Random messages in JSON, CSV and Avro: sound ones, odd ones and broken ones."""

import base64
import datetime as dt
import io
import json
import string

import fastavro
from hypothesis import strategies as st

from penstock.common import Types

# --- JSON ---
ODD_JSON = [
    *(
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-0.0",
        "1",
        "-7",
        "1.0",
        "1e2",
        "0.1",
        "1e400",
        "1e-400",
        "3.4028236e38",
        "1.5555",
    ),
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "Inf",
        "01",
        "1.",
        ".5",
        "+1",
        "127",
        "128",
        "32768",
        "2147483648",
        "9007199254740993",
    ),
    *("9223372036854775807", "9223372036854775808", "123456789012345678901234567890"),
    *('""', '"1"', '" 1"', '"1_0"', '"true"', '"TRUE"', '"NaN"', '"x"', '"\\u0061"', '"\\ud83d\\ude00"', '"\\ud800"'),
    *(
        '"\\\\ud83d\\ude00"',
        '"\\u0000"',
        '"a\tb"',
        '"aGk="',
        '"2024-02-30"',
        '"24:00:00"',
        '"10:00+02:00"',
        '"2024-01-01T00:00Z"',
    ),
    *("[]", "[1]", "[null]", "{}", '{"x":1}', '{"x":"1","y":2}', "[[1]]", "", "nul", '"', "{", "[", "}", "]"),
]
DATES = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
TIMES = [dt.time(0), dt.time(23, 59, 59, 999999), dt.time(10, 0, 0, 500000)]
MOMENTS = [dt.datetime.combine(date, time) for date in DATES for time in TIMES]
TEXTS = st.text(max_size=6) | st.sampled_from(["", "a,b", 'q"q', "ä€😀", "\\ud800", "a\nb", "null", "},{", "]"])


def _json(values):
    return values.map(lambda value: json.dumps(value, ensure_ascii=False)) | values.map(json.dumps)


def _moment_texts(moments):
    forms = (
        st.sampled_from(moments).map(lambda moment: moment.isoformat()),
        st.sampled_from(moments).map(lambda moment: moment.isoformat() + "Z"),
        st.sampled_from(moments).map(lambda moment: str(moment)),
    )
    return st.one_of(*forms)


KINDS = {
    "BOOLEAN": (Types.BOOLEAN(), "BOOLEAN", _json(st.booleans())),
    "BYTE": (Types.BYTE(), "TINYINT", _json(st.integers(-128, 127))),
    "SHORT": (Types.SHORT(), "SMALLINT", _json(st.integers(-(2**15), 2**15 - 1))),
    "INT": (Types.INT(), "INT", _json(st.integers(-(2**31), 2**31 - 1))),
    "LONG": (Types.LONG(), "BIGINT", _json(st.integers(-(2**63), 2**63 - 1))),
    "FLOAT": (Types.FLOAT(), "FLOAT", _json(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9))),
    "DOUBLE": (Types.DOUBLE(), "DOUBLE", _json(st.floats() | st.integers())),
    "STRING": (Types.STRING(), "STRING", _json(TEXTS)),
    "DATE": (Types.SQL_DATE(), "DATE", _json(st.sampled_from(DATES).map(str))),
    "TIME": (Types.SQL_TIME(), "TIME(0)", _json(st.sampled_from(TIMES).map(str))),
    "TIMESTAMP": (Types.SQL_TIMESTAMP(), "TIMESTAMP(6)", _json(_moment_texts(MOMENTS))),
    "INSTANT": (Types.INSTANT(), "TIMESTAMP_LTZ(6)", _json(_moment_texts(MOMENTS))),
    "DECIMAL": (Types.BIG_DEC(), "DECIMAL(10, 2)", st.decimals(-100, 100, places=2).map(str)),
    "BYTES": (
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        "BYTES",
        _json(st.binary(max_size=4).map(lambda value: base64.b64encode(value).decode())),
    ),
    "LIST": (Types.LIST(Types.LONG()), "ARRAY<BIGINT>", _json(st.lists(st.integers(0, 9) | st.none(), max_size=3))),
    "MAP": (
        Types.MAP(Types.STRING(), Types.LONG()),
        "MAP<STRING, BIGINT>",
        _json(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9) | st.none(), max_size=3)),
    ),
    "ROW": (
        Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.STRING()]),
        "ROW<x BIGINT, y STRING>",
        _json(
            st.fixed_dictionaries({}, optional={"x": st.integers(0, 9), "y": st.text(max_size=2), "z": st.booleans()})
        ),
    ),
}
"""By name: the type in streams, in tables, and texts of JSON that have it."""


@st.composite
def fields_of(draw, kinds=tuple(KINDS)):
    """Names of fields and their kinds."""
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    return [(string.ascii_lowercase[index], kind) for index, kind in enumerate(chosen)]


@st.composite
def json_messages(draw, fields, broken=True, least=1):
    """Messages of one object each, if nothing is broken."""
    return [draw(json_message(fields, broken)) for _ in range(draw(st.integers(least, 6)))]


@st.composite
def json_message(draw, fields, broken):
    odd = broken and draw(st.integers(0, 3)) == 0
    pairs = []
    for name, kind in fields:
        text = (
            draw(st.sampled_from(ODD_JSON)) if odd and draw(st.booleans()) else draw(KINDS[kind][2] | st.just("null"))
        )
        if draw(st.integers(0, 7)):
            pairs.append(f"{json.dumps(name)}{draw(st.sampled_from([':', ' : ']))}{text}")
    if draw(st.integers(0, 3)) == 0:
        pairs.append(f'"extra":{draw(st.sampled_from(ODD_JSON if odd else ["1", "{}", "[[1]]", "null"]))}')
    if odd and pairs and draw(st.booleans()):
        pairs.append(draw(st.sampled_from(pairs)))
    joined = draw(st.sampled_from([",", ", ", ",\n "])).join(draw(st.permutations(pairs)))
    message = f"{{{joined}}}{draw(st.sampled_from(['', '', ' ', chr(10)]))}".encode(errors="surrogatepass")
    return draw(damaged(message)) if odd and draw(st.booleans()) else message


@st.composite
def damaged(draw, message):
    """A message that somebody has cut, joined, or filled with something else."""
    at = draw(st.integers(0, len(message)))
    part = draw(
        st.sampled_from([b"", b"{", b"}", b"[", b"]", b",", b'"', b"\xff", b"\xef\xbb\xbf", b"\n", b"\0", b"\\"])
    )
    twice = [message + between + message for between in (b"", b",", b"\n")]
    cut = [message[:at], message[at:], message[:at] + part + message[at:]]
    return draw(
        st.sampled_from([message, *cut, *twice, b"[" + message + b"]", part, part + message, b"", b" ", b"null"])
    )


# --- CSV ---
@st.composite
def csv_messages(draw, fields):
    """Lines, most of them with the right number of fields."""
    texts = st.sampled_from(
        ["", "1", "-7", "1.5", "true", "x", "ä", "2024-02-29", "10:00:00", "2024-02-29 10:00:00", "n/a"]
    )
    messages = []
    for _ in range(draw(st.integers(1, 6))):
        values = [draw(_csv_text(kind) if draw(st.integers(0, 6)) else texts) for _, kind in fields]
        if draw(st.integers(0, 15)) == 0:
            values = draw(st.sampled_from([values[:-1], [*values, "more"], []]))
        line = ",".join(values).encode(errors="surrogatepass")
        if draw(st.integers(0, 9)) == 0:
            line = draw(damaged(line))
        messages.append(line + draw(st.sampled_from([b"", b"", b"\n", b"\r\n", b"\n\n"])))
    return messages


def _csv_text(kind):
    return {
        "BOOLEAN": st.sampled_from(["true", "false", "True"]),
        "STRING": st.sampled_from(["a", "", '"a,b"', '"q""q"', "a b", "#x", "n/a"]),
        "DOUBLE": st.floats().map(repr),
        "DATE": st.sampled_from(DATES).map(str),
        "TIMESTAMP": st.sampled_from(MOMENTS).map(str),
        "DECIMAL": st.decimals(-100, 100, places=3).map(str),
    }.get(kind, st.integers(-130, 130).map(str))


# --- Avro ---
AVRO = {
    "boolean": ("boolean", st.booleans()),
    "int": ("int", st.integers(-(2**31), 2**31 - 1)),
    "long": ("long", st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)),
    "float": ("float", st.floats(width=32)),
    "double": ("double", st.floats()),
    "string": ("string", st.text(max_size=5)),
    "bytes": ("bytes", st.binary(max_size=5)),
    "date": ({"type": "int", "logicalType": "date"}, st.sampled_from(DATES)),
    "time": ({"type": "int", "logicalType": "time-millis"}, st.sampled_from([dt.time(0), dt.time(23, 59, 59, 999000)])),
    "micros of a day": ({"type": "long", "logicalType": "time-micros"}, st.sampled_from(TIMES)),
    "moment": (
        {"type": "long", "logicalType": "timestamp-micros"},
        st.sampled_from(MOMENTS).map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    ),
    "millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        st.sampled_from(
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999000, dt.UTC), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]
        ),
    ),
    "local": ({"type": "long", "logicalType": "local-timestamp-micros"}, st.sampled_from(MOMENTS)),
    "enum": ({"type": "enum", "name": "Suit", "symbols": ["CLUBS", "HEARTS"]}, st.sampled_from(["CLUBS", "HEARTS"])),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        st.decimals(-100, 100, places=2),
    ),
    "array": ({"type": "array", "items": "long"}, st.lists(st.integers(0, 9), max_size=3)),
}
"""By name: a type of Avro, and values of it as fastavro writes them."""


@st.composite
def avro_schemas(draw, depth=1, path=""):
    """A record, and records of it. A name of a type has the path of its field, so that no type has another's name."""
    fields, values = [], {}
    for index in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from([*AVRO, "record"] if depth else list(AVRO)))
        if kind == "record":
            declared, own = draw(avro_schemas(depth - 1, f"{path}_{index}"))
            declared |= {"name": f"inner{path}_{index}"}
        else:
            declared, own = AVRO[kind]
        if kind == "enum":
            declared = declared | {"name": f"Suit{path}_{index}"}
        shape = draw(st.sampled_from(["plain", "null first", "null last"]))
        name = f"f{index}"
        fields.append(
            {"name": name, "type": {"plain": declared, "null first": ["null", declared]}.get(shape, [declared, "null"])}
        )
        values[name] = own if shape == "plain" else own | st.none()
    return {"type": "record", "name": f"r{depth}", "fields": fields}, st.fixed_dictionaries(values)


@st.composite
def avro_messages(draw, schema, records):
    parsed, messages = fastavro.parse_schema(schema), []
    for _ in range(draw(st.integers(1, 6))):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, draw(records))
        message = stream.getvalue()
        if draw(st.integers(0, 9)) == 0:
            at, part = draw(st.integers(0, len(message))), draw(st.binary(max_size=3))
            message = draw(st.sampled_from([message[:at], message[:at] + part + message[at:], message + message, part]))
        messages.append(message)
    return messages
