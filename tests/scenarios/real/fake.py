"""A recorded log without a model: answers that are right or wrong by a rule of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rrf_design.models import Outcome, Reply, Request, Usage
from scenarios.real_model import answers, arithmetic, fields, programs

SOURCES = {
    "absolute_difference": ("abs(x - y)", "x - y"),
    "greatest_common_divisor": ("y if x == 0 else solve(y % x, x)", "min(x, y)"),
}
IDENTITY = {"adapter": "fake", "model": "fake-1"}


def reply(text: str) -> Reply:
    return Reply(text, Outcome.ANSWERED, Usage(10, 5, 1), IDENTITY, {}, None, 0.5, 1)


def write_log(path: Path, items: Iterable[answers.Item], *, seed: int = 0, wrong: float = 0.4) -> answers.Log:
    log = answers.Log(IDENTITY, spec="fake")
    for item in items:
        rng = np.random.default_rng([item.index, len(answers.task(item))])
        first = answers.node_requests(item)[0]
        log.add(first, reply(_answer(item, "node", 0, rng, wrong)))
        for role, number, request in fields.requests(item, log, seed=seed):
            log.add(request, reply(_answer(item, role, number, rng, wrong)))
    path.write_bytes(log.dumps())
    return log


def _answer(item: answers.Item, role: str, number: int, rng: np.random.Generator, wrong: float) -> str:
    bad = bool(rng.random() < wrong)
    if isinstance(item, programs.AskedProgram):
        body = SOURCES[item.family.name][int(bad)]
        return f"```python\ndef solve(x, y):\n    return {body}\n```"
    asked = arithmetic.query(item)[number if role == "node" else 0]
    value = asked.scale * item.answer + asked.shift
    value += int(rng.integers(1, 9)) if bad else 0
    return "I don't know" if rng.random() < 0.05 else str(value) if rng.random() < 0.7 else f"The answer is {value}."


def request_texts(requests: Iterable[Request]) -> str:
    return "\n".join(f"{request.system}\n{request.prompt}" for request in requests)
