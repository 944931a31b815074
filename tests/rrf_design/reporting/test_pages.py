"""What all pages share: markup, figures, sentences; which document gets which page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design._explain import explain
from rrf_design.reporting import write_report
from rrf_design.reporting._scenarios import _conditions_card
from rrf_design.reporting._sentences import MEANINGS, SIGNS, _field_sentence, common, sentence
from rrf_design.reporting.documents import read, selected_of
from rrf_design.reporting.pages import (
    Card,
    Column,
    Markup,
    Picture,
    _escape,
    amount,
    at_least,
    at_most,
    bullets,
    callout,
    cards,
    code,
    figure,
    figures,
    join,
    listing,
    number,
    page,
    prose,
    section,
    table,
    tag,
)
from rrf_design.risk import bound
from rrf_design.verdict import Verdict, table_sentence


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


def test_small_pieces_escape_and_empty_tables_say_nothing() -> None:
    assert code("<b>") == "<code>&lt;b&gt;</code>"
    assert bullets(["<", "b"]) == "<ul><li>&lt;</li><li>b</li></ul>"
    assert "nothing" in table(["a", "b"], [])


def test_a_state_has_a_sign_besides_its_colour() -> None:
    assert "✓" in cards([Card("margin", "0.5", "k = 1", "good")])
    assert "✗" in callout("no", kind="bad")
    assert "?" in callout("perhaps", kind="unsure")


def test_columns_that_say_nothing_are_left_out() -> None:
    entries = [{"a": "1", "b": "", "c": "3"}, {"a": "4", "b": None, "c": "6"}]
    made = listing(
        entries, Column("a", "a"), Column("b", lambda e: e["b"]), figures("c", lambda e: e["c"]), filled=True
    )
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
    assert _escape("a\u202eb\x00c") == "a\\u202eb\\u0000c"


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


PREMISE = "at most 1 of 3 answers is wrong"


def test_every_verdict_has_its_sign_its_meaning_and_its_sentence() -> None:
    verdicts = {verdict.value for verdict in Verdict}
    assert set(SIGNS) == set(MEANINGS) == verdicts
    sentences = {_field_sentence({"verdict": verdict, "assumes": PREMISE, "error_bound": 0.5}) for verdict in verdicts}
    assert len(sentences) == len(verdicts)
    assert [verdict for verdict in verdicts if SIGNS[verdict] == "good"] == ["checked"]


@pytest.mark.parametrize(
    ("repair", "words"),
    [
        ({"bounds": {"a": 0.5, "b": 0.25}}, "none is further than 0.5 from the truth"),
        ({"bounds": {"a": 0.0}}, "they are the truth, up to rounding"),
        ({"bounds": {}, "error_bound": 0.75}, "all together they are within 0.75 of the truth"),
    ],
)
def test_consistent_values_stand_with_their_bound_and_their_premise(repair: dict[str, object], words: str) -> None:
    said = _field_sentence({"verdict": "consistent", "assumes": PREMISE, **repair})
    assert words in said
    assert said.endswith(f"provided that {PREMISE}. Agreement alone does not show that.")


def test_no_sentence_says_that_what_was_not_checked_is_right() -> None:
    for verdict in ("consistent", "ambiguous", "incomplete", "contradicted"):
        assert "decided by a check" not in _field_sentence({"verdict": verdict, "assumes": PREMISE})
    assert _field_sentence(None).startswith("Nothing may be used yet")


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (
            {"checked": 62, "consistent": 234, "ambiguous": 1, "contradicted": 3},
            "300 rows: 62 checked, 234 consistent (right if in each at most 1 of 3 answers is wrong), 4 open"
            " (1 ambiguous, 3 contradicted). How many of the 234 are wrong nobody has tested; 30 random checks with"
            f" none wrong would leave at most {bound(234, 30, 0, 0.95)} of them wrong (confidence 95 %);"
            " `rrf-design deliver --risk 5%` needs 43 looks or more.",
        ),
        ({"consistent": 1}, "1 row: 1 consistent (right if in each at most 1 of 3 answers is wrong). Whether it is"),
        ({"contradicted": 2}, "2 rows: 2 contradicted."),
        ({"checked": 2}, "2 rows: 2 checked."),
        ({}, "0 rows: none."),
    ],
)
def test_a_table_that_nobody_tested_says_so(counts: dict[str, int], words: str) -> None:
    assert table_sentence(counts, assumes=PREMISE).startswith(words)


def test_small_things() -> None:
    assert sentence("it is so") == "It is so."
    assert sentence("") == ""
    assert common(["a", "a", ""]) == "a"
    assert common(["a", "b"]) == ""


DOCUMENT = {
    "format": "rrf-scenario",
    "version": 1,
    "name": "transition",
    "title": "Where it <turns>",
    "question": "When?",
    "about": "About it.",
    "size": "quick",
    "parameters": {"seeds": 3},
    "expectations": [
        {"key": "a", "text": "it turns at six", "status": "met", "seen": "6"},
        {"key": "b", "text": "never", "status": "violated", "seen": "1"},
    ],
    "notes": ["A note."],
    "tables": [{"name": "curve", "caption": "the curve", "columns": ["anchors", "gamma"], "rows": 100}],
    "figures": [{"name": "curve", "caption": "the figure"}],
    "parts": 3,
    "part_seconds": 1.5,
    "environment": {"python": "3.11", "packages": {"numpy": "2"}},
    "finished": "2026-01-01",
}


def published(folder: Path, **changes: object) -> Path:
    (folder / "result.json").write_text(json.dumps({**DOCUMENT, **changes}))
    (folder / "curve.csv").write_text("anchors,gamma\n" + "".join(f"{i},{i / 7!r}\n" for i in range(100)))
    (folder / "curve.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    return folder


def test_a_directory_becomes_a_page(tmp_path: Path) -> None:
    made = write_report(published(tmp_path), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Where it &lt;turns&gt;" in made
    assert "1 of 2" in made
    assert "it turns at six" in made
    assert "data:image/svg+xml;base64," in made
    assert "alert(1)" not in made
    assert "0.14286" in made
    assert "40 more rows in curve.csv" in made
    assert 'The same as tables: <a href="#part-2">curve</a>' in made
    assert '<section id="part-2"><h2>curve</h2>' in made


def test_an_answer_and_its_picture_come_before_the_conditions(tmp_path: Path) -> None:
    folder = published(tmp_path, answer="It turns at six & stays.")
    made = write_report(folder, tmp_path / "page.html").read_text(encoding="utf-8")
    places = [made.index(text) for text in ("It turns at six &amp; stays.", "data:image/svg+xml", "it turns at six")]
    assert places == sorted(places)
    assert made.count("data:image/svg+xml") == 1


def test_files_elsewhere_are_not_read(tmp_path: Path) -> None:
    folder = published(tmp_path, figures=[{"name": "../../etc/x", "caption": ""}])
    with pytest.raises(InputError, match="beside its document"):
        write_report(folder, tmp_path / "page.html")


def test_a_condition_that_was_not_judged_is_no_failure() -> None:
    def card(*statuses: str) -> tuple[str, str, str]:
        made = _conditions_card([{"status": status} for status in statuses])
        return made.value, made.note, made.kind

    assert card("met", "met") == ("2 of 2", "stated before the run", "good")
    assert card("met", "not judged") == ("1 of 2", "stated before the run; 1 not judged", "unsure")
    assert card("not judged", "violated") == ("0 of 2", "stated before the run; 1 violated; 1 not judged", "bad")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "not a document"),
        ("{", "can't be read as JSON"),
        ("{}", "has no format"),
        ('{"format": "rrf-plam/1"}', "no page for the format 'rrf-plam/1'; did you mean 'rrf-plan'"),
    ],
)
def test_what_has_no_page_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"x\.json") as caught:
        read(path)
    assert message in str(caught.value)


def test_missing_files_and_empty_directories(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "nothing.json")
    with pytest.raises(InputError, match="without a result document"):
        read(tmp_path)
    with pytest.raises(InputError, match="int has no page"):
        read(3)


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_problem_file_is_a_design(tmp_path: Path, problem: Problem, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    rrf.save(problem, path)
    source = read(path)
    assert source.kind == "problem"
    assert source.problem == problem
    with pytest.raises(InputError, match="before it is explained"):
        write_report(path, tmp_path / "out.html")
    out = write_report(explain(problem), tmp_path / "out.html")
    assert "small field" in out.read_text(encoding="utf-8")


def test_an_operator_file_is_a_problem(tmp_path: Path, problem: Problem) -> None:
    rrf.save_operator(problem.operator(), tmp_path / "b.npz")
    source = read(tmp_path / "b.npz")
    assert source.kind == "problem"
    assert source.problem is not None


def test_a_document_of_another_problem_is_refused(tmp_path: Path, problem: Problem) -> None:
    document: dict[str, Any] = {"format": "rrf-plan/1", "problem": "0" * 64, "selected": []}
    with pytest.raises(InputError, match="belongs to another problem"):
        read(document, problem=problem)


def test_a_damaged_document_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"format": "rrf-plan", "version": 1, "selected": []}))
    with pytest.raises(InputError, match=r"plan\.json: the rrf-plan document is damaged"):
        write_report(path, tmp_path / "out.html")


def test_a_design_needs_its_problem() -> None:
    with pytest.raises(InputError, match="--problem"):
        selected_of(read({"format": "rrf-plan/1", "selected": []}))


def test_a_document_that_carries_its_problem(problem: Problem) -> None:
    from rrf_design.files import to_document

    source = read(json.loads(json.dumps({"format": "rrf-plan/1", "problem": to_document(problem), "selected": ["a3"]})))
    assert selected_of(source) == ("a3",)


def test_every_page_is_drawn_with_the_solvers_gone(
    problem: Problem, live: dict[str, Any], repaired: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import solvers
    from rrf_design.files import from_document, to_document
    from rrf_design.reporting.designs import comparison_page
    from rrf_design.reporting.documents import render

    explained = explain(problem, ["a3"], by_budget=True).to_json()
    documents = [
        explained,
        rrf.plan(problem, budget=4.0),
        rrf.frontier(problem),
        rrf.certify(problem, ["a3"], epsilon=0.05),
        repaired,
        live,
    ]

    def gone(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("a page asked for a margin")

    monkeypatch.setattr(solvers, "margin", gone)
    monkeypatch.setattr(solvers, "margins", gone)
    anew = from_document(to_document(problem))  # without any margin that was solved before
    with pytest.raises(AssertionError, match="asked for a margin"):
        anew.margin(["a3"])
    for document in documents:
        owner = {"": anew} if document is live else anew
        assert "data-nodes=" in render(read(document, problem=owner))
    assert "A against B" in comparison_page(read(explained, problem=anew), read(explained, problem=anew))
