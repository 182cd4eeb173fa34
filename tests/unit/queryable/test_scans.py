"""Pages of an answer: every entry once, in pages of the size asked for, all of one cut."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.queryable.query_requests import Cut, QueryAnswer, QueryRequest
from penstock.engine.queryable.result_pages import REST_SECONDS, Scans
from penstock.engine.queryable.slot_states import Pack
from penstock.errors import QueryError

CUT = Cut(0, 7, 1000)


def answer_of(sizes):
    numbers = iter(range(sum(sizes)))
    pieces = [[(next(numbers), "x") for _ in range(size)] for size in sizes]
    return QueryAnswer("s", "value", CUT, packs=tuple(Pack(len(piece), pickle.dumps(piece)) for piece in pieces))


def fetched(scans, page, limit=None):
    pages = [page]
    while page.next_token is not None:
        page = scans.page(QueryRequest("s", token=page.next_token, limit=limit))
        pages.append(page)
    return pages


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(1, 12), st.none() | st.integers(1, 12))
def test_pages_have_every_entry_once(sizes, first, later):
    scans = Scans()
    pages = fetched(scans, scans.first(answer_of(sizes), first), later)
    keys = [[entry.key for entry in page.entries] for page in pages]
    assert [key for page in keys for key in page] == list(range(sum(sizes)))
    assert len(keys[0]) == min(first, sum(sizes)) and all(len(page) == (later or first) for page in keys[1:-1])
    assert all(page.cut == CUT for page in pages) and not scans._scans, "nothing is kept when all was fetched"


def test_a_page_can_be_fetched_again_but_not_after_the_last():
    scans = Scans()
    first = scans.first(answer_of([3, 3]), 2)
    second = QueryRequest("s", token=first.next_token)
    once, again = scans.page(second), scans.page(second)
    assert once == again and [entry.key for entry in once.entries] == [2, 3]
    scans.page(QueryRequest("s", token=once.next_token))
    with pytest.raises(QueryError, match="start again with the first"):
        scans.page(second)


@pytest.mark.parametrize("token", ["", ".", "x.1", "x", "../../etc.1", "x.-1", "x.²"])
def test_tokens_that_nobody_gave(token):
    with pytest.raises(QueryError, match="there is no page"):
        Scans().page(QueryRequest("s", token=token))


def test_a_token_is_for_its_own_state():
    scans = Scans()
    page = scans.first(answer_of([9]), 2)
    with pytest.raises(QueryError, match="of queryable state 'other'"):
        scans.page(QueryRequest("other", token=page.next_token))


def test_what_rests_too_long_goes():
    now = [0.0]
    scans = Scans(clock=lambda: now[0])
    page = scans.first(answer_of([9]), 2)
    now[0] = REST_SECONDS / 2
    page = scans.page(QueryRequest("s", token=page.next_token))
    now[0] = REST_SECONDS + 1
    page = scans.page(QueryRequest("s", token=page.next_token))
    now[0] += REST_SECONDS + 1
    with pytest.raises(QueryError, match="too old"):
        scans.page(QueryRequest("s", token=page.next_token))


def test_the_one_that_rested_longest_makes_room():
    size = sum(len(pack.data) for pack in answer_of([9]).packs)
    scans = Scans(most_bytes=2 * size)
    pages = [scans.first(answer_of([9]), 2) for _ in range(3)]
    with pytest.raises(QueryError):
        scans.page(QueryRequest("s", token=pages[0].next_token))
    assert [len(scans.page(QueryRequest("s", token=page.next_token)).entries) for page in pages[1:]] == [2, 2]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": 3},
        {"limit": 0},
        {"limit": "all"},
        {"keys": (1,), "limit": 3},
        {"keys": (1,), "token": "x.1"},
        {"keys": tuple(range(100_001))},
        {"key_groups": (3, 2)},
        {"key_groups": (-1, 2)},
        {"key_groups": (1, "2")},
    ],
)
def test_requests_that_make_no_sense(fields):
    with pytest.raises(ValueError):
        QueryRequest(**{"name": "s", **fields})
