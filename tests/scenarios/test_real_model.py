from __future__ import annotations

from scenarios.real_model import _answer, _empty, _weights


def _document(task: str, *right: bool) -> dict[str, object]:
    return {"task": task, "marks": [{"correct": each} for each in right]}


def test_an_empty_stratum_says_why() -> None:
    documents = [_document("mathematics", False, False), _document("code", True, True)]
    found = _empty(documents, [])
    assert found["mathematics"] == "0 of 1 mathematics items have a right answer"
    assert found["code"].startswith("1 of 1 code items have a right answer, and none of these a wrong one")
    assert _empty(documents, [{"task": "code"}]).keys() == {"mathematics"}


def test_the_answer_begins_with_yes_only_where_every_positive_margin_repairs() -> None:
    def rows(positive: bool, zero: bool) -> list[dict[str, object]]:
        return [
            {"task": "ours", "gamma_1": 1.0, "exact": positive},
            {"task": "ours", "gamma_1": 1.0, "exact": True},
            {"task": "ours", "gamma_1": 0.0, "exact": zero},
            {"task": "ours", "gamma_1": 0.0, "exact": False},
        ]

    told = {(p, z): _answer([], rows(p, z), "m").split(":")[0] for p in (True, False) for z in (True, False)}
    assert told == {(True, True): "Yes", (True, False): "Yes", (False, True): "No", (False, False): "Mostly"}
    assert _answer([], [], "m").startswith("Nothing can be said")


def test_a_page_names_what_ran_the_weights() -> None:
    assert _weights({}) == ""
    assert _weights({"sha256": "ab", "runtime": "r 1"}) == " (SHA-256 ab, r 1)"
    assert _weights({"weights": "sha256 cd", "runtime": "t 2", "dtype": "float32"}) == " (sha256 cd, t 2, float32)"
