"""Whole messages between a client and the server of queryable state: a length of four bytes, and JSON.

The server speaks first. Its greeting has a random number; where there is a token, the client answers with a proof that
it knows the token, and gets one in return. The token itself does not travel. Then every message of the client has an
id, and so has the server's answer to it.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from typing import Any

from penstock import errors
from penstock.engine.queryable.plain_values import from_json, key_to_json, value_to_json
from penstock.engine.queryable.query_requests import Cut, Entry, QueryAnswer, QueryRequest
from penstock.errors import PenstockError, QueryError

GREETING, VERSION = "penstock queryable state", 1
MOST_REQUEST_BYTES = 1 << 20
MOST_MESSAGE_BYTES = 64 << 20


class BadMessage(QueryError):
    """An error of the other side against the protocol."""


def pack(message: dict[str, Any], most: int = MOST_MESSAGE_BYTES) -> bytes:
    """Return a message as bytes, with its length in front. Raise QueryError if it is longer than `most`."""
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > most:
        raise QueryError(
            f"a message of {len(body)} bytes is above the limit of {most} bytes: ask for fewer keys, or for pages"
        )
    return len(body).to_bytes(4, "big") + body


class Unpacker:
    """Gathers bytes until messages are whole."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the messages that are complete now."""
        self._held += data
        while len(self._held) >= 4:
            length = int.from_bytes(self._held[:4], "big")
            if length > self._most:
                raise BadMessage(f"a message of {length} bytes is above the limit of {self._most}")
            if len(self._held) < 4 + length:
                return
            body = bytes(self._held[4 : 4 + length])
            del self._held[: 4 + length]
            yield _message(body)


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise BadMessage("a message is not JSON") from None
    if not isinstance(message, dict):
        raise BadMessage("a message is not a JSON object")
    return message


def proof(token: str, side: str, nonces: tuple[str, str]) -> str:
    """Return a proof that this side knows the token. The proofs of the two sides are never equal."""
    return hmac.new(token.encode(), "\n".join((side, *nonces)).encode(), "sha256").hexdigest()


# --- requests and answers ---
def request_to_json(request: QueryRequest) -> dict[str, Any]:
    """Return a request as JSON. Fields that are not set are left out."""
    keys = None if request.keys is None else [key_to_json(key) for key in request.keys]
    fields = {"keys": keys, "groups": request.key_groups, "limit": request.limit, "token": request.token}
    return {"name": request.name, **{name: value for name, value in fields.items() if value is not None}}


def request_from_json(sent: Any) -> QueryRequest:
    """Return the request in a client's JSON. Raise an error if it is malformed."""
    try:
        keys, groups = sent.get("keys"), sent.get("groups")
        return QueryRequest(
            sent["name"],
            None if keys is None else tuple(from_json(key) for key in keys),
            None if groups is None else tuple(groups),
            sent.get("limit"),
            sent.get("token"),
        )
    except PenstockError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise QueryError(f"this is not a request: {error}") from None


def answer_to_json(answer: QueryAnswer) -> dict[str, Any]:
    """Return an answer as JSON."""
    cut = answer.cut
    return {
        "name": answer.name,
        "kind": answer.kind,
        "cut": [cut.attempt, cut.epoch, cut.processing_time, cut.slot, cut.step],
        "keyed": answer.keys is not None,
        "next": answer.next_token,
        "entries": [[value_to_json(part) for part in _parts(entry)] for entry in answer.entries],
    }


def _parts(entry: Entry) -> tuple[Any, ...]:
    return (entry.key, entry.value) if entry.found else (entry.key,)


def answer_from_json(sent: dict[str, Any]) -> QueryAnswer:
    """Return the answer in a server's JSON."""
    entries = [Entry(from_json(e[0]), len(e) > 1, from_json(e[1]) if len(e) > 1 else None) for e in sent["entries"]]
    keys = tuple(entry.key for entry in entries) if sent["keyed"] else None
    answer = QueryAnswer(sent["name"], sent["kind"], Cut(*sent["cut"]), keys, sent["next"])
    answer.__dict__["entries"] = tuple(entries)
    return answer


def error_to_json(error: BaseException) -> dict[str, str]:
    """Return an error as JSON: its message, and the nearest of its classes that `penstock.errors` has."""
    kind = next((base for base in type(error).__mro__ if getattr(errors, base.__name__, None) is base), QueryError)
    return {"kind": kind.__name__, "message": str(error)}


def error_from_json(sent: Any) -> PenstockError:
    """Return the error in a server's JSON. An unknown class becomes QueryError."""
    kind = getattr(errors, str(sent.get("kind")), None)
    known = kind if isinstance(kind, type) and issubclass(kind, PenstockError) else QueryError
    return known(str(sent.get("message")))
