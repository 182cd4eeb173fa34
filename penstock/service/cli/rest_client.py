"""A client of Flink's REST API that uses Python's own HTTP: requests, uploads, and the server's error texts."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener
from uuid import uuid4

from penstock.service.cli.exit_codes import CommandFailed, NoServer, NotAllowed, NotFound
from penstock.service.rest.server_secret import HEADER as PASS
from penstock.service.rest.server_secret import read_secret

_MOST_REDIRECTS = 3
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Answer:
    """A server's answer to a request that it accepted."""

    body: bytes
    headers: Mapping[str, str]

    def json(self) -> Any:
        """Return the answer as JSON. Raise CommandFailed if it is not JSON, as from a server of another kind."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise CommandFailed(f"the server's answer is not valid JSON: {self.body[:80]!r}") from None


class RestClient:
    """A client of one server. Paths are Flink's, without the version in front."""

    def __init__(
        self, url: str, token: str | None = None, trust: ssl.SSLContext | None = None, timeout: float = 60
    ) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._timeout = timeout
        self._opener = _opener(self.url, trust)

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON at a path. A list among the query's values repeats its name; None is left out."""
        return self._request("GET", _with_query(path, query)).json()

    def read(self, path: str, **query: Any) -> Answer:
        """Return the answer of a path that is not JSON, such as a log."""
        return self._request("GET", _with_query(path, query))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a POST request with a JSON body, and return the JSON answer."""
        return self._request("POST", path, json.dumps(body).encode()).json()

    def patch(self, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Send a PATCH request with a JSON body, and return the JSON answer."""
        return self._request("PATCH", _with_query(path, query), json.dumps(body or {}).encode()).json()

    def delete(self, path: str) -> Any:
        """Send a DELETE request, and return the JSON answer."""
        return self._request("DELETE", path).json()

    def upload(self, path: str, file: str | os.PathLike[str]) -> Any:
        """Send a file under its name, as a form does. Return the JSON answer."""
        with Form(file) as form:
            return self._request("POST", path, form, form.content_type, len(form)).json()

    def _request(
        self,
        method: str,
        path: str,
        data: bytes | Form | None = None,
        content_type: str = "application/json",
        length: int | None = None,
    ) -> Answer:
        url = f"{self.url}/v1{path}"
        for _ in range(_MOST_REDIRECTS + 1):
            request = Request(url, data=data, method=method, headers=self._headers(url, data, content_type, length))
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    return Answer(response.read(), response.headers)
            except HTTPError as error:
                with error:
                    elsewhere = _elsewhere(url, error)
                    if elsewhere is None:
                        raise _refusal(error.code, error.read()) from None
                url = elsewhere
                if isinstance(data, Form):
                    data.rewind()
            except (URLError, HTTPException, OSError) as error:
                raise self._gone(error) from None
        raise CommandFailed(f"{self.url} redirects a request repeatedly: no server seems to be the leader")

    def _headers(self, url: str, data: bytes | Form | None, content_type: str, length: int | None) -> dict[str, str]:
        headers = {"Accept": "application/json, text/plain"}
        owned = read_secret(url)
        if owned is not None:
            headers[PASS] = owned
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if data is not None:
            headers["Content-Type"] = content_type
        if length is not None:
            headers["Content-Length"] = str(length)
        return headers

    def _gone(self, error: Exception) -> CommandFailed:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return NotAllowed(
                f"{self.url} has a certificate that is not trusted ({reason.verify_message}); "
                "name the authority that signed it with --cacert"
            )
        if isinstance(reason, TimeoutError):
            return NoServer(f"the server at {self.url} does not answer within {self._timeout:g} s")
        return NoServer(
            f"no server answers at {self.url} ({_words(reason)}). Start one with `penstock server start`, "
            "or name another with -m host:port"
        )


def _words(reason: object) -> str:
    return (reason.strerror or str(reason)) if isinstance(reason, OSError) else str(reason)


class _StayHere(HTTPRedirectHandler):
    """Handler that follows no redirects. Python would turn all into GET, so `RestClient` follows them itself."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _opener(url: str, trust: ssl.SSLContext | None) -> OpenerDirector:
    """Return an opener that uses the environment's proxies, except on the way to this machine."""
    handlers: list[Any] = [_StayHere]
    if urlsplit(url).hostname in _LOOPBACK:
        handlers.append(ProxyHandler({}))
    if trust is not None:
        handlers.append(HTTPSHandler(context=trust))
    return build_opener(*handlers)


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def segment(text: str) -> str:
    """Return a text in the form of one segment of a path, whatever it contains."""
    return quote(text, safe="")


def _elsewhere(url: str, error: HTTPError) -> str | None:
    """Return the URL to which a server that is not the leader redirects, or None.

    Raise NotAllowed for a redirect from an encrypted connection to a plain one.
    """
    target = error.headers.get("Location") if error.code in (301, 302, 307, 308) else None
    if target is None:
        return None
    full = urljoin(url, target)
    if urlsplit(full).scheme not in ("http", "https") or (url.startswith("https:") and full.startswith("http:")):
        raise NotAllowed(f"the server redirects to {full}, which is not encrypted")
    return full


def _refusal(status: int, body: bytes) -> CommandFailed:
    message = _message(status, body)
    if status in (401, 403):
        return NotAllowed(f"{message}; give a token with --token or the variable PENSTOCK_TOKEN")
    return (NotFound if status == 404 else CommandFailed)(message)


def _message(status: int, body: bytes) -> str:
    """Return the server's errors in one line."""
    try:
        errors = json.loads(body)["errors"]
        said = [str(error).strip() for error in errors if str(error).strip()]
    except (ValueError, KeyError, TypeError):
        said = []
    if not said:
        return f"the server answered with status {status}"
    told = [innermost(text) for text in said if len(said) == 1 or text != "Internal server error."]
    return "; ".join(dict.fromkeys(told))


def innermost(text: str) -> str:
    """Return the innermost cause in a stack trace, in one line. It is the part that a person can act on."""
    trace = text.strip().removeprefix("<Exception on server side:").strip()
    causes = [line.partition("Caused by: ")[2] for line in trace.splitlines() if line.startswith("Caused by: ")]
    return first_line(causes[-1] if causes else trace)


def first_line(text: str) -> str:
    """Return the first line of an error, without the names of Java's classes in front of it."""
    line = text.strip().partition("\n")[0].strip()
    while ": " in line and _is_class(line.partition(": ")[0]):
        line = line.partition(": ")[2]
    return line


def _is_class(word: str) -> bool:
    return "." in word and " " not in word and word.rpartition(".")[2][:1].isupper()


class Form:
    """A form with one file: a body of known length that is read from the disk while it is sent."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        boundary = uuid4().hex
        name = os.path.basename(file).replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        self.content_type = f"multipart/form-data; boundary={boundary}"
        head = (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="jarfile"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        self._edges = (head.encode(), f"\r\n--{boundary}--\r\n".encode())
        self._file = open(file, "rb")  # noqa: SIM115 - it is closed with the form
        self._parts = self._all_parts()

    def __len__(self) -> int:
        return sum(map(len, self._edges)) + os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> Form:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def rewind(self) -> None:
        """Go back to the beginning, to send the form to another server."""
        self._file.seek(0)
        self._parts = self._all_parts()

    def _all_parts(self) -> Iterator[bytes]:
        yield self._edges[0]
        while part := self._file.read(1 << 16):
            yield part
        yield self._edges[1]

    def read(self, _: int = -1) -> bytes:
        """Return the next part, or empty bytes at the end. `http.client` calls this."""
        return next(self._parts, b"")
