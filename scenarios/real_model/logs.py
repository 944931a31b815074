"""Several answer logs in one analysis: which files, and which items each of them answers
completely.

Every log is one model's. Logs of two models are analysed side by side, as strata, and never mixed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from scenarios.real_model import answers, fields, work

COUNTS = {"mathematics": 128, "code": 64, "ours": 64}
"""Items that the protocol has."""


def paths(given: Any, directory: Path, scenario: str) -> list[Path]:
    """The logs as told (`a,b,...`), else those that other scenarios published beside
    `directory`.
    """
    if given:
        found = [Path(part.strip()) for part in str(given).split(",")]
    else:
        found = sorted(directory.parent.glob(f"*/{work.PUBLISHED}"))
    if not found:
        raise InputError(
            f"{scenario} reads answer logs; give them: --set logs=A.jsonl.gz,B.jsonl.gz (or run real-model into the"
            " same --out first)"
        )
    names = [model(path) for path in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"{scenario}: two logs are answers of {', '.join(sorted(twice))}; give one log per model")
    return found


@cache
def read(path: Path) -> answers.Log:
    return answers.Log.read(path)


def model(path: Path) -> str:
    log = read(path)
    return str(log.identity.get("model", log.spec))


@cache
def seed(path: Path) -> int:
    """The seed that drew a log's items, whatever else is drawn from the log; InputError where it
    answers none of them completely, since a page about such a log would say something of no item.
    """
    log = read(path)
    drawn = answers.items_seed(log)
    if not any(covered(log, task, seed=drawn, most=1) for task in COUNTS):
        raise InputError(f"{path}: this log has all answers to none of the protocol's items (drawn with seed {drawn})")
    return drawn


def covered(log: answers.Log, task: str, *, seed: int, most: int | None = None) -> list[answers.Item]:
    """The first items of a task to which the log has every answer."""
    found = []
    for index in range(min(COUNTS[task], COUNTS[task] if most is None else most)):
        item = work.item_of(task, index, seed=seed)
        if answers.node_requests(item)[0] not in log:
            break
        if any(request not in log for _, _, request in fields.requests(item, log, seed=seed)):
            break
        found.append(item)
    return found
