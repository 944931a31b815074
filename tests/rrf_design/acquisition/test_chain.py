"""Links: what was written comes back, and nothing else has the same link."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from rrf_design.acquisition.chain import link, replay, texts_digest, with_link, without_link
from rrf_design.errors import Refused


@pytest.mark.parametrize("text", ["{}", '{"a":1}', '{"link":"x"}', '{"a":"\\"link\\":\\"0"}'])
def test_a_link_comes_off_again(text: str) -> None:
    mark = link("", text)
    linked = with_link(text, mark)
    assert json.loads(linked)["link"] == mark
    assert without_link(linked) == (text, mark)
    assert without_link(text) == (text, "")


def test_different_rows_have_different_links() -> None:
    rows = [
        (),
        ("",),
        (None,),
        ("None",),
        ("-",),
        ("a", "b"),
        ("ab",),
        ("a", "b", ""),
        ("a\n1\n=b",),
        (1,),
        (1.0,),
        ("\ud800",),
    ]
    links = [link("", *row) for row in rows] + [link("x"), texts_digest([]), texts_digest([("a",), ("b",)])]
    assert all(first != second for first, second in combinations(links, 2))


@pytest.mark.parametrize(
    "fault", [KeyError("x"), TypeError(), ValueError("a\nb"), AttributeError(), ZeroDivisionError()]
)
def test_an_event_that_does_not_follow_is_refused(fault: Exception) -> None:
    def apply(event: int) -> None:
        if event:
            raise fault

    with pytest.raises(Refused, match="run r, event 2: it does not follow") as caught:
        replay([0, 0, 1], apply, run="r", shown="here")
    assert "\n" not in str(caught.value)
