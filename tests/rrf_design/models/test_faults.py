"""What a server's words mean, apart from any server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from rrf_design.errors import InputError
from rrf_design.models import Outcome, Usage
from rrf_design.models.faults import (
    _duration,
    allowance,
    cleaned,
    counted,
    message,
    public,
    quiet,
    refuse_beforehand,
    refused,
)


def test_rate_headers_and_retry_after_are_heard() -> None:
    assert quiet({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0.5s"}) == 360.5
    assert quiet({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "6m"}) is None
    assert [_duration(text) for text in ("20ms", "3", "1h", "soon", "", None)] == [0.02, 3.0, 3600.0, None, None, None]
    assert refused(429, {"retry-after": "7"}, "later", {}).retry_after == 7.0
    assert refused(503, {"retry-after-ms": "250"}, "later", {}).retry_after == 0.25
    assert not refused(429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "later", {}).retry_after
    future = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500.0 < (refused(429, {"retry-after": future}, "later", {}).retry_after or 0.0) <= 3600.0
    assert refused(429, {"retry-after": "soon"}, "later", {}).retry_after is None


def test_rate_headers_say_how_many_more() -> None:
    assert allowance({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "6m"}) == (3, 360.0)
    assert allowance({"x-ratelimit-remaining-requests": "many", "x-ratelimit-reset-requests": "6m"}) is None
    assert allowance({"x-ratelimit-remaining-requests": "3"}) is None


@pytest.mark.parametrize(
    ("status", "outcome", "usage"),
    [
        (401, Outcome.FAILED, Usage(calls=1)),
        (408, Outcome.TIMEOUT, None),
        (429, Outcome.RATE_LIMITED, Usage(calls=1)),
        (529, Outcome.UNREACHABLE, Usage(calls=1)),
    ],
)
def test_only_what_is_certainly_free_is_free(status: int, outcome: Outcome, usage: Usage | None) -> None:
    attempt = refused(status, {}, "words", {"prompt": "?"})
    assert (attempt.outcome, attempt.usage, attempt.raw_request) == (outcome, usage, {"prompt": "?"})


def test_words_without_secrets() -> None:
    assert cleaned({"a": ["the key k-1", 3, None]}, ("k-1",)) == {"a": ["the key [redacted]", 3, None]}
    assert message('{"error": {"message": "no"}}') == "no"
    assert message("<html>") == "<html>"
    assert public("https://me:pass@host:1/v1?key=1") == "https://host:1/v1"


def test_unstated_counts_are_unknown() -> None:
    assert counted({"usage": {"prompt_tokens": 3, "completion_tokens": 1}}) == Usage(3, 1, 1)
    assert counted({"usage": {"prompt_tokens": True, "completion_tokens": 1}}) is None
    assert counted({}) is None


def test_a_server_that_redirects_is_told_of_beforehand() -> None:
    attempt = refused(308, {"location": "https://elsewhere"}, "HTTP 308", {})
    with pytest.raises(InputError, match=r"^model m: the server redirects to another address, .*correct base_url"):
        refuse_beforehand("m", attempt, url="http://here", key="KEY")
