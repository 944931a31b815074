"""Message batches: found again after a kill although nothing of the caller's is in them but names, and nothing made twice. The same promises
as of the other interface, over the wire: tests/rrf_design/acquisition/test_batching.py."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import anthropic
import pytest

from rrf_design.models import Outcome, Usage
from rrf_design.models.batches import BatchFault, BatchState, Handed, Undecided
from rrf_design.models.message_batches import MessageBatches, failed_line

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
    interface = MessageBatches(SimpleNamespace(messages=SimpleNamespace(batches=service)), anthropic)
    assert [line["custom_id"] for line in interface.lines(BatchState("b", "completed"))] == ["one\u2028two\u0085three"]


def found(*batches: SimpleNamespace, mark: str = "old") -> str | None:
    state = MessageBatches(Service(*batches), anthropic).find(Handed(TOKEN, mark, 2))
    return None if state is None else state.id


MINE = ("a" * 16 + "_0-x", "a" * 16 + "_0-y")
OTHERS = ("c" * 16 + "_0-x", "c" * 16 + "_0-y")


def test_found_by_the_names_of_its_requests() -> None:
    assert found(listed("new", OTHERS), listed("mine", MINE), listed("old", OTHERS)) == "mine"


def test_none_among_the_newer_ones_was_never_made() -> None:
    assert found(listed("new", OTHERS), listed("old", MINE)) is None  # what was there before is not it
    assert found(listed("larger", (*MINE, "z"), ended=False), listed("old", OTHERS)) is None
    assert found(mark="") is None


def test_what_has_not_ended_may_be_it() -> None:
    with pytest.raises(Undecided):
        found(listed("new", MINE, ended=False), listed("old", OTHERS))
    assert found(listed("new", OTHERS, ended=False), listed("mine", MINE), listed("old", OTHERS)) == "mine"


def test_results_that_are_not_kept_any_more() -> None:
    gone = listed("gone", MINE)
    gone.names = None
    with pytest.raises(BatchFault) as fault:
        found(gone)
    assert fault.value.gone


def test_the_mark_is_the_newest_batch() -> None:
    assert MessageBatches(Service(listed("new", MINE), listed("old", MINE)), anthropic).mark() == "new"
    assert MessageBatches(Service(), anthropic).mark() == ""


def test_names_come_back_as_they_were_given() -> None:
    service = MessageBatches(Service(listed("mine", MINE)), anthropic)
    state = service.find(Handed(TOKEN, "", 2))
    assert state is not None
    assert [line["custom_id"] for line in service.lines(state)] == ["0-x", "0-y"]


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
    attempt = failed_line(result, {})
    assert (attempt.outcome, attempt.usage) == (outcome, usage)
