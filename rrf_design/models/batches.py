"""The batch interface of OpenAI and of servers that speak it: a file of requests now, a file of answers within a day, at half the price.

Nothing here is repeated by itself. A batch carries the token that the caller chose before it was made, so whoever was killed between
making one and writing it down finds it again by its token, and never makes it twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rrf_design.errors import RRFError

DISCOUNT = 0.5
"""Part of the listed price that a call in a batch costs."""
MOST_LINES = 50_000
MOST_BYTES = 100 * 2**20
"""Of one file; the hosted service takes twice as much."""
TOKEN = "rrf_token"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class BatchFault(RRFError):
    """The interface did not do what was asked; `gone` means that it knows no such batch (any more)."""

    def __init__(self, message: str, *, gone: bool = False) -> None:
        super().__init__(message)
        self.gone = gone


@dataclass(frozen=True, slots=True)
class BatchState:
    """Where a batch stands. `files` hold its answers and its failures, once it has ended."""

    id: str
    status: str
    files: tuple[str, ...] = ()
    fault: str = ""

    @property
    def ended(self) -> bool:
        return self.status in _ENDED


class BatchInterface:
    """Through an `openai` client whose retries are off."""

    def __init__(self, client: Any, errors: Any) -> None:
        self._client, self._errors = client, errors

    def create(self, lines: Iterable[Mapping[str, Any]], token: str) -> BatchState:
        """Upload the requests and begin the batch."""
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        with _faults(self._errors):
            file = self._client.files.create(file=(f"{token}.jsonl", content), purpose="batch")
            made = self._client.batches.create(
                input_file_id=file.id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={TOKEN: token},
            )
        return _state(made)

    def find(self, token: str) -> BatchState | None:
        """The batch with this token, if it was made."""
        with _faults(self._errors):
            for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(TOKEN) == token:
                    return _state(batch)
        return None

    def look(self, batch: str) -> BatchState:
        with _faults(self._errors):
            return _state(self._client.batches.retrieve(batch))

    def lines(self, state: BatchState) -> Iterator[dict[str, Any]]:
        """Answers and failures, in any order; a line that is no JSON object is left out, and its request is then missing."""
        for name in state.files:
            with _faults(self._errors):
                text = self._client.files.content(name).text
            for line in text.splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                if isinstance(entry, dict):
                    yield entry


def _state(batch: Any) -> BatchState:
    files = tuple(name for name in (batch.output_file_id, batch.error_file_id) if name)
    told = [one.message for one in (getattr(batch.errors, "data", None) or ()) if one.message]
    return BatchState(batch.id, batch.status, files, "; ".join(told)[:300])


class _faults:
    """Errors of the client as one line each."""

    def __init__(self, errors: Any) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, self._errors.APIError):
            gone = getattr(error, "status_code", None) == 404
            raise BatchFault(f"{type(error).__name__}: {str(error)[:300]}", gone=gone) from None
