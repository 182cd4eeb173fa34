"""Whoever guesses tokens waits longer and longer, and takes no memory with it."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.service.options.rest_options import Tokens
from penstock.service.rest.rate_limit import FIRST_SECONDS, FREE, MOST_ADDRESSES, RateLimit
from tests.rest.conftest import client_of

READ, OPERATE = "reading-is-fine", "operating-is-too"
LONGEST = 30.0


class Hand:
    now = 1000.0

    def __call__(self):
        return self.now


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100)), max_size=60))
def test_the_wait_doubles_up_to_the_longest_and_ends_with_a_right_token(steps):
    clock, wrong = Hand(), 0
    guesses = RateLimit(LONGEST, clock)
    for succeeds, seconds in steps:
        (guesses.record_success if succeeds else guesses.record_failure)("1.2.3.4")
        wrong = 0 if succeeds else wrong + 1
        expected = min(LONGEST, FIRST_SECONDS * 2 ** (wrong - FREE - 1)) if wrong > FREE else 0.0
        assert guesses.wait("1.2.3.4") == expected and guesses.wait("1.2.3.5") == 0
        clock.now += seconds
        assert guesses.wait("1.2.3.4") <= max(0.0, expected - seconds) + 1e-6


def test_old_guesses_are_forgotten_and_so_are_many_addresses():
    clock = Hand()
    guesses = RateLimit(LONGEST, clock)
    for _ in range(FREE + 3):
        guesses.record_failure("1.2.3.4")
    clock.now += 3600
    guesses.record_failure("1.2.3.4")
    assert guesses.wait("1.2.3.4") == 0
    for number in range(3 * MOST_ADDRESSES):
        guesses.record_failure(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(guesses._clients) == MOST_ADDRESSES


def test_a_network_is_one_guesser():
    guesses = RateLimit(LONGEST, Hand())
    for number in range(FREE + 1):
        guesses.record_failure(f"2001:db8::{number:x}")
    assert guesses.wait("2001:db8::ffff") > 0 and guesses.wait("2001:db8:0:1::1") == 0


def test_no_token_is_looked_at_while_an_address_waits(jobs):
    client = client_of(jobs, tokens=Tokens(READ, OPERATE))

    def asked(token):
        return client.get("/overview", headers={"authorization": f"Bearer {token}"} if token else {})

    assert asked(READ).status_code == 200
    assert [asked("wrong-token").status_code for _ in range(FREE + 1)] == [401] * (FREE + 1)
    refused = asked(READ)
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
    assert "too many wrong tokens" in refused.json()["errors"][0]
    assert asked(None).status_code == 401, "that is no guess"
    forgiving = client_of(jobs, tokens=Tokens(READ, OPERATE), token_pause=0)
    for _ in range(3 * FREE):
        assert forgiving.get("/overview", headers={"authorization": "Bearer wrong-token"}).status_code == 401
    assert forgiving.get("/overview", headers={"authorization": f"Bearer {READ}"}).status_code == 200
