"""The batch interfaces of providers: many requests now, their answers within a day, at half the
price. One contract, and OpenAI's own form of it (also of servers that speak it): a file of
requests, a file of answers.

Nothing here is repeated by itself. A batch is made under a token that the caller chose and wrote
down before, so whoever was killed between making one and writing its name down finds it again by
the token, and never makes it twice.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rrf_design.errors import RRFError

DISCOUNT = 0.5
"""Part of the listed price that a call in a batch costs."""
TOKEN = "rrf_token"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class BatchFault(RRFError):
    """The interface did not do what was asked; `gone` means that it knows no such batch (any
    more).
    """

    def __init__(self, message: str, *, gone: bool = False) -> None:
        super().__init__(message)
        self.gone = gone


class Undecided(Exception):
    """Nobody can say yet whether a batch was made: one that may be it has not ended."""


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


@dataclass(frozen=True, slots=True)
class Handed:
    """What was written down before a batch was made: how it can be found."""

    token: str
    mark: str
    """What `BatchInterface.mark` said just before."""
    count: int
    """How many requests it has."""


class BatchInterface(ABC):
    """One provider's batches. Errors of its client are a `BatchFault` each."""

    most_lines: int
    most_bytes: int
    """Of one batch."""

    def mark(self) -> str:
        """What tells a batch that is made from now on from all that were there, where a token alone
        does not.
        """
        return ""

    @abstractmethod
    def create(self, requests: Iterable[tuple[str, Mapping[str, Any]]], token: str) -> BatchState:
        """Hand the requests in, each with its name, and begin the batch."""

    @abstractmethod
    def find(self, handed: Handed) -> BatchState | None:
        """The batch that was made so; None if none was, `Undecided` if that can't be said yet."""

    @abstractmethod
    def look(self, batch: str) -> BatchState: ...

    @abstractmethod
    def lines(self, state: BatchState) -> Iterator[dict[str, Any]]:
        """Answers and failures, in any order, each with its request's name as `custom_id`; a line
        that is no JSON object is left out, and its request is then missing.
        """


class OpenAIBatches(BatchInterface):
    """Through an `openai` client whose retries are off. The token travels in the batch's
    metadata.
    """

    most_lines = 50_000
    most_bytes = 100 * 2**20  # the hosted service takes twice as much

    def __init__(self, client: Any, errors: Any) -> None:
        self._client, self._errors = client, errors

    def create(self, requests: Iterable[tuple[str, Mapping[str, Any]]], token: str) -> BatchState:
        rest = {"method": "POST", "url": "/v1/chat/completions"}
        lines = ({"custom_id": name, **rest, "body": body} for name, body in requests)
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        with faults(self._errors):
            file = self._client.files.create(file=(f"{token}.jsonl", content), purpose="batch")
            made = self._client.batches.create(
                input_file_id=file.id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={TOKEN: token},
            )
        return _state(made)

    def find(self, handed: Handed) -> BatchState | None:
        with faults(self._errors):
            for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(TOKEN) == handed.token:
                    return _state(batch)
        return None

    def look(self, batch: str) -> BatchState:
        with faults(self._errors):
            return _state(self._client.batches.retrieve(batch))

    def lines(self, state: BatchState) -> Iterator[dict[str, Any]]:
        for name in state.files:
            with faults(self._errors):
                text = self._client.files.content(name).text
            yield from objects(text.split("\n"))  # answers may hold other characters that end a line, as they are


def objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects among lines."""
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


def _state(batch: Any) -> BatchState:
    files = tuple(name for name in (batch.output_file_id, batch.error_file_id) if name)
    told = [one.message for one in (getattr(batch.errors, "data", None) or ()) if one.message]
    return BatchState(batch.id, batch.status, files, "; ".join(told)[:300])


class faults:
    """Errors of a provider's client as one line each."""

    def __init__(self, errors: Any) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, self._errors.APIError):
            gone = getattr(error, "status_code", None) == 404
            raise BatchFault(f"{type(error).__name__}: {str(error)[:300]}", gone=gone) from None
