"""From recorded texts to candidates in canonical coordinates; nothing here knows a hidden test.

Arithmetic answers are transported back to the item's own value (divided by s, t subtracted);
programs are represented by their execution signature on the public tests. An answer without a value
keeps the reason why and is never a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rrf_design.models import Request
from rrf_design.responses import Parsed, parsers
from scenarios.real_model import answers, arithmetic, programs
from scenarios.real_model.answers import Item, Log


@dataclass(frozen=True, slots=True)
class AnswerCandidate:
    """One answer: who gave it (role and number), its text, and its value in canonical coordinates
    or the failure.
    """

    role: str
    number: int
    text: str
    status: str
    strict: bool
    value: tuple[float, ...] | None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> AnswerCandidate:
        value = document["value"]
        return cls(**{**document, "value": None if value is None else tuple(value)})

    def document(self) -> dict[str, Any]:
        return asdict(self)


def requests(item: Item, log: Log, *, seed: int) -> tuple[tuple[str, int, Request], ...]:
    """Everything an item asks, in order; the reflection needs the first answer to be there."""
    nodes = answers.node_requests(item)
    reflection = answers.reflection_request(item, log.text(nodes[0]))
    samples = answers.sample_requests(item, seed=seed)
    return (
        *(("node", number, request) for number, request in enumerate(nodes)),
        *(("sample", number, request) for number, request in enumerate(samples)),
        ("reflection", 0, reflection),
    )


def read(
    item: Item, log: Log, *, seed: int = 0, parser: str = "integer-last", text: Callable[[str], str] = str
) -> tuple[AnswerCandidate, ...]:
    """All candidates of an item from the log, each text first passed through `text`."""
    asked = requests(item, log, seed=seed)
    texts = [text(log.text(request)) for _, _, request in asked]
    parsed = _parse(item, asked, texts, parser)
    return tuple(
        AnswerCandidate(role, number, text, result.status.value, result.strict_ok, value)
        for (role, number, _), text, (result, value) in zip(asked, texts, parsed, strict=True)
    )


def _parse(
    item: Item, asked: Sequence[tuple[str, int, Request]], texts: Sequence[str], parser: str
) -> list[tuple[Parsed, tuple[float, ...] | None]]:
    if isinstance(item, programs.AskedProgram):
        results = parsers.get({"name": "code", "tests": [list(a) for a in item.public]}).parse_many(texts)
        return [(result, result.value) for result in results]
    query = arithmetic.query(item)
    found = []
    for (role, number, _), result in zip(asked, parsers.get(parser).parse_many(texts), strict=True):
        asked_as = query[number if role == "node" else 0]
        found.append((result, None if result.value is None else tuple(map(asked_as.back, result.value))))
    return found


def truth(item: Item) -> tuple[float, ...]:
    """What an anchor or the verifier may use: the exact value, or the public reference
    signature.
    """
    if isinstance(item, programs.AskedProgram):
        return tuple(float(value) for value in item.truth())
    return (float(item.answer),)


def same(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(abs(x - y) <= 1e-9 * max(1.0, abs(x), abs(y)) for x, y in zip(a, b, strict=True))
