"""Exact arithmetic over the node's variables: computed once, before anything is bought."""

from __future__ import annotations

import pytest
from fields import source_of

from rrf_design.acquisition.sources import Asked
from rrf_design.errors import InputError

NOTHING = Asked({}, {})


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
