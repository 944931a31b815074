"""A check whose class is known: it gives the word, and the run's classes know its coordinate."""

from __future__ import annotations

from typing import Any

import pytest
from fields import source_of

from rrf_design.acquisition.sources import Asked
from rrf_design.errors import InputError


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
