"""Queryable state: the client, and the requests and answers that it exchanges with a job."""

from typing import TYPE_CHECKING

from penstock.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.engine.queryable.query_requests import Cut, Entry, QueryAnswer, QueryRequest
    from penstock.engine.queryable.queryable_client import QueryableStateClient
    from penstock.engine.queryable.rest_form import answer_as_json, key_of_json

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
    "penstock.engine.queryable.queryable_client": "QueryableStateClient",
    "penstock.engine.queryable.query_requests": "Cut Entry QueryAnswer QueryRequest",
    "penstock.engine.queryable.rest_form": "answer_as_json key_of_json",
}

if not TYPE_CHECKING:  # a type checker that saw it would let any misspelt name pass
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_BY_MODULE)
