"""Less common functions of texts: encodings, checks, URLs, hashes and others."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote_plus, unquote_plus, urlsplit

from penstock.table.functions.library.printf import printf
from penstock.table.functions.typing.coercion import TEXTS
from penstock.table.functions.typing.registry import Unfit, register, rowwise
from penstock.table.functions.typing.result_types import (
    ANY,
    BINARY,
    INTEGER,
    TEXT,
    TEXT_OR_BYTES,
    alike,
    either,
    fits,
    signature,
)
from penstock.table.logical.rex import Rex
from penstock.table.types import data_types as t

_STRING, _INT, _BIGINT, _BOOLEAN, _BYTES = (
    t.DataTypes.STRING(),
    t.IntType(),
    t.BigIntType(),
    t.BooleanType(),
    t.DataTypes.BYTES(),
)


# --- characters ---
def _ascii(text: str) -> int:
    """Return the first byte as a signed number."""
    first = text.encode()[:1]
    return int.from_bytes(first, "big", signed=True) if first else 0


def _chr(code: int) -> str:
    return "" if code < 0 else chr(code & 255)


def _overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    size = len(new) if length is None else length
    if not 0 < start <= len(text):
        return text
    rest = text[start - 1 + size :] if size > 0 else ""
    return text[: start - 1] + new + rest


def _overlaid(kinds: Sequence[t.DataType]) -> t.DataType:
    lengths = [kind.length for kind in kinds[:2] if isinstance(kind, TEXTS)]
    return t.VarCharType(min(sum(lengths), t.LONGEST))


def _translation_type(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
    args, _ = signature(TEXT, TEXT, TEXT, result=_STRING)(args)
    return args, t.VarCharType(t.LONGEST, args[0].type.is_nullable)


def _translate(text: str | None, old: str | None, new: str | None) -> str | None:
    if text is None or old is None:
        return text
    table: dict[str, str] = {}
    for index, char in enumerate(old):
        table.setdefault(char, new[index] if new is not None and index < len(new) else "")
    return "".join(table.get(char, char) for char in text)


def _elt(index: int | None, *values: Any) -> Any:
    return values[index - 1] if index is not None and 1 <= index <= len(values) else None


def _elt_types(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
    if len(args) < 2 or not fits(args[0], INTEGER) or not all(fits(arg, TEXT_OR_BYTES) for arg in args[1:]):
        raise Unfit("(a whole number, text or bytes, ...)")
    fitted, kind = alike(args[1:])
    return (args[0], *fitted), kind.nullable()


# --- searching ---
def _instr(text: str, part: str, start: int = 1, nth: int = 1) -> int:
    """Return the position of the nth occurrence, or 0. A start below 0 searches from the end."""
    if nth < 1:
        raise ValueError(f"there is no occurrence {nth}")
    if start > 0:
        at = start - 2
        for _ in range(nth):
            at = text.find(part, at + 1)
            if at < 0:
                return 0
        return at + 1
    at = len(text) + start + 1 if start else -1
    for _ in range(nth):
        at = text.rfind(part, 0, at - 1 + len(part)) if at > 0 else -1
        if at < 0:
            return 0
    return at + 1


def _locate(part: str, text: str, start: int = 1) -> int:
    return text.find(part, max(start - 1, 0)) + 1


def _split_index(text: str, separator: Any, index: int) -> str | None:
    parts = _split(text, chr(separator) if isinstance(separator, int) else separator)
    return parts[index] if 0 <= index < len(parts) else None


def _split(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else [text]


def _split_to_array(text: str, delimiter: str) -> list[str]:
    if not text:
        return []
    return text.split(delimiter) if delimiter else list(text)


def _str_to_map(text: str, between: str = ",", pair: str = "=") -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    if not text:
        return found
    for part in re.split(between, text):
        key, *value = re.split(pair, part, maxsplit=1)
        found[key] = value[0] if value else None
    return found


# --- encodings ---
def _to_base64(value: Any) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def _from_base64(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text):
        raise ValueError("not base64")
    body = text.rstrip("=")
    if len(body) % 4 == 1:
        raise ValueError("the last unit of base64 is too short")
    return base64.b64decode(body + "=" * (-len(body) % 4)).decode("utf-8", "replace")


_CHARSETS = {"UTF-16": "utf-16-be", "UTF-8": "utf-8", "US-ASCII": "ascii", "ISO-8859-1": "latin-1"}


def _encode(text: str, charset: str) -> bytes:
    name = charset.upper()
    data = text.encode(_CHARSETS.get(name, name), "replace")
    return b"\xfe\xff" + data if name == "UTF-16" and text else data


def _decode(data: bytes, charset: str) -> str:
    name = charset.upper()
    return data.decode("utf-16" if name == "UTF-16" else _CHARSETS.get(name, name), "replace")


def _valid_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _make_valid(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# --- URLs and addresses ---
def _url_encode(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


def _url_decode(text: str) -> str | None:
    return None if re.search(r"%(?![0-9A-Fa-f]{2})", text) else unquote_plus(text)


def _parse_url(url: str, part: str, key: str | None = None) -> str | None:
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url):
        return None
    found = urlsplit(url)
    if key is not None:
        pattern = re.compile(rf"(?:^|&){re.escape(key)}=([^&]*)")
        value = pattern.search(found.query) if part == "QUERY" else None
        return value[1] if value else None
    user, at, _ = found.netloc.rpartition("@")
    parts = {
        "HOST": found.netloc.rpartition("@")[2].partition(":")[0] or None,
        "PATH": found.path,
        "QUERY": found.query or None,
        "REF": found.fragment or None,
        "PROTOCOL": found.scheme,
        "FILE": found.path + (f"?{found.query}" if found.query else ""),
        "AUTHORITY": found.netloc or None,
        "USERINFO": user if at else None,
    }
    return parts.get(part)


def _inet_aton(text: str) -> int | None:
    parts = text.split(".")
    if not 1 <= len(parts) <= 4 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    *heads, last = map(int, parts)
    room = 8 * (4 - len(heads))
    if any(head > 255 for head in heads) or last >= 1 << room:
        return None
    value = last
    for index, head in enumerate(heads):
        value |= head << 8 * (3 - index)
    return value


def _inet_ntoa(value: int) -> str | None:
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0)) if 0 <= value < 2**32 else None


# --- hashes ---
def _hash(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode()).hexdigest()


def _sha2(text: str, bits: int) -> str:
    if bits not in (224, 256, 384, 512):
        raise ValueError(f"there is no SHA-2 of {bits} bits: 224, 256, 384, 512")
    return hashlib.new(f"sha{bits}", text.encode()).hexdigest()


# --- checks ---
def _is_alpha(value: Any) -> bool:
    return isinstance(value, str) and value.isalpha()


def _is_digit(value: Any) -> bool:
    return value.isdigit() if isinstance(value, str) else isinstance(value, int)


_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?")


def _is_decimal(value: Any) -> bool:
    return _DECIMAL.fullmatch(value) is not None if isinstance(value, str) else value is not None


def _json_quote(text: str) -> str:
    return json.dumps(text).replace("/", "\\/")


def _json_unquote(text: str) -> str:
    """Return the contents of quotes without escapes. Return other texts unchanged."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    inner = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', text[1:-1])
    try:
        value: str = json.loads(f'"{inner}"', strict=False)
    except ValueError:
        return text
    return value


def register_all() -> None:
    """Register the functions of this module."""
    text = signature(TEXT, result=_STRING)
    register("ASCII", signature(TEXT, result=_INT), rowwise(_ascii))
    register("CHR", signature(INTEGER, result=_STRING, nulls=True), rowwise(_chr))
    register("OVERLAY", signature(TEXT, TEXT, INTEGER, INTEGER, result=_overlaid, optional=1), rowwise(_overlay))
    register("TRANSLATE", _translation_type, rowwise(_translate, nulls=True))
    register("ELT", _elt_types, rowwise(_elt, nulls=True))
    either_kind = either(signature(TEXT, TEXT, result=_BOOLEAN), signature(BINARY, BINARY, result=_BOOLEAN))
    register("STARTSWITH", either_kind, rowwise(lambda value, start: value.startswith(start)))
    register("ENDSWITH", either_kind, rowwise(lambda value, end: value.endswith(end)))
    register("INSTR", signature(TEXT, TEXT, INTEGER, INTEGER, result=_INT, optional=2), rowwise(_instr))
    register("LOCATE", signature(TEXT, TEXT, INTEGER, result=_INT, optional=1), rowwise(_locate))
    separated = either(
        signature(TEXT, TEXT, INTEGER, result=_STRING, nulls=True),
        signature(TEXT, INTEGER, INTEGER, result=_STRING, nulls=True),
    )
    register("SPLIT_INDEX", separated, rowwise(_split_index))
    register("SPLIT", signature(TEXT, TEXT, result=t.ArrayType(_STRING)), rowwise(_split_to_array))
    mapped = either(
        signature(TEXT, result=t.MapType(_STRING, _STRING), nulls=True),
        signature(TEXT, TEXT, TEXT, result=t.MapType(_STRING, _STRING), nulls=True),
    )
    register("STR_TO_MAP", mapped, rowwise(_str_to_map))
    register("PRINTF", signature(TEXT, result=_STRING, more=ANY, nulls=True), rowwise(printf, nulls=True))
    register("TO_BASE64", signature(TEXT_OR_BYTES, result=_STRING), rowwise(_to_base64))
    register("FROM_BASE64", text, rowwise(_from_base64), raises=True)
    register("ENCODE", signature(TEXT, TEXT, result=_BYTES), rowwise(_encode), raises=True)
    register("DECODE", signature(BINARY, TEXT, result=_STRING), rowwise(_decode), raises=True)
    register("IS_VALID_UTF8", signature(BINARY, result=_BOOLEAN), rowwise(_valid_utf8))
    register("MAKE_VALID_UTF8", signature(BINARY, result=_STRING), rowwise(_make_valid))
    register("URL_ENCODE", signature(TEXT, result=_STRING, nulls=True), rowwise(_url_encode))
    register("URL_DECODE", signature(TEXT, result=_STRING, nulls=True), rowwise(_url_decode))
    register("PARSE_URL", signature(TEXT, TEXT, TEXT, result=_STRING, optional=1, nulls=True), rowwise(_parse_url))
    register("INET_ATON", signature(TEXT, result=_BIGINT, nulls=True), rowwise(_inet_aton))
    register("INET_NTOA", signature(INTEGER, result=_STRING, nulls=True), rowwise(_inet_ntoa))
    for name, size in {"MD5": 32, "SHA1": 40, "SHA224": 56, "SHA256": 64, "SHA384": 96, "SHA512": 128}.items():
        register(name, signature(TEXT, result=t.CharType(size)), rowwise(_hash(name.lower())))
    register("SHA2", signature(TEXT, INTEGER, result=t.VarCharType(128)), rowwise(_sha2), raises=True)
    check = signature(ANY, result=_BOOLEAN, nulls=False)
    register("IS_ALPHA", check, rowwise(_is_alpha, nulls=True))
    register("IS_DIGIT", check, rowwise(_is_digit, nulls=True))
    register("IS_DECIMAL", check, rowwise(_is_decimal, nulls=True))
    register("JSON_QUOTE", text, rowwise(_json_quote))
    register("JSON_UNQUOTE", text, rowwise(_json_unquote))
