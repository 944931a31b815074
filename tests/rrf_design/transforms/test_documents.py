"""Forty documents of odd forms with truths written by hand: the true answers to all changed
questions agree, each spoilt one is found, and free checks keep what is true.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.responses import numbers_written
from rrf_design.transforms import names, read_spec

BY_HAND = tomllib.loads((Path(__file__).parent / "documents.toml").read_text(encoding="utf-8"))
NUMBERS, DAYS, CHOICES, FORMS = (BY_HAND[kind] for kind in ("number", "day", "choice", "form"))
CHANGED: dict[str, Any] = {
    "cents": "cents",
    "thrice": {"scale": 3},
    "more": {"plus": 19},
    "rest": {"complement": 10000},
    "turned": "permute-options",
    "not": "negation",
    "days": {"days-since": "2000-01-01"},
    "quoted": "quote-first",
    "iso": "iso",
    "parts": {"parts": ["net", "tax"]},
    "items": "line-items",
    **{f"is {which}": {"one-against-rest": which} for which in ("B", "news", "normal")},
    **{f"worded {number}": {"wording": number} for number in (1, 2, 3)},
}


def delivered(case: dict[str, Any], answers: dict[str, str], **more: Any) -> Any:
    """The delivered row, from answers to the original and to changed questions."""
    given: dict[str, Any] = {"of": "truth"}
    given |= {"choices": case["choices"]} if "choices" in case else more.pop("answer")
    first = {"id": "truth", "prompt": case.get("prompt", "{{ text }}\nHow much, or when?")}
    asks = [first, *({"id": f"a{n}", "like": "truth", "transform": CHANGED[name]} for n, name in enumerate(answers))]
    data = rrf.dataset({"answer": given, "ask": asks, **more}, [{"text": case["text"]}])
    said = {"truth": case["answers"]["truth"], **{f"a{n}": text for n, text in enumerate(answers.values())}}
    (row,) = rrf.repair(data, [{"id": "1", "node": node, "text": text} for node, text in said.items()]).rows()
    return row


def asked(case: dict[str, Any]) -> dict[str, str]:
    """The answers that were worked out, by the name of the change."""
    found = {name: text for name, text in case["answers"].items() if name in CHANGED}
    if case in DAYS:
        found["iso"] = case["answers"]["truth"]
    if "parts" in case:
        found["parts"] = '{{"net": {}, "tax": {}}}'.format(*case["parts"])
    if "items" in case:
        found["items"] = f'{{"items": [{", ".join(case["items"])}]}}'
    truth = case["answers"]["truth"]
    return found | ({} if "choices" in case and len(case["choices"]) == 2 else {"worded 1": truth, "worded 2": truth})


def test_there_are_forty_and_together_they_try_every_exact_change() -> None:
    assert len(NUMBERS) + len(DAYS) + len(CHOICES) == 40
    tried = {read_spec(CHANGED[name])[0] for case in (*NUMBERS, *DAYS, *CHOICES) for name in asked(case)}
    assert set(names()) - tried == {
        *("rounded", "changed-row", "definitions", "rubric-order"),  # below, and in cases.toml
        *("renamed-arguments", "restated", "decomposed"),  # in test_programs.py
    }


@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: case["answers"]["truth"])
def test_numbers(case: dict[str, Any]) -> None:
    answers, given = asked(case), {"answer": {"tolerance": 0.005}}
    veto = {"veto": [{"of": "truth", "in_text": "{{ text }}"}]}
    row = delivered(case, answers, **given, **veto)
    assert (row.verdict.value, row.wrong, row.unread) == ("consistent", (), ())  # no true answer was struck out
    assert row.values[0].answer == pytest.approx(float(case["answers"]["truth"]))
    for place, name in enumerate(answers):
        row = delivered(case, answers | {name: case["nowhere"]} if name not in ("parts", "items") else answers, **given)
        assert row.values[0].answer == pytest.approx(float(case["answers"]["truth"]))
        assert row.wrong == (() if name in ("parts", "items") else (f"a{place}",))
    lost = case | {"answers": case["answers"] | {"truth": case["nowhere"]}}
    assert delivered(lost, answers, **given, **veto).unread == (() if case.get("silent") else ("truth",))


@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: case["answers"]["truth"])
def test_leading_digits_are_within_their_radius(case: dict[str, Any]) -> None:
    """The one approximate change: what it says of the truth lies within its radius, relative to the
    truth; and the relation that it becomes declares that radius.
    """
    truth, two = (float(case["answers"][name]) for name in ("truth", "two"))
    ask = [{"id": "a", "prompt": "{{ x }}"}, {"id": "b", "like": "a", "transform": {"rounded": 2}}]
    (relation,) = rrf.dataset({"answer": {"of": "a", "tolerance": 0.005}, "ask": ask}, [{"x": 1}])["1"].relations
    assert relation.uncertainty == 0.05
    assert abs(two - truth) <= 0.05 * abs(truth)


@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: case["answers"]["truth"])
def test_the_truth_is_among_the_candidates_that_the_text_offers(case: dict[str, Any]) -> None:
    found = numbers_written(case["text"])
    assert any(number == pytest.approx(abs(float(case["answers"]["truth"]))) for number in found)


@pytest.mark.parametrize("case", DAYS, ids=lambda case: case["answers"]["truth"])
def test_days(case: dict[str, Any]) -> None:
    given = {"answer": {"parse": "date"}}
    veto = {"veto": [{"of": "truth", "in_text": "{{ text }}"}, {"of": "truth", "digits": "date"}]}
    row = delivered(case, asked(case), **given, **veto)
    assert (row.verdict.value, row.unread) == ("consistent", ())
    assert row.values[0].answer == case["answers"]["truth"]
    lost = case | {"answers": case["answers"] | {"truth": case["nowhere"]}}
    assert delivered(lost, asked(case), **given, **veto).unread[0] == "truth"
    row = delivered(case, asked(case) | {"days": "123"}, **given)
    assert (row.values[0].answer, row.wrong) == (case["answers"]["truth"], ("a0",))


@pytest.mark.parametrize("case", CHOICES, ids=lambda case: case["text"])
def test_choices(case: dict[str, Any]) -> None:
    row = delivered(case, asked(case))
    assert (row.verdict.value, row.wrong) == ("consistent", ())
    assert row.values[0].answer == case["answers"]["truth"]
    other = next(one for one in case["choices"] if one != case["answers"]["truth"])
    spoilt = delivered(case | {"answers": case["answers"] | {"truth": other}}, asked(case))
    assert (spoilt.values[0].answer, spoilt.wrong) == (case["answers"]["truth"], ("truth",))


@pytest.mark.parametrize("case", FORMS, ids=lambda case: case["reads"])
def test_forms_with_other_numbers(case: dict[str, Any]) -> None:
    """The true answer of the changed form is the transport of the original's; nothing else is."""
    asks = [{"id": "a", "prompt": case["text"]}, {"id": "b", "like": "a", "transform": case["change"]}]
    row = case["row"] | {"more": case.get("more", 0)}
    problem = rrf.dataset({"answer": {"of": "a", "tolerance": 0.005}, "ask": asks}, [row])["1"]
    assert problem.node_by_id["b"].prompt == case["reads"]
    assert rrf.repair(problem, {"a": case["truth"], "b": case["then"]}).support == ()
    for spoilt in ({"a": "7", "b": case["then"]}, {"a": case["truth"], "b": "7"}):
        assert rrf.repair(problem, spoilt).support
