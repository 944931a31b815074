"""Bounds and calculations that are not done: what stands around a numeral, in both directions."""

from __future__ import annotations

import pytest

from rrf_design.responses import parsers
from rrf_design.responses.bounding import is_bound, unfinished
from rrf_design.responses.parsed import ParseStatus


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("at least ", ""),
        ("At most $", ""),
        ("no more than ", ""),
        ("x >= ", ""),
        ("x \u2265", ""),
        ("h\u00f6chstens ", ""),
        ("", " or more"),
        ("", " at least."),
        ("", " \u2264 x"),
        ("", "-odd"),
    ],
)
def test_bounds(left: str, right: str) -> None:
    assert is_bound(left, right)
    parsed = parsers.get("decimal").parse(f"{left}42{right}")
    assert parsed.status is ParseStatus.AMBIGUOUS


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("about ", ""),
        ("\u2248 ", ""),
        ("The maximum is ", ""),
        ("at last ", ""),
        ("=> ", ""),
        ("-> ", ""),
        ("moreover ", ""),
        ("the discovery of ", ""),
        ("", " apples"),
        ("", " or so"),
        ("", " <b>"),
        ("", "<|im_end|>"),
        ("", " min"),
        ("", " plus tax"),
    ],
)
def test_what_is_none(left: str, right: str) -> None:
    assert not is_bound(left, right)
    assert parsers.get("decimal").parse(f"{left}42{right}").canonical == "42"


@pytest.mark.parametrize(
    ("left", "right", "word"),
    [
        ("sqrt(", ")", "calculation"),
        ("half of ", "", "calculation"),
        ("", " pi", "calculation"),
        ("", " squared", "power"),
        ("", "\u2082", "base"),
        ("", "\u2030", "thousand"),
        ("", "!", "factorial"),
        ("n = ", "!", "factorial"),
    ],
)
def test_what_is_still_to_be_computed(left: str, right: str, word: str) -> None:
    assert word in (unfinished(left, right) or "")


@pytest.mark.parametrize(
    ("left", "right"), [("The answer is ", "!"), ("Answer:", "!"), ("catalog ", ""), ("behalf of ", ""), ("", " pies")]
)
def test_what_is_done(left: str, right: str) -> None:
    assert unfinished(left, right) is None
