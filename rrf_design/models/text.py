"""From a backend's raw text and finish reason to an outcome, the same way for every adapter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rrf_design.models.base import Attempt, Outcome, Usage

# Local models refuse in prose. Only an opening counts, and only if no number or code follows: "I'm
# sorry, it is 5" answers.
_REFUSAL = re.compile(
    r"\s*(?:i['\u2019]?m sorry|i am sorry|sorry,|i apologi[sz]e|as an ai\b|"
    r"i (?:can(?:no|['\u2019])t|can not|am unable|am not able|won['\u2019]t|will not)\b)",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(r"\d|```|\bdef\b")


def opens_as_refusal(text: str) -> bool:
    return _REFUSAL.match(text) is not None and _EVIDENCE.search(text) is None


def classify(
    text: str,
    finish: str | None,
    usage: Usage | None,
    raw_request: Mapping[str, Any],
    raw_response: Mapping[str, Any],
    *,
    refusal: str | None = None,
) -> Attempt:
    """The attempt that a finished generation amounts to."""
    if refusal or finish == "content_filter":
        outcome, detail = Outcome.REFUSED, refusal or "stopped by the content filter"
    elif not text.strip():
        outcome, detail = Outcome.EMPTY, "no text"
    elif _garbled(text):
        outcome, detail = Outcome.GARBAGE, "mostly undecodable characters"
    elif opens_as_refusal(text):
        outcome, detail = Outcome.REFUSED, "the text opens as a refusal"
    elif finish == "length":
        outcome, detail = Outcome.TRUNCATED, "cut at the token limit"
    else:
        outcome, detail = Outcome.ANSWERED, ""
    return Attempt(outcome, text, usage, raw_request, raw_response, detail)


def _garbled(text: str) -> bool:
    bad = sum(not (c.isprintable() or c.isspace()) or c == "\ufffd" for c in text)
    return 2 * bad > len(text)
