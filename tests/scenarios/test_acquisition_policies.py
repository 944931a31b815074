from __future__ import annotations

from pathlib import Path

import pytest

import scenarios
from rrf_design.errors import InputError
from scenarios.acquisition_policies import POLICIES
from scenarios.real.market import QUERIES, answer, buy, certified, market, vote
from scenarios.runner import run_scenario

ALL = dict.fromkeys(QUERIES, (5.0,))


def test_market_prices_and_shared_sample_weight() -> None:
    problem = market(1, 1, 0.7, {"original": (5.0,)}, ())
    assert {node.id for node in problem.nodes if node.cost is None} == {"original"}
    assert problem.family_size["samples"] == 4
    gone = market(1, 1, 0.7, {"original": (5.0,), "second": None}, ())
    assert "second" not in gone.node_by_id


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_ends_with_a_certificate(policy: str) -> None:
    played = buy(ALL, policy, k=1, target=0.7, seed=0)
    assert played.gamma >= 0.7 * (1 - 1e-9)
    assert answer(1, 1, played.asked, played.checked, (5.0,)) == [5.0]


def test_optimal_is_never_dearer() -> None:
    lost = {**ALL, "second": None}
    for recorded in (ALL, lost):
        costs = {policy: buy(recorded, policy, k=1, target=0.7, seed=1).cost for policy in POLICIES}
        assert costs["optimal"] == min(costs.values())
    assert buy(lost, "optimal", k=1, target=0.7, seed=1).cost > buy(ALL, "optimal", k=1, target=0.7, seed=1).cost


def test_one_wrong_answer_is_repaired_and_votes_are_counted() -> None:
    recorded = {**ALL, "third": (9.0,)}
    played = buy(recorded, "optimal", k=1, target=0.7, seed=0)
    assert answer(1, 1, played.asked, played.checked, (5.0,)) == [5.0]
    assert answer(1, 1, {"original": None}, (), (5.0,)) is None
    assert vote([(1.0,), None, (2.0,), (2.0,)]) == (2.0,)
    assert vote([None]) is None


def test_samples_alone_certify_little() -> None:
    samples = tuple(name for name in QUERIES if name.startswith("sample"))
    assert certified(1, samples, (), ()) < 0.7
    assert certified(1, (), samples, ()) == 0.0


def test_without_a_log_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run real-model first"):
        run_scenario(scenarios.get("acquisition-policies"), tmp_path, quick=True)


def test_nothing_readable_ends_without_a_certificate() -> None:
    lost = dict.fromkeys(QUERIES)
    for policy in POLICIES:
        play = buy(lost, policy, k=1, target=0.7, seed=0)
        assert play.gamma == 0.0
        assert play.checked == ()
        assert play.cost <= len(QUERIES)
