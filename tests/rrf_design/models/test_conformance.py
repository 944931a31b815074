"""What every adapter promises. A new adapter joins by one fixture in ``conftest.py``."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rrf_design.errors import InputError
from rrf_design.models import Model, Outcome, Reply, Request, key

Questions = tuple[Request, Request, Request, Request]


def test_answers_with_everything_a_run_must_keep(model: Model, questions: Questions) -> None:
    reply = model.ask(questions[0])
    assert reply.outcome in (Outcome.ANSWERED, Outcome.TRUNCATED)
    assert reply.parseable
    assert reply.text.strip()
    assert reply.attempts == reply.usage.calls == 1
    assert 0 < reply.usage.output_tokens <= questions[0].max_tokens
    assert reply.usage.input_tokens > 0
    assert reply.usage.input_tokens <= questions[0].ceiling().input_tokens
    assert not reply.usage.estimated
    assert questions[0].prompt in json.dumps(reply.raw_request)
    assert reply.raw_response
    assert reply.latency >= 0.0


def test_reply_survives_json(model: Model, questions: Questions) -> None:
    reply = model.ask(questions[0])
    assert Reply.from_document(json.loads(json.dumps(reply.document()))) == reply


def test_identity_names_the_backend(model: Model, questions: Questions) -> None:
    identity = dict(model.identity)
    assert identity["adapter"]
    assert identity["model"]
    assert json.loads(json.dumps(identity)) == identity
    assert model.ask(questions[0]).identity == identity == dict(model.identity)
    assert key(questions[0], identity) != key(questions[0], {**identity, "runtime": "another"})


def test_greedy_answers_repeat(model: Model, questions: Questions) -> None:
    first, second = model.ask(questions[2]), model.ask(questions[2])
    assert (first.text, first.outcome, first.usage) == (second.text, second.outcome, second.usage)


def test_token_limit_is_its_own_outcome(model: Model, questions: Questions) -> None:
    reply = model.ask(questions[1])
    assert reply.outcome is Outcome.TRUNCATED
    assert reply.usage.output_tokens == questions[1].max_tokens
    assert reply.text.strip()


def test_complete_keeps_the_order(model: Model, questions: Questions) -> None:
    batch = [questions[2], questions[0], questions[2]]
    replies = model.complete(batch)
    assert [questions[0].prompt in json.dumps(reply.raw_request) for reply in replies] == [False, True, False]
    assert replies[0].text == replies[2].text
    assert model.complete([]) == ()


def test_grammar_is_obeyed_or_refused(model: Model, questions: Questions) -> None:
    if model.supports_grammar:
        assert model.ask(questions[3]).text in ("yes", "no")
    else:
        with pytest.raises(InputError, match="no grammars"):
            model.ask(questions[3])


def test_request_is_not_changed(model: Model, questions: Questions) -> None:
    before = replace(questions[0])
    model.ask(questions[0])
    assert questions[0] == before


def test_slots_and_name(model: Model) -> None:
    assert model.slots >= 1
    assert model.name in repr(model)
