"""The form of policies and audits: known keys, words that follow from the figures, and a list of
what nobody can redo.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from rrf_design.checker.promise_words import (
    AUDIT_INFORMATION,
    POLICY_INFORMATION,
    POLICY_TRUST,
    audit_words,
    policy_words,
    why_everything,
)
from rrf_design.errors import Refused
from rrf_design.promises import prove_audit, prove_policy
from scenarios.rigour.forged_promises import true_promises


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return true_promises(Path(tmp_path_factory.mktemp("forms")))


def test_what_is_not_proven_is_named() -> None:
    assert all(name in policy_words(0) for name in (*POLICY_INFORMATION, *POLICY_TRUST))
    assert all(name in audit_words(0) for name in AUDIT_INFORMATION)
    assert "columns" not in audit_words(0, same=True)
    assert "seed 0, the default" in audit_words(0)
    assert "seed 7, which somebody chose" in audit_words(7)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(note="certified by us"), "'note' is unknown"),
        (lambda d: d.pop("voided_by"), "'voided_by' is missing"),
        (lambda d: d.update(voided_by="nothing"), "voided_by"),
        (lambda d: d.update(because="it is the best there is"), "because"),
        (lambda d: d.update(stratify="kind"), "stratify"),
        (lambda d: d.update(random_checks=True), "random_checks"),
        (lambda d: d["population"].update(drawn="well"), "'drawn' is unknown"),
        (lambda d: d["policies"][0].update(rating="A"), "'rating' is unknown"),
        (lambda d: d["wrong_answers"]["more_than"].pop(), r"more_than: should be a list of"),
        (lambda d: d["choice"].update(note="x"), "choice: 'note' is unknown"),
        (lambda d: d["choice"]["policies"][0].update(cost="1.0"), "should be a number"),
    ],
)
def test_a_policy_says_nothing_beside_its_figures(made: dict[str, Any], change: Any, reason: str) -> None:
    document = copy.deepcopy(made["policy"])
    prove_policy(document)
    change(document)
    with pytest.raises(Refused, match=reason):
        prove_policy(document)


def test_an_audit_says_nothing_beside_its_figures(made: dict[str, Any]) -> None:
    for where in (lambda d: d, lambda d: d["record"]):
        document = copy.deepcopy(made["audit"])
        where(document)["note"] = "clean"
        with pytest.raises(Refused, match="note"):
            prove_audit(document)


def test_check_everything_says_why(made: dict[str, Any]) -> None:
    """Where a proven policy is dearer than a check, and only there."""
    document = copy.deepcopy(made["policy"])
    cost = document["cost_per_item"]
    said = why_everything(cost, cost / 2)
    document.update(policy="check everything", because=said, ladder=None, bound=0.0, delivered_share=0.0)
    document.update(check_cost=cost / 2, cost_per_item=cost / 2, sentence=f"Check everything: {said}.")
    assert prove_policy(document).policy == "check everything"
    dear = copy.deepcopy(document)
    dear.update(check_cost=2 * cost, cost_per_item=2 * cost)
    with pytest.raises(Refused, match="less than a check"):
        prove_policy(dear)
