from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.models import Attempt, Outcome, Request, Usage
from rrf_design.models.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"rule": []}, "keys rules and default"),
        ({"rules": [3]}, "rule 1: a rule is an object"),
        ({"rules": [{"prompt": "a", "text": "b"}, {"promt": "a"}]}, "rule 2: unknown key 'promt'"),
        ({"rules": [{"text": "a"}]}, "either prompt or pattern"),
        ({"rules": [{"prompt": "a"}]}, "a text or an outcome"),
        ({"rules": [{"pattern": "(", "text": "b"}]}, "rule 1"),
        ({"rules": [{"prompt": "a", "outcome": "tired"}]}, "tired"),
        ({"rules": [{"prompt": "a", "text": "b", "failures": ["refused"]}]}, "never retried"),
    ],
)
def test_bad_scripts(script: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ScriptedModel(script)


def test_not_json(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        ScriptedModel(path)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_can_be_scripted(outcome: Outcome) -> None:
    model = ScriptedModel({"rules": [{"prompt": "a", "outcome": outcome.value, "detail": "because"}]})
    reply = model.ask(Request("a"))
    assert reply.outcome is outcome
    assert reply.detail == "because"


def test_failures_come_before_the_answer_in_every_ask() -> None:
    rule = {"prompt": "a", "text": "5", "failures": ["rate_limited", "unreachable"]}
    model = ScriptedModel({"rules": [rule]})
    for _ in range(2):
        reply = model.ask(Request("a"))
        assert (reply.outcome, reply.attempts) == (Outcome.ANSWERED, 3)
        assert reply.usage.calls == 2  # a server that was never reached is not paid


def test_unknown_prompt_fails_or_gets_the_default() -> None:
    assert ScriptedModel({"rules": []}).ask(Request("a")).outcome is Outcome.FAILED
    assert ScriptedModel({"default": "x"}).ask(Request("a")).text == "x"


def test_functions_may_return_whole_attempts() -> None:
    model = ScriptedModel(lambda request: Attempt(Outcome.REFUSED, "no", Usage(1, 1, 1)))
    assert model.ask(Request("a")).outcome is Outcome.REFUSED


def test_identity_is_the_content(tmp_path: Path) -> None:
    script = {"default": "1"}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(script, indent=3))
    assert ScriptedModel(path).identity == ScriptedModel(script).identity
    assert ScriptedModel({"default": "2"}).identity != ScriptedModel(script).identity
