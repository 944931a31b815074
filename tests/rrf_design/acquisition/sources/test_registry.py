"""Sources by name: what the words of a file mean, and what is refused before anything is bought."""

from __future__ import annotations

from typing import Any

import pytest
from fields import source_of

from rrf_design.acquisition.sources import SOURCES, Source, source_class
from rrf_design.errors import InputError


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
