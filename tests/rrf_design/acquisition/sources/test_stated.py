"""Values in the file, known classes, exact arithmetic, and people."""

from __future__ import annotations

from typing import Any

import pytest
from fields import source_of

from rrf_design.acquisition.sources import Asked
from rrf_design.errors import InputError

NOTHING = Asked({}, {})


def test_the_value_of_the_file() -> None:
    found = source_of(None, value=3.0).fetch(NOTHING)
    assert (found.value, found.outcome, found.money, found.calls) == ((3.0,), "revealed", 0.0, 0)
    assert source_of("value", dim=2, value=[1.0, 2.0]).fetch(NOTHING).value == (1.0, 2.0)


def test_without_a_value_there_is_nothing_to_reveal() -> None:
    with pytest.raises(InputError, match="no value and no source"):
        source_of("value")


def test_the_class_is_given_as_text_and_not_as_numbers() -> None:
    source = source_of({"label": "sport"})
    found = source.fetch(Asked({}, {}))
    assert source.instant
    assert (found.outcome, found.value) == ("known", None)
    assert found.evidence == {"reply": {"text": "sport"}}


@pytest.mark.parametrize("label", ["", 5, ["sport"], True])
def test_a_class_is_a_text(label: Any) -> None:
    with pytest.raises(InputError, match="give the class as text"):
        source_of({"label": label})


def test_an_expression_is_exact_and_kept_as_evidence() -> None:
    source = source_of("expression: (a + b) / 3")
    found = source.fetch(NOTHING)
    assert source.instant
    assert found.value == (19 / 3,)
    assert found.outcome == "computed"
    assert found.evidence == {"expression": "(a + b) / 3", "exact": ["19/3"]}


def test_variables_of_its_own_go_before_the_node_s() -> None:
    assert source_of({"expression": "x * a", "variables": {"x": 2}}).fetch(NOTHING).value == (24.0,)
    assert source_of({"expression": "a", "variables": {"a": 5}}).fetch(NOTHING).value == (5.0,)


def test_a_number_beyond_the_doubles_is_refused_before_it_is_bought() -> None:
    with pytest.raises(InputError, match=r"anchor 'A': the expression gives a number that no double can hold"):
        source_of("expression: 10**400")
    assert source_of("expression: 10**400 / 10**399").fetch(NOTHING).value == (10.0,)


def test_people_are_asked_through_the_queue() -> None:
    source = source_of("person: Look it up.")
    assert source.deferred
    assert not source.local
    assert source.question == "Look it up."
    assert source_of({"person": "?"}).question == "?"
    with pytest.raises(InputError, match=r"anchor 'A': .*review file"):
        source.fetch(Asked({}, {}))


def test_without_words_the_question_is_empty() -> None:
    assert source_of("person").question == ""
    assert source_of({"person": True}).question == ""
