from __future__ import annotations

import pytest

from rrf_design.reporting._sentences import MEANINGS, SIGNS, _field_sentence, common, many_sentence, sentence
from rrf_design.verdict import Verdict

PREMISE = "at most 1 of 3 answers is wrong"


def test_every_verdict_has_its_sign_its_meaning_and_its_sentence() -> None:
    verdicts = {verdict.value for verdict in Verdict}
    assert set(SIGNS) == set(MEANINGS) == verdicts
    sentences = {_field_sentence({"verdict": verdict, "assumes": PREMISE, "error_bound": 0.5}) for verdict in verdicts}
    assert len(sentences) == len(verdicts)
    assert [SIGNS[verdict] for verdict in verdicts if verdict == "certified"] == ["good"]
    assert "good" not in {SIGNS[verdict] for verdict in verdicts - {"certified"}}


@pytest.mark.parametrize(
    ("repair", "words"),
    [
        ({"bounds": {"a": 0.5, "b": 0.25}}, "none is further than 0.5 from the truth"),
        ({"bounds": {"a": 0.0}}, "they are the truth, up to rounding"),
        ({"bounds": {}, "error_bound": 0.75}, "all together they are within 0.75 of the truth"),
    ],
)
def test_certified_values_stand_with_their_bound_and_their_premise(repair: dict[str, object], words: str) -> None:
    said = _field_sentence({"verdict": "certified", "assumes": PREMISE, **repair})
    assert words in said
    assert said.endswith(f"provided that {PREMISE}.")


def test_nothing_but_certified_lets_all_values_be_used() -> None:
    for verdict in ("ambiguous", "incomplete", "contradicted"):
        assert "The values may be used" not in _field_sentence({"verdict": verdict, "assumes": PREMISE})
    assert _field_sentence(None).startswith("Nothing may be used yet")


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"certified": 3}, "All 3 items are certified: the values may be used, provided that in each"),
        ({"certified": 1}, "The one item is certified"),
        ({"certified": 1, "contradicted": 2}, "1 of 3 items is certified: their values may be used"),
        ({"contradicted": 2}, "None of 2 items is certified: no value may be relied on"),
        ({"certified": 5, "ambiguous": 1, "incomplete": 2}, "Of the others, 1 fit more than one explanation, 2 lack"),
        ({}, "There is no item."),
    ],
)
def test_many_items_in_a_sentence(counts: dict[str, int], words: str) -> None:
    assert words in many_sentence(counts, assumes=PREMISE)


def test_small_things() -> None:
    assert sentence("it is so") == "It is so."
    assert sentence("") == ""
    assert common(["a", "a", ""]) == "a"
    assert common(["a", "b"]) == ""
