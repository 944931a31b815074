"""The OpenAI adapter's own: what it sends, what it takes for garbage, schemas, limits, and what it finds out beforehand. What every adapter with
a server promises is in test_server_conformance."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from loopback_server import GOOD, SECRET, WIRINGS, Backend, Wiring, ask, over_the_wire

from rrf_design import models
from rrf_design.errors import InputError
from rrf_design.models import Model, Outcome, Reply, Request, Usage


@pytest.fixture(params=["client", "wire"])
def wiring(request: pytest.FixtureRequest) -> Wiring:
    """Everything is tried through the general client and over the lean wire: it must mean the same."""
    return WIRINGS[request.param]


def test_request_as_sent(backend: Backend, client: Model) -> None:
    reply = ask(backend, client, (200, {}, GOOD), seed=4, top_p=0.9)
    assert (reply.text, reply.outcome, reply.usage) == ("5", Outcome.ANSWERED, Usage(7, 1, 1))
    sent = backend.seen[0]
    assert sent == reply.raw_request
    assert sent["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "2 + 3?"}]
    assert (sent["seed"], sent["temperature"], sent["top_p"], sent["stop"]) == (4, 0.5, 0.9, ["\n"])
    assert reply.raw_response == GOOD


@pytest.mark.parametrize(
    "body",
    ['{"choices": []}', '{"choices": [{"message": {"content": 5}}]}', "[" * 5000],
)
def test_garbage(backend: Backend, client: Model, body: str) -> None:
    reply = ask(backend, client, (200, {}, body))
    assert reply.outcome is Outcome.GARBAGE
    assert reply.usage.estimated  # an answer came, so it is paid for


def test_unstated_usage_is_charged_at_the_ceiling(backend: Backend, client: Model) -> None:
    reply = ask(backend, client, (200, {}, {"choices": GOOD["choices"], "usage": {"prompt_tokens": "many"}}))
    assert reply.outcome is Outcome.ANSWERED
    assert reply.usage.estimated


def test_password_in_the_address_is_not_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with models.get("openai:m", base_url="http://me:hunter2@127.0.0.1:9/v1?token=hunter3") as model:
        assert model.identity["base_url"] == "http://127.0.0.1:9/v1"


def test_bad_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "RRF_OPENAI_API_KEY", "RRF_OPENAI_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        models.get("openai:m")
    with pytest.raises(InputError, match="must begin with http"):
        models.get("openai:m", base_url="localhost:80")


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "RRF_OPENAI_BASE_URL"])
def test_the_address_comes_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the provider's own client: a key must not go to another server than the one that was named."""
    monkeypatch.delenv("RRF_OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:2/v1")
    monkeypatch.setenv(name, "http://127.0.0.1:1/v1")
    with models.get("openai:m") as model:
        assert model.identity["base_url"] == "http://127.0.0.1:1/v1"


def test_what_is_not_set_is_not_sent(backend: Backend, client: Model) -> None:
    backend.plan = [(200, {}, GOOD)]
    client.ask(Request("?", temperature=None, top_p=None, seed=None))
    assert set(backend.seen[0]) == {"model", "messages", "max_tokens"}


SCHEMA = '{"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}'


def form(backend: Backend, client: Model, *plan: Any) -> Reply:
    backend.plan = list(plan)
    request = Request("total?", schema=SCHEMA)
    return asyncio.run(over_the_wire(client, request)) if backend.by_wire else client.ask(request)


def test_a_schema_is_sent(backend: Backend, client: Model) -> None:
    reply = form(backend, client, (200, {}, GOOD))
    assert backend.seen[0]["response_format"]["json_schema"]["schema"] == json.loads(SCHEMA)
    assert (reply.outcome, reply.detail) == (Outcome.ANSWERED, "")


def test_a_server_that_refuses_schemas_is_asked_without_and_it_is_recorded(backend: Backend, client: Model) -> None:
    no = (400, {}, {"error": {"message": "'response_format' of type json_schema is not supported"}})
    reply = form(backend, client, no, (200, {}, GOOD))
    assert ["response_format" in call for call in backend.seen] == [True, False]
    assert (reply.outcome, reply.attempts, reply.usage.calls) == (Outcome.ANSWERED, 2, 2)  # every call is booked
    assert reply.detail == "asked without the JSON schema, which the server refused"
    assert "response_format" not in reply.raw_request
    reply = form(backend, client, (200, {}, GOOD))  # it is not offered again
    assert (reply.attempts, reply.detail) == (1, "asked without the JSON schema, which the server refused")


def test_another_refusal_is_none_of_the_schema(backend: Backend, client: Model) -> None:
    reply = form(backend, client, (400, {}, {"error": {"message": "the prompt is too long"}}))
    assert (reply.outcome, reply.attempts) == (Outcome.FAILED, 1)


def test_a_model_that_takes_no_limit_can_be_asked(backend: Backend) -> None:
    url = f"http://127.0.0.1:{backend.server_port}/v1"
    with models.get("openai:m", base_url=url, token_field="none", json_schema=False) as model:
        backend.plan = [(200, {}, GOOD)]
        model.ask(Request("?", temperature=None, top_p=None, seed=None))
        assert set(backend.seen[0]) == {"model", "messages"}
        assert not model.bounded
        with pytest.raises(InputError, match="takes no JSON schema"):
            model.ask(Request("?", schema=SCHEMA))


def test_a_web_page_is_no_model_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer of it would be garbage that counts as paid for."""
    import httpx
    import openai

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    page = httpx.MockTransport(lambda _: httpx.Response(200, html="<html>Welcome</html>"))
    with models.get("openai:m", base_url="http://127.0.0.1:9/v1") as model:
        model._client = openai.OpenAI(  # type: ignore[attr-defined]
            api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0, http_client=httpx.Client(transport=page)
        )
        with pytest.raises(InputError, match=r"a web page answers at http://127.0.0.1:9/v1.*correct base_url"):
            model.preflight()


def test_a_certificate_that_is_not_trusted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx
    import openai

    def refuse(request: httpx.Request) -> httpx.Response:
        reason = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"
        raise httpx.ConnectError(reason, request=request)

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with models.get("openai:m", base_url="https://127.0.0.1:9/v1") as model:
        own = httpx.Client(transport=httpx.MockTransport(refuse))
        model._client = openai.OpenAI(  # type: ignore[attr-defined]
            api_key="k", base_url="https://127.0.0.1:9/v1", max_retries=0, http_client=own
        )
        with pytest.raises(InputError, match=r"is not trusted here \(self-signed certificate\).*SSL_CERT_FILE"):
            model.preflight()
