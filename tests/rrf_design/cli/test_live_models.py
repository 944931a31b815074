"""Options of the verbs that ask models: what was not given is not passed on, and consent is asked for unless it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design.cli.live_models import chosen_models
from rrf_design.errors import InputError


def test_only_what_is_given_is_passed_on() -> None:
    bare = chosen_models(["embedded"], None)
    assert bare.model == "embedded"
    assert bare.store is None
    assert bare.options["model_options"] == {}
    full = chosen_models(
        ["a=embedded", "b=openai:x"], "j.sqlite", base_url="http://here", slots=3, money=2.5, prices=Path("p.toml")
    )
    assert isinstance(full.model, dict)
    assert set(full.model) == {"a", "b"}
    assert full.store == "j.sqlite"
    assert full.options["model_options"] == {"base_url": "http://here", "slots": 3}
    assert (full.options["money"], full.options["prices"]) == (2.5, Path("p.toml"))


def test_no_model_is_none() -> None:
    assert chosen_models(None, None).model is None
    assert chosen_models([], None).model is None


def test_two_models_need_names() -> None:
    with pytest.raises(InputError, match="several models need names"):
        chosen_models(["embedded", "openai:x"], None)


@pytest.mark.parametrize(("cache", "kept"), [("off", False), ("here", True)])
def test_where_answers_are_kept(cache: str, kept: bool, tmp_path: Path) -> None:
    found = chosen_models(["embedded"], None, cache=str(tmp_path / cache) if kept else cache).options["cache"]
    assert (found is not None) is kept


@pytest.mark.parametrize(("yes", "said", "agreed"), [(True, False, True), (False, True, True), (False, False, False)])
def test_consent_is_given_by_yes_or_by_a_limit(
    monkeypatch: pytest.MonkeyPatch, yes: bool, said: bool, agreed: bool
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "rrf_design.cli.live_models.agreed", lambda spending, *, said, quiet: asked.append(said) or said
    )
    consent = chosen_models(["embedded"], None, yes=yes).options["consent"]
    assert consent("what it costs", said) is agreed
    assert asked == [agreed]
