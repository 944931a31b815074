"""Pages are one file that asks for nothing; nothing can be injected into their markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.reporting.pages import (
    Card,
    Markup,
    Picture,
    amount,
    at_least,
    at_most,
    bullets,
    callout,
    cards,
    code,
    escape,
    figure,
    join,
    number,
    page,
    prose,
    section,
    table,
    tag,
    without_empty,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.123456789, "0.12346"),
        (-2.5, "−2.5"),
        (1e-9, "1e−9"),
        (12345, "12\u202f345"),
        (None, "not known"),
        (float("inf"), "unbounded"),
    ],
)
def test_numbers_for_people(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_page_is_one_file_that_asks_for_nothing() -> None:
    made = page(
        "title",
        [section("one", prose("text")), section("two"), section("three")],
        subtitle="sub",
        facts=[("digest", "abc")],
    )
    assert made.startswith("<!doctype html>")
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", made)
    assert "default-src &#x27;none&#x27;" in made
    assert made.count("<h2>") == 3
    assert '<a href="#part-2">two</a>' in made


def test_the_policy_allows_exactly_our_script_and_style() -> None:
    import base64
    import hashlib

    made = page("title", [])
    for name in ("script", "style"):
        content = re.search(rf"<{name}>(.*?)</{name}>", made, re.DOTALL)
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content.group(1).encode()).digest()).decode()
        assert f"{name}-src &#x27;sha256-{digest}&#x27;" in made


def test_a_figure_always_has_its_table() -> None:
    picture = Picture(Markup("<svg></svg>"), "what it shows", table(["a"], [["1"]]))
    assert "<table>" in figure(picture, caption="c")


def test_long_tables_are_cut_and_say_so() -> None:
    made = table(["n"], [[str(i)] for i in range(250)], right=[0])
    assert made.count("<tr") == 201
    assert "50 more rows" in made
    assert 'type="search"' in made
    assert 'type="search"' not in table(["n"], [["1"]])


def test_an_empty_table_says_nothing() -> None:
    assert "nothing" in table(["a", "b"], [])


def test_a_state_has_a_sign_besides_its_colour() -> None:
    assert "✓" in cards([Card("margin", "0.5", "k = 1", "good")])
    assert "✗" in callout("no", kind="bad")
    assert "?" in callout("perhaps", kind="unsure")


def test_small_pieces_escape() -> None:
    assert code("<b>") == "<code>&lt;b&gt;</code>"
    assert bullets(["<", "b"]) == "<ul><li>&lt;</li><li>b</li></ul>"


def test_columns_that_say_nothing_are_left_out() -> None:
    made = without_empty(["a", "b", "c"], [["1", "", "3"], ["4", None, "6"]], right=[2])
    assert "<th" in made
    assert ">b</th>" not in made
    assert made.count('class="right"') == 3


def test_what_is_shown_as_proven_is_proven() -> None:
    assert at_least(0.76536686) == "0.76536"
    assert at_most(0.26131259) == "0.26132"
    assert at_most(None) == "not known"
    assert at_most(float("inf")) == "unbounded"
    assert at_least(0.5) == at_most(0.5) == "0.5"


def test_amounts_keep_their_digits() -> None:
    assert amount(11879.56) == "11879.56"
    assert amount(-0.25) == "−0.25"
    assert amount(12345) == "12\u202f345"
    assert amount("as it is") == "as it is"
    assert amount(None) == "not known"


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
