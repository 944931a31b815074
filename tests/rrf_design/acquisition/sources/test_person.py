"""People are asked through the queue, and the run goes on meanwhile."""

from __future__ import annotations

import pytest
from fields import source_of

from rrf_design.acquisition.sources import Asked
from rrf_design.errors import InputError


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
