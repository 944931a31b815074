"""The value in the file, revealed on purchase."""

from __future__ import annotations

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
