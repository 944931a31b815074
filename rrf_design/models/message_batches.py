"""Anthropic's message batches: all requests in one call, the answers as one file, at half the price.

A batch there carries nothing of the caller's but the names of its requests, and those are told only with its results. So every name begins
with the token, and what was the newest batch before is written down: whoever was killed while making one looks through the batches that
are newer and as large, and waits for those that have not ended. Nothing is made anew while one of them may be it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rrf_design.models.base import Attempt, Usage
from rrf_design.models.batches import BatchFault, BatchInterface, BatchState, Handed, Undecided, faults, objects
from rrf_design.models.faults import LONGEST, refused, unreachable

_OWN = 16
"""Characters of the token before each name; a name has 64 at most."""
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "timeout_error": 408,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
"""What a failure in a line would have been as the answer to a call of its own; such lines are not charged."""


class MessageBatches(BatchInterface):
    """Through an `anthropic` client whose retries are off."""

    most_lines = 100_000
    most_bytes = 200 * 2**20  # the service takes 256 MB

    def __init__(self, client: Any, errors: Any) -> None:
        self._batches, self._errors = client.messages.batches, errors

    def mark(self) -> str:
        with faults(self._errors):
            return next((batch.id for batch in self._batches.list(limit=1).data), "")

    def create(self, requests: Iterable[tuple[str, Mapping[str, Any]]], token: str) -> BatchState:
        lines = [{"custom_id": _own(token) + name, "params": dict(body)} for name, body in requests]
        with faults(self._errors):
            return _state(self._batches.create(requests=lines))

    def find(self, handed: Handed) -> BatchState | None:
        waiting = False
        with faults(self._errors):
            for batch in self._batches.list(limit=100):  # the newest first
                if batch.id == handed.mark:
                    break
                if sum(count for _, count in batch.request_counts if isinstance(count, int)) != handed.count:
                    continue
                if batch.processing_status != "ended":
                    waiting = True
                elif any(line["custom_id"].startswith(_own(handed.token)) for line in self._raw(batch.id)):
                    return _state(batch)
        if waiting:
            raise Undecided
        return None

    def look(self, batch: str) -> BatchState:
        with faults(self._errors):
            return _state(self._batches.retrieve(batch))

    def lines(self, state: BatchState) -> Iterator[dict[str, Any]]:
        for line in self._raw(state.id):
            yield {**line, "custom_id": line["custom_id"][_OWN + 1 :]}

    def _raw(self, batch: str) -> Iterator[dict[str, Any]]:
        try:
            with faults(self._errors):
                text = "".join(self._batches.results(batch).http_response.iter_text())
            found = list(objects(text.split("\n")))  # answers may hold other characters that end a line, as they are
        except self._errors.AnthropicError:  # the client refuses to ask for results that are no longer kept
            raise BatchFault("the results of this batch are not kept any more", gone=True) from None
        return (line for line in found if isinstance(line.get("custom_id"), str))


def failed_line(result: Mapping[str, Any], call: Mapping[str, Any]) -> Attempt:
    """What a line without an answer means: errored, canceled or expired, and not charged."""
    error = (result.get("error") or {}).get("error") or {}
    kind = error.get("type")
    if result.get("type") != "errored" or not isinstance(kind, str):
        return unreachable(f"the request is {result.get('type', 'without a result')}", Usage(), call)
    detail = f"{kind}: {error.get('message', '')}"[:LONGEST]
    return refused(_STATUS.get(kind, 500), {}, detail, call)


def _own(token: str) -> str:
    return f"{token[:_OWN]}_"


def _state(batch: Any) -> BatchState:
    ended = batch.processing_status == "ended"
    return BatchState(batch.id, "completed" if ended else batch.processing_status)
