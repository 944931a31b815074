"""Which requests an item needs, asking them, and the compact log in which the answers are
published.

Greedy requests are the four transformed queries and one reflection that is shown the first answer;
self-consistency draws four samples of the original prompt at temperature 0.7 and top-p 0.9 with
fixed seeds. Equal requests are asked once: the four test instantiations of a code family share
their prompts, so a greedy answer counts for all of them. The log has one line per request, and a
first line with the identity of the model; everything after it can be computed again without the
model.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.models import Reply, Request, Usage
from scenarios.kit.report import compressed
from scenarios.real_model import arithmetic, programs

Item = arithmetic.AskedExpression | programs.AskedProgram
FORMAT = "rrf-scenario-answers"
VERSION = 1
SAMPLES = 4
SEEDS = 1_000_000
"""Between the sampled questions of one seed and those of the next."""
NODES = 4
NOT_IDENTITY = {"slots"}
"""What logs of version 0.1 say of a model beside its identity: how many calls it takes at once does
not make it another one.
"""


@dataclass(frozen=True, slots=True)
class Query:
    """One request of an item: `role` is node, sample or reflection, `number` which of them."""

    item: str
    role: str
    number: int
    request: Request


def task(item: Item) -> str:
    if isinstance(item, programs.AskedProgram):
        return "code"
    return "ours" if item.ours else "mathematics" if item.printed is None else "printed"


def family(item: Item) -> str:
    return item.family.name if isinstance(item, programs.AskedProgram) else item.family


def node_requests(item: Item) -> tuple[Request, ...]:
    """The four transformed queries, greedy."""
    if isinstance(item, programs.AskedProgram):
        return tuple(programs.request(item.family, variant) for variant in programs.VARIANTS)
    return tuple(query.request for query in arithmetic.query(item))


def sample_requests(item: Item, *, seed: int = 0) -> tuple[Request, ...]:
    """Four stochastic samples of the original prompt; every item has seeds of its own."""
    first = node_requests(item)[0]
    first_of = {"mathematics": 0, "code": 100_000, "ours": 200_000, "printed": 300_000}[task(item)]
    start = seed * SEEDS + first_of + item.index * SAMPLES
    return tuple(replace(first, temperature=0.7, top_p=0.9, seed=start + number) for number in range(SAMPLES))


def items_seed(log: Log) -> int:
    """The seed that drew the items of a log: its sampled questions hold it."""
    found = Counter(request.seed // SEEDS for request in log.requests if request.temperature and request.seed)
    return found.most_common(1)[0][0] if found else 0


def reflection_request(item: Item, answer: str) -> Request:
    """One more greedy call, shown the original answer and asked to check or correct it."""
    first = node_requests(item)[0]
    text = (
        f"{first.prompt}\n\nAn earlier answer was:\n{answer.strip() or '(nothing)'}\n\n"
        "Check this answer. Give the correct answer in the required format."
    )
    return replace(first, prompt=text)


class Log:
    """Answers by request. `add` keeps the first answer to a request: a replay never asks again."""

    def __init__(self, identity: Mapping[str, Any] | None = None, *, spec: str = "") -> None:
        self.identity: dict[str, Any] = dict(identity or {})
        self.spec = spec
        """How the model was asked for; answers of another one are never mixed in."""
        self._entries: dict[str, dict[str, Any]] = {}

    def add(self, request: Request, reply: Reply, *, at: str = "") -> None:
        """Keep an answer, and when it came: a page says from these times how its answers came
        about.
        """
        if not self.identity:
            self.identity = dict(reply.identity)
        elif self.identity != dict(reply.identity):
            raise InputError(
                f"the recorded answers are those of {self.identity}, and this answer comes from {dict(reply.identity)};"
                " answers of two backends are never mixed: use another --out directory"
            )
        entry = {
            "request": request.document(),
            "text": reply.text,
            "outcome": reply.outcome.value,
            "usage": reply.usage.document(),
            "seconds": round(reply.latency, 4),
            "at": at,
        }
        self._entries.setdefault(_key(request), entry)

    def extend(self, entries: Iterable[Mapping[str, Any]]) -> None:
        for entry in entries:
            self._entries.setdefault(_key(Request.from_document(entry["request"])), dict(entry))

    def text(self, request: Request) -> str:
        """The answer to a request; a parser finds nothing in the text of a call that brought no
        answer.
        """
        return str(self.entry(request)["text"])

    def entry(self, request: Request) -> Mapping[str, Any]:
        entry = self._entries.get(_key(request))
        if entry is None:
            raise InputError(
                f"the log holds no answer to {request.prompt[:60]!r} as it is asked here; run the items first"
            )
        return entry

    def subset(self, requests: Iterable[Request]) -> Log:
        """Only the answers to these requests."""
        log = Log(self.identity, spec=self.spec)
        log.extend(self.entry(request) for request in requests)
        return log

    def same_words(self, other: Log) -> int:
        """How many of these answers stand in the other log word for word."""
        return sum(
            other._entries[key]["text"] == entry["text"]
            for key, entry in self._entries.items()
            if key in other._entries
        )

    def __contains__(self, request: Request) -> bool:
        return _key(request) in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> Sequence[Mapping[str, Any]]:
        return list(self._entries.values())

    @property
    def requests(self) -> Sequence[Request]:
        return [Request.from_document(entry["request"]) for entry in self._entries.values()]

    @property
    def usage(self) -> Usage:
        return sum((Usage(**entry["usage"]) for entry in self._entries.values()), Usage())

    def dumps(self) -> bytes:
        """Compressed lines, the same bytes for the same answers."""
        header = {"format": FORMAT, "version": VERSION, "model": self.spec, "identity": self.identity}
        lines = [json.dumps(line, sort_keys=True, ensure_ascii=False) for line in (header, *self._entries.values())]
        return compressed("\n".join(lines) + "\n")

    @classmethod
    def read(cls, path: str | Path) -> Log:
        try:
            lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
            header = json.loads(lines[0])
        except (OSError, EOFError, ValueError, IndexError) as error:
            raise InputError(f"{path}: can't be read as an answer log ({error})") from None
        if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("version") != VERSION:
            raise InputError(f"{path}: not an answer log of version {VERSION}")
        if not {"identity", "model"} <= set(header):
            raise InputError(f"{path}: the first line does not say which model answered")
        identity = {name: value for name, value in header["identity"].items() if name not in NOT_IDENTITY}
        log = cls(identity, spec=header["model"])
        log.extend(json.loads(line) for line in lines[1:])
        return log


def _key(request: Request) -> str:
    return json.dumps(request.document(), sort_keys=True)
