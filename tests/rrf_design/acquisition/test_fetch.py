"""One question becomes one call, and its answer or failure a settlement."""

from __future__ import annotations

from typing import Any

import pytest
from fields import scripted

import rrf_design as rrf
from rrf_design.acquisition._fetch import Fetcher
from rrf_design.acquisition._purchases import Buys, Purchase
from rrf_design.acquisition._state import ItemState
from rrf_design.acquisition.sources.base import Unreachable
from rrf_design.errors import InputError
from rrf_design.models import Attempt, Outcome, PriceTable, Usage

PRICES = PriceTable.load({"scripted": {"input": 0.001, "output": 0.01}})


def problem(**node: Any) -> rrf.Problem:
    given = {"id": "n", "prompt": "What is {{ a }} + 1?", "variables": {"a": 6}, "system": "Be brief.", "max_tokens": 9}
    return rrf.Problem(k=1, nodes=[given | node], anchors=[{"id": "A", "node": "n", "value": 7.0, "cost": 1.0}])


def fetcher(script: Any = lambda request: "7", **options: Any) -> Fetcher:
    return Fetcher({"": problem()}, scripted(script), known={}, **options)


def ask(one: Fetcher) -> Any:
    return one.fetch(Purchase("", "n", Buys.ANSWER, 0.0), ItemState())


def test_the_request_is_what_the_node_says_and_a_plain_prompt_as_it_is() -> None:
    request = fetcher(seed=5).questions["", "n"].request
    assert (request.prompt, request.system, request.max_tokens, request.seed) == ("What is 6 + 1?", "Be brief.", 9, 5)
    assert request.grammar is None
    assert fetcher(constrained=True).questions["", "n"].request.grammar is not None
    one = Fetcher({"": problem(variables=None, prompt="{{ braces }}")}, scripted(), known={})
    assert one.questions["", "n"].request.prompt == "{{ braces }}"


def test_answers_carry_their_evidence() -> None:
    settled = ask(fetcher())
    assert (settled.outcome, settled.value, settled.ok, settled.calls) == ("answered", (7.0,), True, 1)
    assert settled.evidence["request"]["prompt"] == "What is 6 + 1?"
    assert settled.evidence["parsed"]["canonical"] == "7"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("no number", "parse failure"),
        ("", "empty"),
        (Attempt(Outcome.TIMEOUT, usage=Usage(1, 0, 1)), "timeout"),
        (Attempt(Outcome.FAILED, usage=Usage(calls=1)), "failed"),
    ],
)
def test_failures_are_named_and_have_no_value(answer: Any, outcome: str) -> None:
    settled = ask(fetcher(lambda request: answer))
    assert (settled.outcome, settled.value, settled.ok) == (outcome, None, False)


def test_nobody_there_buys_nothing_but_charged_attempts_are_settled() -> None:
    with pytest.raises(Unreachable, match="unreachable: gone"):
        ask(fetcher(lambda request: Attempt(Outcome.UNREACHABLE, usage=Usage(), detail="gone")))
    charged = Attempt(Outcome.UNREACHABLE, usage=Usage(10, 0, 1), detail="gone")
    settled = ask(fetcher(lambda request: charged, prices=PRICES))
    assert (settled.outcome, settled.value, settled.ok) == ("unreachable", None, False)
    assert settled.money > 0.0


def test_the_ceiling_covers_what_a_call_can_cost() -> None:
    one = fetcher(prices=PRICES)
    terms = one.terms("", "n")
    assert ask(one).money <= terms.ceiling
    assert terms.local
    assert fetcher().terms("", "n").ceiling == 0.0


def test_what_is_known_or_in_the_file_is_settled_at_once() -> None:
    one = Fetcher({"": problem(prompt=None)}, scripted(), known={"": {"n": 7.0}})
    assert one.questions == {}
    assert one.all_local
    one = fetcher()
    settled = one.instant(Purchase("", "A", Buys.ANCHOR, 1.0))
    assert settled is not None
    assert settled.value == (7.0,)
    assert one.instant(Purchase("", "n", Buys.ANSWER, 0.0)) is None


def test_equal_questions_keep_their_numbers_whatever_is_known() -> None:
    """Of a node whose answer is given, too; one that can't be asked counts for nothing."""
    nodes = [{"id": name, "prompt": "6 + 1?"} for name in ("a", "b", "c")]
    nodes += [{"id": "other", "prompt": "6 + 2?"}, {"id": "elsewhere", "prompt": "6 + 1?", "model": "nobody"}]
    whole = rrf.Problem(k=1, nodes=nodes)
    numbers = {"a": 0, "b": 1, "c": 2, "other": 0}
    for given in ({"elsewhere"}, {"elsewhere", "a"}, {"elsewhere", "b", "other"}, {"elsewhere", "a", "b", "c"}):
        one = Fetcher({"": whole}, scripted(), known={"": dict.fromkeys(given, 7.0)})
        asked = {name: question.request.repeat for (_, name), question in one.questions.items()}
        assert asked == {name: number for name, number in numbers.items() if name not in given}


def test_a_schema_goes_to_whoever_takes_one() -> None:
    asked = problem(parser={"name": "json", "field": "total"})
    assert Fetcher({"": asked}, scripted(), known={}).questions["", "n"].request.schema is None
    able = scripted()
    able.supports_schema = True
    schema = Fetcher({"": asked}, able, known={}).questions["", "n"].request.schema
    assert schema is not None
    assert '"required": ["total"]' in schema
    assert Fetcher({"": problem()}, able, known={}).questions["", "n"].request.schema is None  # it reads no JSON


def test_what_a_model_does_not_take_is_found_before_anything_is_bought() -> None:
    deaf = scripted()
    deaf.supports_grammar = False
    with pytest.raises(InputError, match="node 'n': model scripted: it offers no grammars"):
        Fetcher({"": problem()}, deaf, known={}, constrained=True)
