"""The description of the interface: OpenAPI for tools, and one page of plain HTML for people."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

_ERRORS = {
    "type": "object",
    "required": ["errors"],
    "properties": {"errors": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
}
_PROBLEMS = {
    "400": "Something in the request is malformed.",
    "401": "A token is needed.",
    "403": "It is not allowed.",
    "404": "There is no such thing.",
    "409": "The current state of the job does not allow this.",
}

_STYLE = """body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; } td { border-top: 1px solid #ccc; padding: .3em .8em .3em 0;
vertical-align: top; } code { font-size: .9em; } h2 { margin-top: 2em; text-transform: capitalize; }"""


def describe_routes(app: FastAPI) -> dict[str, Any]:
    """Return OpenAPI's description of all routes. The application keeps it after the first call."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for operations in schema["paths"].values():
            for operation in operations.values():
                _tell_problems(operation)
        schema["components"] = {
            "schemas": {"Errors": _ERRORS},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        }
        schema["security"] = [{}, {"token": []}]
        app.openapi_schema = schema
    return app.openapi_schema


def _tell_problems(operation: dict[str, Any]) -> None:
    """Describe the errors of an operation. FastAPI's own description of them does not apply."""
    responses = operation["responses"]
    responses.pop("422", None)
    content = {"application/json; charset=UTF-8": {"schema": {"$ref": "#/components/schemas/Errors"}}}
    responses.update({code: {"description": text, "content": content} for code, text in _PROBLEMS.items()})


def render_page(schema: dict[str, Any]) -> str:
    """Return a page of HTML with all paths by subject. The page loads nothing from elsewhere."""
    subjects: dict[str, list[str]] = {}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            subjects.setdefault(operation["tags"][0], []).append(_row(method, path, operation))
    tables = "".join(f"<h2>{escape(name)}</h2><table>{''.join(rows)}</table>" for name, rows in subjects.items())
    title = f"{escape(schema['info']['title'])} {escape(schema['info']['version'])}"
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}: REST</title>"
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1><p>{escape(schema['info']['description'])} "
        f"For tools: <a href='openapi.json'>openapi.json</a>.</p>{tables}</body></html>"
    )


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    queries = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    extra = f"<br><code>?{escape('&'.join(queries))}</code>" if queries else ""
    text = escape(operation.get("description", ""))
    return f"<tr><td><code>{method.upper()}</code></td><td><code>{escape(path)}</code>{extra}</td><td>{text}</td></tr>"
