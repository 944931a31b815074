"""No sealed forgery of a policy is accepted, of whatever draw; and the oracle knows a false one when it sees it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import Refused
from rrf_design.promises import prove_policy
from scenarios.forged_policies import policy_case, policy_follows, reseal, true_policies
from scenarios.sealing import Document

Made = tuple[dict[str, tuple[Document, dict[str, Any]]], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("policies")
    return true_policies(folder), folder


@pytest.mark.parametrize("first", range(0, 480, 120))
def test_nothing_false_is_accepted(made: Made, first: int) -> None:
    accepted = 0
    for seed in range(first, first + 120):
        seen = policy_case(*made, seed)
        assert not seen["false"], (seed, seen)
        assert not seen["raised"], (seed, seen)
        accepted += seen["accepted"]
    assert 0 < accepted < 60  # some only make another honest document


@pytest.mark.parametrize("kind", ["strata", "sequential", "random checks", "policy", "file", "holm"])
def test_what_is_true_follows_and_is_what_the_forger_would_write(made: Made, kind: str) -> None:
    document, ladders = copy.deepcopy(made[0][kind])
    assert document["policy"] != "check everything"
    assert policy_follows(document)
    prove_policy(document)
    reseal(document, ladders)
    assert document == made[0][kind][0]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("strata", lambda d: d["strata"].reverse()),
        ("strata", lambda d: d["choice"]["limits"][0].update(share="1/4")),
        ("sequential", lambda d: d["choice"].update(sequential=False)),
        ("sequential", lambda d: d["policies"][0].update(proven=not d["policies"][0]["proven"])),
        ("random checks", lambda d: d["ladder"].update(random_checks=0.9)),
        ("random checks", lambda d: d["choice"]["policies"][0].update(checked_share="0.9")),
        ("policy", lambda d: d["choice"].update(population=91)),
        ("file", lambda d: d.update(statement="rest")),
        ("file", lambda d: d["choice"]["streams"][0].update(share="2")),
        ("holm", lambda d: d.update(confidence=0.99)),
        ("holm", lambda d: d["places"].reverse()),
    ],
)
def test_the_oracle_and_verify_know_what_is_false(made: Made, kind: str, change: Any) -> None:
    document = copy.deepcopy(made[0][kind][0])
    change(document)
    assert not policy_follows(document)
    with pytest.raises(Refused):
        prove_policy(document)


@pytest.mark.parametrize(("statement", "population"), [("policy", 90), ("file", 90)])
def test_a_draw_inside_strata_proves_nothing_about_this_very_table(made: Made, statement: str, population: int) -> None:
    document, ladders = copy.deepcopy(made[0]["strata"])
    document["choice"].update(statement=statement, population=population)
    document["statement"] = statement
    reseal(document, ladders)
    with pytest.raises(Refused, match="a draw inside strata proves the statement 'fresh'"):
        prove_policy(document)
