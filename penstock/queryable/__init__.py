"""Queryable state: what clients ask, what they are answered, and how questions and answers travel."""

from typing import TYPE_CHECKING

from penstock.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.queryable.client import QueryableStateClient
    from penstock.queryable.requests import Cut, Entry, QueryAnswer, QueryRequest
    from penstock.queryable.rest_form import answer_as_json, key_of_json

__all__ = [
    "Cut",
    "Entry",
    "QueryAnswer",
    "QueryRequest",
    "QueryableStateClient",
    "answer_as_json",
    "key_of_json",
]

_NAMES_BY_MODULE = {
    ".client": "QueryableStateClient",
    ".requests": "Cut Entry QueryAnswer QueryRequest",
    ".rest_form": "answer_as_json key_of_json",
}

if not TYPE_CHECKING:  # a type checker that saw it would let any misspelt name pass
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_BY_MODULE)
