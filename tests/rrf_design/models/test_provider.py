"""Providers of the optional extra, and Anthropic's batches."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from types import SimpleNamespace
from typing import Any

import anthropic
import pytest
from loopback_server import SECRET, WIRINGS, Backend, Wiring, ask

from rrf_design import models
from rrf_design.errors import InputError, MissingDependency
from rrf_design.models import Model, Outcome, Request, Retry, Usage
from rrf_design.models.batches import BatchFault, BatchState, Handed, Undecided
from rrf_design.models.pacing import Pace
from rrf_design.models.provider import _failed_line, _MessageBatches


@pytest.fixture(params=["openrouter", "anthropic"])
def wiring(request: pytest.FixtureRequest) -> Wiring:
    return WIRINGS[request.param]


def test_asked_once_with_what_is_set_and_nothing_else(backend: Backend, client: Model) -> None:
    reply = ask(backend, client, (200, {}, backend.write("5", "stop")))
    assert (reply.text, reply.outcome, reply.usage) == ("5", Outcome.ANSWERED, Usage(7, 1, 1))
    path, sent = backend.paths[0], backend.seen[0]
    assert sent["temperature"] == 0.5
    assert not {"seed", "top_p", "stream"} & set(sent)
    if path.endswith("/messages"):
        assert (sent["max_tokens"], sent["system"], sent["stop_sequences"]) == (64, "s", ["\n"])
    else:
        assert (sent["max_completion_tokens"], sent["stop"]) == (64, ["\n"])
    assert reply.raw_request["messages"][1]["content"] == "2 + 3?"
    assert client.identity["base_url"] == backend.url


def test_many_at_once_in_an_event_loop(backend: Backend, client: Model) -> None:
    backend.plan = [(200, {}, backend.write("5", "stop"))] * 20

    async def all_of_them() -> list[models.Reply]:
        pace = Pace(8)
        asked = Request("?", seed=None, temperature=None, top_p=None)
        replies = await asyncio.gather(*(client.ask_async(asked, pace) for _ in range(20)))
        await client.release()
        return replies

    assert {(r.text, r.usage.calls) for r in asyncio.run(all_of_them())} == {("5", 1)}
    assert len(backend.seen) == 20


def test_a_setting_that_the_provider_does_not_know_buys_nothing(backend: Backend) -> None:
    with models.get(backend.spec, base_url=backend.url, extra={"colour": "blue"}) as model:
        reply = ask(backend, model)
    assert (reply.outcome, reply.usage, backend.seen) == (Outcome.FAILED, Usage(), [])
    assert "colour" in reply.detail


def test_seeds_are_refused_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with models.get("anthropic:m") as model, pytest.raises(InputError, match="anthropic knows no seeds"):
        model.ask(Request("?", seed=1))


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("anthropic:m", InputError, "model anthropic:m: set ANTHROPIC_API_KEY"),
        (
            "nebius:m",
            MissingDependency,
            r"the client of nebius is not installed; .* pip install 'any-llm-sdk\[nebius\]'",
        ),
        ("liner:m", InputError, "repeats calls that nobody counts"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    spec: str, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from any_llm import AnyLLM

    monkeypatch.setattr(AnyLLM.get_provider_class("nebius"), "MISSING_PACKAGES_ERROR", ImportError("no client"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(kind, match=message) as caught:
        models.get(spec)
    assert "\n" not in str(caught.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "any_llm", None)
    with pytest.raises(MissingDependency, match=r"pip install 'rrf-design\[providers\]'"):
        models.get("anthropic:claude")
    with pytest.raises(InputError, match="did you mean 'openai:gpt-4o'"):
        models.get("opnai:gpt-4o")


def test_bad_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with pytest.raises(InputError, match="must begin with http"):
        models.get("anthropic:m", base_url="localhost:80")
    with pytest.raises(InputError, match="unknown option 'slot'; did you mean 'slots'"):
        models.get("anthropic:m", slot=3)


def test_no_provider_that_can_be_asked_repeats_a_call_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every provider whose client is installed, against a server that fails: one attempt is one
    request, and one call in the books.
    """
    from any_llm import AnyLLM

    from rrf_design.models.provider import providers

    server = Backend(WIRINGS["openrouter"])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    tried, failed = set(), (500, {}, {"error": {"message": "no"}})
    try:
        for name in providers():
            try:
                monkeypatch.setenv(AnyLLM.get_provider_class(name).ENV_API_KEY_NAME or "NOBODYS_KEY", SECRET)
                made = models.get(f"{name}:m", base_url=server.url, timeout=5.0, retry=Retry(attempts=1))
            except (ImportError, InputError, MissingDependency):
                continue  # refused, or not there
            before = len(server.seen)
            with made as model:
                reply = ask(server, model, *[failed] * 4)
            assert (name, len(server.seen) - before, reply.usage.calls) == (name, 1, 1)
            tried.add(name)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert {"anthropic", "deepseek", "openai", "openrouter"} <= tried


@pytest.mark.parametrize(("status", "refused"), [(200, True), (404, False)])
def test_a_web_page_is_no_model_server(
    backend: Backend, client: Model, status: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page in the place of the list of models is said before anything is bought; that there is no
    such list is no fault.
    """
    import httpx

    backend.plan = [(200, {}, {"data": [], "has_more": False, "first_id": None, "last_id": None})]
    monkeypatch.setattr(httpx, "get", lambda *_, **__: httpx.Response(status, html="<html>Welcome</html>"))
    if not refused:
        client.preflight()
        return
    with pytest.raises(InputError, match=r"a web page answers at .*, no model server"):
        client.preflight()


TOKEN = "a" * 16 + "b" * 8


def listed(name: str, names: tuple[str, ...], *, ended: bool = True) -> SimpleNamespace:
    counts = [("processing", 0 if ended else len(names)), ("succeeded", len(names) if ended else 0), ("errored", 0)]
    status = "ended" if ended else "in_progress"
    return SimpleNamespace(id=name, processing_status=status, request_counts=counts, names=names)


class Service:
    """The client's part for batches, over a list: the newest first."""

    def __init__(self, *batches: SimpleNamespace) -> None:
        self.known = list(batches)
        self.messages = SimpleNamespace(batches=self)

    def list(self, *, limit: int) -> Any:
        class Page(list):  # type: ignore[type-arg]
            data = property(list)

        return Page(self.known[:limit])

    def results(self, name: str) -> Any:
        batch = next(batch for batch in self.known if batch.id == name)
        if batch.names is None:
            raise anthropic.AnthropicError("No `results_url` for the given batch")
        lines = [json.dumps({"custom_id": one, "result": {"type": "expired"}}) for one in batch.names]
        text = "\n".join(["no JSON", "[]", "{}", *lines])
        return SimpleNamespace(http_response=SimpleNamespace(iter_text=lambda: [text[:7], text[7:]]))


def test_only_a_line_feed_ends_a_line() -> None:
    name = "a" * 16 + "_one\u2028two\u0085three"
    text = json.dumps({"custom_id": name}, ensure_ascii=False) + "\n"
    response = SimpleNamespace(http_response=SimpleNamespace(iter_text=lambda: [text]))
    service = SimpleNamespace(results=lambda batch: response)
    interface = _MessageBatches(SimpleNamespace(messages=SimpleNamespace(batches=service)), anthropic)
    assert [line["custom_id"] for line in interface.lines(BatchState("b", "completed"))] == ["one\u2028two\u0085three"]


def found(*batches: SimpleNamespace, mark: str = "old") -> str | None:
    state = _MessageBatches(Service(*batches), anthropic).find(Handed(TOKEN, mark, 2))
    return None if state is None else state.id


MINE = ("a" * 16 + "_0-x", "a" * 16 + "_0-y")
OTHERS = ("c" * 16 + "_0-x", "c" * 16 + "_0-y")


def test_batches_are_found_by_their_requests_and_names() -> None:
    assert found(listed("new", OTHERS), listed("mine", MINE), listed("old", OTHERS)) == "mine"
    service = _MessageBatches(Service(listed("mine", MINE)), anthropic)
    state = service.find(Handed(TOKEN, "", 2))
    assert state is not None
    assert [line["custom_id"] for line in service.lines(state)] == ["0-x", "0-y"]


def test_lost_batches_are_told_from_those_that_may_be_it() -> None:
    assert found(listed("new", OTHERS), listed("old", MINE)) is None  # what was there before is not it
    assert found(listed("larger", (*MINE, "z"), ended=False), listed("old", OTHERS)) is None
    assert found(mark="") is None
    with pytest.raises(Undecided):
        found(listed("new", MINE, ended=False), listed("old", OTHERS))
    assert found(listed("new", OTHERS, ended=False), listed("mine", MINE), listed("old", OTHERS)) == "mine"
    gone = listed("gone", MINE)
    gone.names = None
    with pytest.raises(BatchFault) as fault:
        found(gone)
    assert fault.value.gone
    assert _MessageBatches(Service(listed("new", MINE), listed("old", MINE)), anthropic).mark() == "new"
    assert _MessageBatches(Service(), anthropic).mark() == ""


@pytest.mark.parametrize(
    ("result", "outcome", "usage"),
    [
        ({"type": "expired"}, Outcome.UNREACHABLE, Usage()),
        ({"type": "canceled"}, Outcome.UNREACHABLE, Usage()),
        ({}, Outcome.UNREACHABLE, Usage()),
        ({"type": "errored", "error": {"error": {"type": "invalid_request_error"}}}, Outcome.FAILED, Usage(calls=1)),
        ({"type": "errored", "error": {"error": {"type": "overloaded_error"}}}, Outcome.UNREACHABLE, Usage(calls=1)),
        ({"type": "errored", "error": {"error": {"type": "rate_limit_error"}}}, Outcome.RATE_LIMITED, Usage(calls=1)),
        ({"type": "errored", "error": {"error": {"type": "news"}}}, Outcome.UNREACHABLE, Usage(calls=1)),
        ({"type": "errored", "error": None}, Outcome.UNREACHABLE, Usage()),
    ],
)
def test_lines_without_an_answer_are_not_charged(result: dict[str, Any], outcome: Outcome, usage: Usage) -> None:
    attempt = _failed_line(result, {})
    assert (attempt.outcome, attempt.usage) == (outcome, usage)
