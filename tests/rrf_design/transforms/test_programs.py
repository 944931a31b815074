"""Programs: what changed questions ask for returns the same on the same tests, properties strike
out programs that break them, and inputs that part programs which agree on all tests become anchors.
"""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.questions.rewording import separated
from rrf_design.testing import check_transform
from rrf_design.transforms import PROGRAM, Original, get, vetoed

PROMPT = "Write a Python function solve(n) that returns {{ task }}."
PLAIN = "def solve(n):\n    return n * (n + 1) // 2\n"
BY_HAND = {
    "renamed-arguments": "def solve(largest_number_to_add):\n    return sum(range(1, largest_number_to_add + 1))\n",
    "restated": "```python\n# Add 1, 2, ... up to n. For 3: 6. For 1: 1.\ndef solve(n):\n    return sum(range(n + 1))\n```",
    "decomposed": "def pairs(n):\n    return n * (n + 1)\n\ndef solve(n):\n    return pairs(n) // 2\n",
}
WRONG = "def solve(n):\n    return sum(range(n))\n"
TESTS = [[1], [4], [10]]


def recipe(**more: Any) -> dict[str, Any]:
    parse = {"name": "code", "tests": "{{ tests }}", "require": "limits"}
    first = {"id": "first", "prompt": PROMPT, "parse": parse}
    others = [{"id": name, "like": "first", "transform": name} for name in BY_HAND]
    return {"data": {"id": "id"}, "answer": {"of": "first", "tolerance": 0.4}, "ask": [first, *others], **more}


ROW = {"id": "triangle", "task": "the sum of the whole numbers from 1 to n", "tests": TESTS}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_other_program_returns_the_same_on_the_same_tests(name: str) -> None:
    check_transform(get(name), [(Original(PROMPT, PROGRAM), {}, [1.0, 10.0, 55.0], [1.0, 10.0, 55.0])])
    problem = rrf.dataset(recipe(), [ROW])["triangle"]
    assert rrf.repair(problem, {"first": PLAIN, **BY_HAND}).support == ()
    found = rrf.repair(problem, {"first": PLAIN, **BY_HAND, name: WRONG})
    assert (found.verdict.value, found.support) == ("consistent", (name,))


def test_names_of_arguments_may_be_given() -> None:
    other = get("renamed-arguments").apply(Original(PROMPT, PROGRAM), {"renamed-arguments": ["top"]})
    assert other.prompt.endswith("call the arguments of the function in their order top.")
    with pytest.raises(InputError, match="give renamed-arguments = the new names"):
        get("renamed-arguments").apply(Original(PROMPT, PROGRAM), {"renamed-arguments": ["a b"]})
    with pytest.raises(InputError, match="it changes a program"):
        get("decomposed").apply(Original("{{ n }}?"), {})


def test_a_property_strikes_out_the_program_that_breaks_it() -> None:
    data = rrf.dataset(recipe(veto=[{"of": "first", "returns": "out >= a * (a + 1) / 2"}]), [ROW])
    said = {"first": PLAIN, **BY_HAND, "restated": WRONG}
    (row,) = rrf.repair(data, [{"id": "triangle", "node": node, "text": text} for node, text in said.items()]).rows()
    assert (row.verdict.value, row.unread, row.wrong) == ("consistent", ("restated",), ())
    assert "not counting what a veto struck out (restated)" in row.assumes


def test_a_property_is_silent_where_it_can_not_be_read() -> None:
    from rrf_design.responses import Parsed, ParseStatus

    def struck(returns: str, *tests: list[Any]) -> bool:
        read = Parsed(ParseStatus.PARSED, (5.0,) * len(tests), True)
        return bool(vetoed({"a": [{"returns": returns, "tests": list(tests)}]}, {"a": read}))

    assert not struck("out == a", [5])
    assert struck("out == a + 1", [5])
    assert struck("out < b", [1, 9], [1, 5])
    assert not struck("out == 1 / a", [0])  # nobody can say
    assert not struck("out == a", ["word"], [[1, 2]])
    assert not struck("", [5])


@pytest.mark.parametrize(
    ("returns", "fault"),
    [("out", "is no comparison"), ("out > a > b", "is no comparison"), ("out > z", "z"), ("import os > 1", "import")],
)
def test_a_property_that_can_not_be_followed_is_one_line(returns: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        rrf.dataset(recipe(veto=[{"of": "first", "returns": returns}]), [ROW])


def test_a_property_speaks_of_programs_only() -> None:
    asked = {"answer": {"of": "a", "tolerance": 0.1}, "ask": [{"id": "a", "prompt": "{{ n }}?"}]}
    with pytest.raises(InputError, match="speaks of a program"):
        rrf.dataset({**asked, "veto": [{"of": "a", "returns": "out > 1"}]}, [{"n": 1}])


def test_an_input_that_parts_programs_becomes_an_anchor_on_sale() -> None:
    check = {"id": "expected", "of": "first", "by": {"tests": "{{ tests }}", "expected": [1, 10, 55]}, "cost": 0.2}
    problem = rrf.dataset(recipe(check=[check]), [ROW])["triangle"]
    short = {"first": PLAIN, "restated": BY_HAND["restated"]}  # of -4: 6, and 0
    found = separated(problem, {**short, "decomposed": WRONG}, cost=0.5)
    assert found is not None
    (one,) = found.inputs
    assert set(one.outputs) == {"first", "restated"}  # the third denies them already
    more = found.problem
    assert [node.dim for node in more.nodes] == [4] * 4
    expected, asked = more.anchors
    assert len(expected.rows or ()) == 3
    assert (asked.cost, asked.rows) == (0.5, ((0.0, 0.0, 0.0, 1.0),))
    assert (rrf.repair(problem, short).support, rrf.repair(more, short).support) == ((), ("first",))
    assert asked.id in rrf.plan(more, target=0.5).selected or more.margin().value >= 0.5
    assert separated(problem, {"first": PLAIN}) is None
    assert separated(problem, {"first": PLAIN, "decomposed": BY_HAND["decomposed"]}) is None  # the same everywhere
    with pytest.raises(InputError, match="is no program"):
        separated(rrf.Problem(nodes=[{"id": "a"}]), {})
