from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.reporting.markup import Markup, escape, join, tag


@pytest.mark.parametrize("name", ["", "a b", "x>", "1a", "svg onload=x"])
def test_element_names_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of an element"):
        tag(name)


@pytest.mark.parametrize("name", ["onclick", "onLoad", "a b", "x>"])
def test_handlers_and_odd_names_are_no_attributes(name: str) -> None:
    with pytest.raises(ValueError, match="not an attribute"):
        tag("p", **{name: "x"})


def test_attributes_are_escaped_and_left_out() -> None:
    made = tag("input", class_="a", data_x='"<', checked=True, hidden=False, title=None, width=1.5)
    assert made == '<input class="a" data-x="&quot;&lt;" checked width="1.5">'


def test_markup_is_kept_and_text_is_not() -> None:
    assert join("<", tag("b", "<"), None, ["a", Markup("<hr>")], 3) == "&lt;<b>&lt;</b>a<hr>3"


def test_characters_that_disguise_are_made_visible() -> None:
    assert escape("a\u202eb\x00c") == "a\\u202eb\\u0000c"


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text())
def test_a_parser_reads_back_the_text_and_one_element(text: str, value: str) -> None:
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
            seen.append(name)
            assert [key for key, _ in attributes] == ["title"]

    Reader().feed(tag("p", text, title=value))
    assert seen == ["p"]
