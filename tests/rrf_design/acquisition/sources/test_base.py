"""The contract of a source, and sources by name."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from fields import scripted, source_of

from rrf_design.acquisition.sources import (
    SOURCES,
    Asked,
    Attempted,
    Fetched,
    Source,
    Toolbox,
    Unreachable,
    ask,
    refuse_unanswered,
    source_class,
)
from rrf_design.acquisition.sources.base import schema_of
from rrf_design.errors import InputError
from rrf_design.models.base import Outcome, Reply, Request, Usage
from rrf_design.responses import parsers


@pytest.mark.parametrize(
    ("numbers", "value", "outcome"),
    [
        ((Fraction(1, 4), 2), (0.25, 2.0), "given"),
        ((1.0,), None, "1 numbers where 2 are needed"),
        ((1.0, 2.0, 3.0), None, "3 numbers where 2 are needed"),
        ((1.0, float("nan")), None, "a number that is not finite"),
        ((float("-inf"), 1.0), None, "a number that is not finite"),
        ((1.0, 10**400), None, "a number that no double can hold"),
        ((Fraction(-(10**400)), 1.0), None, "a number that no double can hold"),
    ],
)
def test_only_finite_numbers_for_every_row_are_a_value(numbers: Any, value: Any, outcome: str) -> None:
    found = source_of("value", dim=2, value=[0.0, 0.0]).fitting(numbers, "given", money=0.5)
    assert (found.value, found.outcome, found.money) == (value, outcome, 0.5)
    assert found.ok is (value is not None)


def reply(outcome: Outcome, *, calls: int = 2, doubtful: int = 1) -> Reply:
    usage = Usage(calls=calls, doubtful=doubtful)
    return Reply("", outcome, usage, {}, {}, None, 0.0, calls, "nobody there")


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("money", [0.0, 0.25])
@pytest.mark.parametrize("passing", [None, False, True])
def test_who_gave_no_answer_is_asked_again_unless_it_was_paid_for(
    outcome: Outcome, money: float, passing: bool | None
) -> None:
    """Paid attempts are settled only where nothing is known about the server's other calls."""
    nobody = outcome in (Outcome.UNREACHABLE, Outcome.RATE_LIMITED)
    if not nobody or (passing is None and money > 0.0):
        refuse_unanswered(reply(outcome), money, passing=passing)
        return
    with pytest.raises(Unreachable, match="nobody there") as caught:
        refuse_unanswered(reply(outcome), money, passing=passing)
    assert "_" not in str(caught.value)
    assert caught.value.used == Attempted(2, money, 1)
    assert caught.value.passing is bool(passing)


def test_what_was_used_up_for_nothing_says_only_what_there_was() -> None:
    assert Attempted().document() == {}
    assert Attempted(3, 0.0, 1).document() == {"calls": 3, "doubtful": 1}


def test_repetitions_must_be_allowed() -> None:
    asked: list[str] = []

    def script(request: Request) -> str:
        asked.append(request.prompt)
        return "7"

    model = scripted(script)
    assert ask(model, Request("?"), None).text == "7"
    assert ask(model, Request("?"), lambda: False).text == "7"  # the first call is no repetition
    assert asked == ["?", "?"]


def test_a_schema_is_sent_only_to_a_model_that_takes_one() -> None:
    class Plain:
        supports_schema = False

    class Strict:
        supports_schema = True

    wants = parsers.get({"name": "json", "field": "total"})
    assert schema_of(wants, Plain()) == {}  # type: ignore[arg-type]
    assert '"total"' in schema_of(wants, Strict())["schema"]  # type: ignore[arg-type]
    assert schema_of(parsers.get("integer-last"), Strict()) == {}  # type: ignore[arg-type]


def test_nothing_is_allowed_unless_it_is_said() -> None:
    tools = Toolbox()
    assert (tools.model, tools.price, tools.allow_commands, tools.isolation) == (None, None, False, "seccomp")
    assert tools.options("any") == {}
    assert not Fetched("failed").ok
    assert Asked({}, {}).again is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "no value and no source"),
        ("value", "no value and no source"),
        ("vlaue", "did you mean 'value'"),
        ("expression:", "is unknown"),
        ("expression: 1 +", "not an expression"),
        ("expression: a + c", "no number called 'c'"),
        ("expression: [1, 2]", "gives 2 numbers, but the anchor has 1 rows"),
        ({"expression": "a", "tests": [[1]]}, "exactly one of"),
        ({"nothing": 1}, "exactly one of"),
        ({"expression": "a", "nonsense": 1}, "unknown key 'nonsense'"),
    ],
)
def test_refusals_name_the_anchor_once(source: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        source_of(source)
    assert str(caught.value).count("anchor 'A': ") == 1
    assert str(caught.value).startswith("anchor 'A': ")
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_every_source_is_found_under_the_name_that_it_records(kind: str) -> None:
    found = source_class(kind)
    assert issubclass(found, Source)
    assert found.kind == kind


def test_spaces_around_the_words_do_not_matter() -> None:
    assert source_of(" person :  Look it up. ").question == "Look it up."
    assert source_of("expression:a").numbers == source_of("expression :  a ").numbers == (12,)


def test_the_problem_s_own_table_is_left_as_it_was() -> None:
    given = {"expression": "x", "variables": {"x": 2}}
    source_of(given)
    assert given == {"expression": "x", "variables": {"x": 2}}
