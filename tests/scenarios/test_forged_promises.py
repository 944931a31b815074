"""No forged policy, audit or pilot is accepted; and the oracle knows a false one when it sees it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from scenarios.forged_promises import claims_follow, promise_case, true_promises
from scenarios.sealing import Document


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Document], Path]:
    folder = tmp_path_factory.mktemp("promises")
    return true_promises(folder), folder


@pytest.mark.parametrize("first", range(0, 600, 150))
def test_nothing_false_is_accepted(made: tuple[dict[str, Document], Path], first: int) -> None:
    for seed in range(first, first + 150):
        seen = promise_case(*made, seed)
        assert not seen["false"], (seed, seen)
        assert not seen["raised"], (seed, seen)


def test_the_oracle_takes_what_is_true(made: tuple[dict[str, Document], Path]) -> None:
    assert all(claims_follow(kind, document, document) for kind, document in made[0].items())


def _first(entries: list[Any]) -> Any:
    return entries[0]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("policy", lambda d: _first(d["policies"]).update(wrong=7)),
        ("policy", lambda d: _first(d["policies"]).update(proven=not _first(d["policies"])["proven"])),
        ("policy", lambda d: _first(d["policies"]).update(delivered=1)),
        ("policy", lambda d: d.update(risk=0.01)),
        ("policy", lambda d: d["wrong_answers"]["nodes"][0].update(bound=1e-3)),
        ("policy", lambda d: d["places"].reverse()),
        ("audit", lambda d: d.update(bound=d["bound"] - 1)),
        ("audit", lambda d: d.update(wrong_items=[])),
        ("pilot", lambda d: d["pilot"].update(bound=d["pilot"]["bound"] * (1 - 1e-10))),
        ("pilot", lambda d: d.update(k=2)),
    ],
)
def test_the_oracle_knows_what_is_false(made: tuple[dict[str, Document], Path], kind: str, change: Any) -> None:
    document = copy.deepcopy(made[0][kind])
    change(document)
    assert not claims_follow(kind, document, made[0][kind])
