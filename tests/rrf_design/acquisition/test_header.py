"""What a run's header says: enough to understand it later, no secret, and which models it may go on with."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from fields import ring, scripted

import rrf_design as rrf
from rrf_design.acquisition.header import answering, header_of, revision, same_models, versions
from rrf_design.acquisition.settings import Settings
from rrf_design.errors import Refused
from rrf_design.files import digest


class Roster(dict):  # type: ignore[type-arg]
    first = "main"


def roster(**identities: Any) -> Any:
    named = {name: SimpleNamespace(name=f"m:{name}", identity=identity) for name, identity in identities.items()}
    return Roster(named)


def made(entries: dict[str, Any], **problems: rrf.Problem) -> dict[str, Any]:
    models = roster(main={"model": "x", "slots": 4}, other={"model": "y"})
    return header_of(problems, models, Settings(), 7, entries=entries)


def test_it_names_everything_that_decides_a_run() -> None:
    one = ring()
    told = made({"main": {"use": "openai:x"}, "other": {}}, only=one)
    assert (told["format"], told["name"], told["seed"], told["program"]) == ("rrf-run", "ring", 7, rrf.__version__)
    assert told["digests"] == {"only": digest(one)}
    assert told["settings"] == Settings().document()
    assert (told["model"], told["identity"]) == ("m:main", {"model": "x", "slots": 4})
    assert set(told["models"]) == {"main", "other"}
    assert told["models"]["other"]["use"] is None
    assert made({"main": {}, "other": {}}, a=one, b=one)["name"] == "2 items"
    json.dumps(told, allow_nan=False)


def test_no_secret_and_no_object_is_written_down() -> None:
    entries = {
        "main": {
            "use": "openai:x",
            "api_key": "sk-1",
            "base_url": "http://here",
            "adapter": scripted(),
            "headers": {"Authorization": "Bearer t"},
            "nested": {"plain": [1, "two"]},
            "max_tokens": 20,
        },
        "other": {},
    }
    told = made(entries, only=ring())["models"]["main"]
    assert {key: told[key] for key in ("use", "base_url", "nested", "max_tokens")} == {
        "use": "openai:x",
        "base_url": "http://here",
        "nested": {"plain": [1, "two"]},
        "max_tokens": 20,
    }
    assert "sk-1" not in json.dumps(told)
    assert "Bearer" not in json.dumps(told)
    assert "adapter" not in told


@pytest.mark.parametrize(
    ("now", "same"),
    [
        ({"main": {"model": "x", "slots": 9}}, True),  # how many at once changes no answer
        ({"main": {"model": "x"}, "new": {"model": "z"}}, True),
        ({"main": {"model": "x2"}}, False),
        ({"main": {"model": "x", "template": "t"}}, False),
        ({"else": {"model": "x"}}, False),
    ],
)
def test_a_run_goes_on_with_the_backends_it_began_with(now: dict[str, Any], same: bool) -> None:
    before = {"model": "m:main", "models": {"main": {"identity": {"model": "x", "slots": 4}}}}
    if same:
        same_models("r1", before, roster(**now))
        return
    with pytest.raises(Refused, match=r"run r1: it was begun with m:main and this is .* start a new run"):
        same_models("r1", before, roster(**now))


def test_older_headers_name_one_model() -> None:
    before = {"model": "m:main", "identity": {"model": "x", "slots": 1}}
    same_models("r1", before, roster(main={"model": "x"}))
    with pytest.raises(Refused):
        same_models("r1", before, roster(main={"model": "y"}))
    assert answering({"model": "x", "slots": 3}) == {"model": "x"}


def test_versions_are_of_what_is_installed() -> None:
    import numpy as np

    assert versions()["numpy"] == np.__version__
    assert "no-such-package" not in versions()
    assert revision() == "" or len(revision()) == 40
