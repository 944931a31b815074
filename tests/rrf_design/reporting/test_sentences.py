from __future__ import annotations

import pytest

from rrf_design.reporting._sentences import MEANINGS, SIGNS, _field_sentence, common, sentence
from rrf_design.risk import bound
from rrf_design.verdict import Verdict, table_sentence

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
            f" none wrong would leave at most {bound(234, 30, 0, 0.95)} of them wrong (confidence 95 %).",
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
