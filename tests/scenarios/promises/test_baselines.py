"""The other methods on votes that can be counted by hand."""

from __future__ import annotations

import numpy as np

from rrf_design.risk import UNREADABLE
from rrf_design.risk.arguments import share
from rrf_design.risk.counts import BinomialTail
from scenarios.promises.baselines import rules_of
from scenarios.promises.panels import NOBODY, Panel

U = UNREADABLE
PANEL = Panel(
    "toy",
    np.array([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [U, U, U, U], [0, 1, 1, 1]]),
    np.array([0, 1, 0, NOBODY, 1]),
    np.ones(4),
    ("a", "b", "c", "d"),
)


def test_plurality_is_wrong_where_most_are_or_nobody_speaks() -> None:
    outcome = rules_of(PANEL, 10.0).fixed["plurality of all"]
    assert outcome.wrong.tolist() == [False, True, False, True, False]
    assert outcome.cost.tolist() == [4.0] * 5


def test_thresholds_deliver_less_the_higher_they_are() -> None:
    tested = rules_of(PANEL, 10.0).tested
    assert [int((~o.checked).sum()) for o in tested] == [4, 4, 4, 3, 1]
    assert tested[4].cost.tolist() == [4.0, 14.0, 14.0, 14.0, 14.0]
    assert not tested[4].wrong.any()


def test_conformal_delivers_single_sets_only() -> None:
    conformal = rules_of(PANEL, 10.0).conformal
    assert conformal[0].checked.all()
    # At least one vote: only the first item has a single candidate. At least two: the tie has two of them, silence none.
    assert (~conformal[1].checked).tolist() == [True, False, False, False, False]
    assert (~conformal[2].checked).tolist() == [True, True, False, False, True]
    assert conformal[2].wrong.tolist() == [False, True, False, False, False]


def test_conformal_sets_contain_the_truth_often_enough_on_average() -> None:
    """Exchangeable items: the truth has at least as many votes as the threshold in 1 − r of fresh items, on average over pilots."""
    rng = np.random.default_rng(0)
    gold = np.zeros(3000, dtype=np.int64)
    panel = Panel("p", np.where(rng.random((3000, 5)) < 0.8, 0, 1), gold, np.ones(5), tuple("abcde"))
    rules = rules_of(panel, 10.0)
    covered = []
    for _ in range(200):
        split = rng.permutation(3000)
        chosen = rules.play(split[:60], 0.1, lambda x: BinomialTail(60, share(0.1, "r"), x))["conformal abstention"]
        covered.append(1 - chosen.wrong[split[60:]].mean())
    assert np.mean(covered) >= 0.9


def test_adaptive_consistency_stops_when_the_leader_is_sure() -> None:
    outcome = rules_of(PANEL, 10.0).fixed["adaptive consistency"]
    # Four of four is the first lead with probability 0.95 (31/32); three of three has 15/16.
    assert outcome.cost.tolist() == [4.0] * 5
