"""Answers from an earlier run's log.

Nothing is ever asked again, so a replay needs neither weights nor money. The log decides the
identity: a replayed answer has the same key as the original purchase, and a log that mixes backends
must be told apart, because their answers are not interchangeable.

On paper an answer is one JSON object per line, ``{"format", "version", "key", "request",
"reply"}``. The journal stores the same object per purchase, so a run's log can be published and
replayed without the weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rrf_design.documents import checked, sealed
from rrf_design.errors import InputError
from rrf_design.models.base import Again, Attempt, Model, Reply, Request, Usage, key
from rrf_design.texts import json_text


class ReplayModel(Model):
    """``replay:FILE``, or the records themselves.

    If a request was logged twice, the first answer counts.
    """

    local = True
    kept = False
    supports_grammar = True  # the recorded request holds the grammar it was answered under
    slots = 8

    def __init__(self, log: str | Path | Iterable[Mapping[str, Any]], *, model: str | None = None) -> None:
        entries = list(read_records(log) if isinstance(log, str | Path) else log)
        self._where = str(log) if isinstance(log, str | Path) else "replayed records"
        identities = {json.dumps(entry["reply"]["identity"], sort_keys=True) for entry in entries}
        if model is not None:
            identities = {text for text in identities if json.loads(text).get("model") == model}
        if not identities:
            raise InputError(f"{self._where}: no answers{f' of model {model!r}' if model else ''} to replay")
        if len(identities) > 1:
            listed = ", ".join(sorted({str(json.loads(text).get("model")) for text in identities}))
            raise InputError(f"{self._where}: answers of several backends ({listed}); choose one with model=")
        self._identity: dict[str, Any] = json.loads(identities.pop())
        self.name = f"replay:{self._identity.get('model', 'unknown')}"
        self._replies: dict[str, Reply] = {}
        self._filled: dict[str, Reply] = {}
        for entry in entries:
            if entry["reply"]["identity"] == self._identity:
                reply = Reply.from_document(entry["reply"])
                self._replies.setdefault(_key(entry["request"]), reply)
                self._filled.setdefault(_key(_filled(entry["request"])), reply)

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    def ask(self, request: Request, *, again: Again | None = None, tried: int = 0) -> Reply:
        """The recorded reply as it was, its attempts, tokens and latency included."""
        self.check(request)
        # Word for word as it was asked; else as a local model would have taken it, which older logs
        # spell out.
        asked = request.document()
        reply = self._replies.get(_key(asked)) or self._filled.get(_key(_filled(asked)))
        if reply is None:
            raise InputError(f"{self._where}: no recorded answer to the prompt {request.prompt[:60]!r} as asked here")
        return reply

    def attempt(self, request: Request) -> Attempt:
        reply = self.ask(request)
        usage: Usage = reply.usage
        return Attempt(reply.outcome, reply.text, usage, reply.raw_request, reply.raw_response, reply.detail)


def _key(request: Mapping[str, Any]) -> str:
    return json.dumps(Request.from_document(request).document(), sort_keys=True)


def _filled(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request with everything spelt out that it leaves to the backend."""
    temperature, top_p, seed = Request.from_document(request).sampling
    return {**request, "temperature": temperature, "top_p": top_p, "seed": seed, "repeat": 0}


def record(request: Request, reply: Reply, **extra: Any) -> dict[str, Any]:
    """The log entry of one answer; ``extra`` carries what the caller knows (run, item, node, parsed
    value).
    """
    said = {"key": key(request, reply.identity), "request": request.document(), "reply": reply.document()}
    return sealed("rrf-answer", {**said, **extra})


def write_records(path: str | Path, records: Iterable[Mapping[str, Any]]) -> None:
    with Path(path).open("w", encoding="utf-8") as file:
        for entry in records:
            file.write(json_text(entry, sort_keys=True) + "\n")


def read_records(path: str | Path) -> Iterator[dict[str, Any]]:
    """The entries of a log file; a line that is not an answer is an error with its line number."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't read the answer log ({error})") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _entry(line, f"{path}, line {number}")


def _entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON ({error})") from None
    try:
        return dict(checked(entry, "rrf-answer", what="recorded answer"))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
