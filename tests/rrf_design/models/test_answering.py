"""Models answer: the shipped suite over all adapters, names and keys, what servers say."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from rrf_design import models
from rrf_design.acquisition.redaction import Redactor
from rrf_design.errors import InputError
from rrf_design.models import Attempt, Model, Outcome, Reply, Request, Retry, Usage, key
from rrf_design.models._faults import (
    _cleaned,
    _duration,
    allowance,
    classify,
    counted,
    message,
    public,
    quiet,
    refuse_beforehand,
    refused,
)
from rrf_design.models.registry import _read_env
from rrf_design.models.scripted import ScriptedModel

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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": " \n"}, "the prompt is empty"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"temperature": -0.5}, "temperature is -0.5"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top_p is 0.0"),
    ],
)
def test_bad_requests(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Request(**{"prompt": "x", **change})


class Failing(Model):
    """Fails in a given order, then answers; a failing double for whoever calls models."""

    name = "failing"

    def __init__(self, *outcomes: Outcome, attempts: int = 4, retry_after: float | None = None) -> None:
        self.outcomes = list(outcomes)
        self.waits: list[float] = []
        self.retry = Retry(attempts=attempts, base=0.5, longest=8.0, sleep=self.waits.append)
        self.retry_after = retry_after

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"adapter": "failing", "model": "failing"}

    def attempt(self, request: Request) -> Attempt:
        if self.outcomes:
            return Attempt(self.outcomes.pop(0), usage=Usage(2, 0, 1), retry_after=self.retry_after)
        return Attempt(Outcome.ANSWERED, "5", Usage(3, 1, 1))


def test_retries_are_bounded_and_paid_for() -> None:
    model = Failing(Outcome.RATE_LIMITED, Outcome.TIMEOUT)
    reply = model.ask(Request("x"))
    assert (reply.outcome, reply.text, reply.attempts) == (Outcome.ANSWERED, "5", 3)
    assert reply.usage == Usage(7, 1, 3)
    assert len(model.waits) == 2

    model = Failing(*[Outcome.UNREACHABLE] * 9)
    reply = model.ask(Request("x"))
    assert (reply.outcome, reply.attempts, len(model.waits)) == (Outcome.UNREACHABLE, 4, 3)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.EMPTY, Outcome.GARBAGE, Outcome.FAILED])
def test_final_outcomes_are_not_retried(outcome: Outcome) -> None:
    model = Failing(outcome)
    reply = model.ask(Request("x"))
    assert (reply.outcome, reply.attempts, model.waits) == (outcome, 1, [])
    assert not reply.parseable


def test_waits_are_jittered_within_bounds_and_respect_the_server() -> None:
    waits: list[float] = []
    retry = Retry(base=0.5, longest=8.0, sleep=waits.append)
    for done in range(1, 60):
        retry.wait(done, None)
    assert all(0.0 <= wait <= min(8.0, 0.5 * 2.0**done) for done, wait in enumerate(waits, 1))
    assert len(set(waits)) > 10
    model = Failing(Outcome.RATE_LIMITED, retry_after=3.0)
    model.ask(Request("x"))
    assert model.waits[0] == 3.0
    model = Failing(Outcome.RATE_LIMITED, retry_after=3600.0)
    model.ask(Request("x"))
    assert model.waits == [8.0]


def test_unknown_usage_is_charged_at_the_ceiling() -> None:
    class Silent(Failing):
        def attempt(self, request: Request) -> Attempt:
            return Attempt(Outcome.ANSWERED, "5")

    request = Request("héllo", system="sys", max_tokens=9)
    reply = Silent().ask(request)
    assert reply.usage == request.ceiling()
    assert reply.usage.estimated
    assert reply.usage.output_tokens == 9
    assert reply.usage.input_tokens >= len("héllosys".encode())


def test_keys_are_canonical_and_requests_come_back() -> None:
    request = Request("ä", stop=("\n",))
    assert key(request, {"a": 1, "b": 2}) == key(Request("ä", stop=("\n",)), {"b": 2, "a": 1})
    assert len(key(request, {})) == 64
    changed = [Request("ä"), Request("ä", stop=("\n",), seed=1), Request("ä", stop=("\n",), system="s")]
    assert len({key(r, {}) for r in [request, *changed]}) == 4
    request = Request("q", system="s", stop=("a", "b"), temperature=0.7, top_p=0.9, seed=3, grammar="root ::= [0-9]+")
    assert Request.from_document(json.loads(json.dumps(request.document()))) == request


def test_complete_uses_all_slots() -> None:
    together = threading.Barrier(3)

    class Wide(Failing):
        slots = 3

        def attempt(self, request: Request) -> Attempt:
            together.wait(timeout=10)  # returns only if three calls are in flight at once
            return Attempt(Outcome.ANSWERED, request.prompt, Usage(1, 1, 1))

    replies = Wide().complete([Request(str(i)) for i in range(6)])
    assert [reply.text for reply in replies] == [str(i) for i in range(6)]


def test_context_manager_closes() -> None:
    closed = []

    class Closing(Failing):
        def close(self) -> None:
            closed.append(True)

    with Closing():
        pass
    assert closed == [True]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("embeded", "did you mean 'embedded'"),
        ("nonsense-name", "Known: embedded"),
        ("gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("claude-sonnet-4", "did you mean 'anthropic:claude-sonnet-4'"),
        ("opnai:gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("antropic:claude", "did you mean 'anthropic:claude'"),
        ("anthropic:", "Known: embedded"),
        ("embedded:x", "write it as embedded"),
        ("openai", "write it as openai:NAME"),
        ("scripted:", "write it as scripted:FILE"),
        ("no/such/model.gguf", "there is no such file"),
        ("scripted:no/such/file.json", "can't read the script"),
        ("replay:no/such/file.jsonl", "can't read the answer log"),
    ],
)
def test_bad_names(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        models.get(spec)


def test_unknown_option_suggests(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text('{"default": "7"}')
    with pytest.raises(InputError, match="did you mean 'slots'"):
        models.get(f"scripted:{script}", slot=3)
    model = models.get(f"scripted:{script}", slots=3)
    assert model.slots == 3
    assert model.ask(models.Request("anything")).text == "7"


def test_adapter_objects_pass_through_and_every_kind_is_listed() -> None:
    model = ScriptedModel(lambda request: "5")
    assert models.get(model) is model
    with pytest.raises(InputError, match="ready adapter object"):
        models.get(model, slots=2)
    assert "embedded" in models.names()
    assert "openai:NAME" in models.names()


FILE = """# keys
OPENAI_API_KEY=sk-from-the-file-0123456789
export OTHER = "two words \\"and\\" more"   # a remark
SINGLE='as it $is'
BARE=value # a remark
EMPTY=
"""


def test_what_a_file_says(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(FILE)
    assert _read_env(tmp_path / ".env") == {
        "OPENAI_API_KEY": "sk-from-the-file-0123456789",
        "OTHER": 'two words "and" more',
        "SINGLE": "as it $is",
        "BARE": "value",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [("A=1\nsk-secret-secret", "line 2: this is not NAME=value"), ('A="sk-secret', "line 1: a quotation mark is not")],
)
def test_a_bad_line_is_named_and_not_shown(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / ".env").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        _read_env(tmp_path / ".env")
    assert "secret" not in str(caught.value)


def test_models_find_their_keys_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "OPENAI_API_KEY",
        "RRF_OPENAI_API_KEY",
        "RRF_OPENAI_BASE_URL",
        "OPENAI_BASE_URL",
        "OTHER",
        "SINGLE",
        "BARE",
        "EMPTY",
    ):
        monkeypatch.setenv(name, "")  # so that what is set below is taken away again
        monkeypatch.delenv(name)
    with pytest.raises(InputError, match="set OPENAI_API_KEY"):
        models.get("openai:m")
    (tmp_path / ".env").write_text(FILE)
    monkeypatch.setenv("BARE", "the environment's own")
    with models.get("openai:m") as model:
        assert "sk-from-the-file" not in repr(model) + str(model.identity)
    assert os.environ["BARE"] == "the environment's own"
    assert "sk-from-the-file" not in Redactor().text("the key is sk-from-the-file-0123456789")


@pytest.mark.parametrize(
    ("text", "finish", "outcome"),
    [
        ("5", "stop", Outcome.ANSWERED),
        ("5 and then", "length", Outcome.TRUNCATED),
        ("", "stop", Outcome.EMPTY),
        (" \n\t", "length", Outcome.EMPTY),
        ("\ufffd\ufffd\ufffd a", "stop", Outcome.GARBAGE),
        ("\x00\x01\x02", "stop", Outcome.GARBAGE),
        ("I'm sorry, but I can't help with that.", "stop", Outcome.REFUSED),
        ("I cannot answer this question.", "stop", Outcome.REFUSED),
        ("As an AI language model, I have no opinion.", "length", Outcome.REFUSED),
        ("I'm sorry for the delay: it is 5.", "stop", Outcome.ANSWERED),
        ("Anything", "content_filter", Outcome.REFUSED),
        ("I can tell you: Paris", "stop", Outcome.ANSWERED),
    ],
)
def test_outcomes(text: str, finish: str, outcome: Outcome) -> None:
    attempt = classify(text, finish, None, {}, {})
    assert attempt.outcome is outcome
    assert attempt.text == text


def test_declared_refusal() -> None:
    attempt = classify("", "stop", None, {}, {}, refusal="policy")
    assert (attempt.outcome, attempt.detail) == (Outcome.REFUSED, "policy")


def test_rate_headers_and_retry_after_are_heard() -> None:
    assert quiet({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0.5s"}) == 360.5
    assert quiet({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "6m"}) is None
    assert [_duration(text) for text in ("20ms", "3", "1h", "soon", "", None)] == [0.02, 3.0, 3600.0, None, None, None]
    assert refused(429, {"retry-after": "7"}, "later", {}).retry_after == 7.0
    assert refused(503, {"retry-after-ms": "250"}, "later", {}).retry_after == 0.25
    assert not refused(429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "later", {}).retry_after
    future = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500.0 < (refused(429, {"retry-after": future}, "later", {}).retry_after or 0.0) <= 3600.0
    assert refused(429, {"retry-after": "soon"}, "later", {}).retry_after is None


def test_servers_are_heard_without_secrets_or_guesses() -> None:
    assert allowance({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "6m"}) == (3, 360.0)
    assert allowance({"x-ratelimit-remaining-requests": "many", "x-ratelimit-reset-requests": "6m"}) is None
    assert allowance({"x-ratelimit-remaining-requests": "3"}) is None
    assert _cleaned({"a": ["the key k-1", 3, None]}, ("k-1",)) == {"a": ["the key [redacted]", 3, None]}
    assert message('{"error": {"message": "no"}}') == "no"
    assert message("<html>") == "<html>"
    assert public("https://me:pass@host:1/v1?key=1") == "https://host:1/v1"
    assert counted({"usage": {"prompt_tokens": 3, "completion_tokens": 1}}) == Usage(3, 1, 1)
    assert counted({"usage": {"prompt_tokens": True, "completion_tokens": 1}}) is None
    assert counted({}) is None


@pytest.mark.parametrize(
    ("status", "outcome", "usage"),
    [
        (401, Outcome.FAILED, Usage(calls=1)),
        (408, Outcome.TIMEOUT, None),
        (429, Outcome.RATE_LIMITED, Usage(calls=1)),
        (529, Outcome.UNREACHABLE, Usage(calls=1)),
    ],
)
def test_only_what_is_certainly_free_is_free(status: int, outcome: Outcome, usage: Usage | None) -> None:
    attempt = refused(status, {}, "words", {"prompt": "?"})
    assert (attempt.outcome, attempt.usage, attempt.raw_request) == (outcome, usage, {"prompt": "?"})


def test_a_server_that_redirects_is_told_of_beforehand() -> None:
    attempt = refused(308, {"location": "https://elsewhere"}, "HTTP 308", {})
    with pytest.raises(InputError, match=r"^model m: the server redirects to another address, .*correct base_url"):
        refuse_beforehand("m", attempt, url="http://here", key="KEY")
