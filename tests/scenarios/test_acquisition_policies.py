from __future__ import annotations

from pathlib import Path

import pytest

import scenarios
from rrf_design.acquisition import Acquirer, Buys, Settings, Settlement
from rrf_design.errors import InputError
from scenarios.acquisition_policies import EPSILON, POLICIES
from scenarios.kit.runner import run_scenario
from scenarios.real_model import market as module
from scenarios.real_model.market import PRICES, QUERIES, SAMPLES, Play, Values, answer, buy, market_of, vote, vote_play

Record = dict[str, Values]
ALL: Record = dict.fromkeys(QUERIES, (5.0,))


def played(recorded: Record, policy: str, *, seed: int = 0) -> Play:
    return buy(recorded, policy, k=1, target=0.7, truth=(5.0,), seed=seed)


def repaired(play: Play) -> list[float] | None:
    return answer(play, (5.0,), k=1, epsilon=EPSILON)


def test_market_prices_and_shared_sample_weight() -> None:
    problem = market_of(1, 1, 0.7, owned=["original"])
    assert {node.id for node in problem.nodes if node.cost is None} == {"original"}
    assert problem.family_size["samples"] == 4
    assert "second" not in market_of(1, 1, 0.7, owned=["original"], lost=["second"]).node_by_id


def test_a_row_does_not_change_when_another_answer_is_lost() -> None:
    whole = market_of(1, 1, 0.7, owned=["original"])
    less = market_of(1, 1, 0.7, owned=["original"], lost=["sample1", "sample2"])
    same = [p.block_by_id["original~sample0"].weight / p.family_size["samples"] for p in (whole, less)]
    assert same[0] == same[1] == 0.25


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_ends_with_a_certificate(policy: str) -> None:
    play = played(ALL, policy)
    assert play.gamma >= 0.7
    assert repaired(play) == [5.0]


def test_the_loop_books_what_the_play_counts() -> None:
    """Cost is that of the product's ledger, and one call for the answer that belongs to the
    field.
    """
    loop = Acquirer(market_of(1, 1, 0.7, owned=["original"]), settings=Settings(method="degree"))
    bought = []
    while purchases := loop.ask():
        bought += purchases
        loop.tell(*(Settlement(purchase, "recorded", (5.0,)) for purchase in purchases))
    assert played(ALL, "degree").cost == float(loop.state.spent) + PRICES[Buys.ANSWER]
    assert [p.name for p in bought] == ["original", "check original"]


def test_decisions_are_those_of_the_acquisition_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    began = []

    class Watched(Acquirer):
        def __init__(self, problem: object, *, settings: Settings) -> None:
            began.append(settings.method)
            super().__init__(problem, settings=settings)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "Acquirer", Watched)
    module._alike.cache_clear()
    found = played({**ALL, "second": None}, "greedy")
    module._alike.cache_clear()
    # One session: the loop itself plans again without the answer that could not be read.
    assert began == ["greedy"]
    assert found.gamma >= 0.7


def test_optimal_is_never_dearer() -> None:
    lost: Record = {**ALL, "second": None}
    for recorded in (ALL, lost):
        costs = {policy: played(recorded, policy, seed=1).cost for policy in POLICIES}
        assert costs["optimal"] == min(costs.values())
    assert played(lost, "optimal").cost > played(ALL, "optimal").cost


def test_one_wrong_answer_is_repaired_and_votes_are_counted() -> None:
    play = played({**ALL, "third": (9.0,)}, "optimal")
    assert repaired(play) == [5.0]
    assert repaired(Play({"original": None}, (), 1.0, 0.0)) is None
    assert vote([(1.0,), None, (2.0,), (2.0,)]) == (2.0,)
    assert vote([None]) is None


def test_a_check_of_an_answer_that_could_not_be_read_counts() -> None:
    """The field that was certified has that answer in it; one that was unread before its session
    began has left it.
    """
    asked: Record = {"original": None, "second": (9.0,)}
    assert repaired(Play(asked, ("original",), 11.0, 0.5)) == [5.0]
    assert repaired(Play(asked, ("original",), 11.0, 0.5, gone=("original",))) == [9.0]


def test_samples_alone_certify_little() -> None:
    play = vote_play(ALL, k=1)
    assert tuple(play.asked) == SAMPLES
    assert play.cost == 4.0
    assert play.gamma < 0.7
    assert vote_play({**ALL, **dict.fromkeys(SAMPLES)}, k=1).gamma == 0.0


def test_without_a_log_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run real-model first"):
        run_scenario(scenarios.get("acquisition-policies"), tmp_path, quick=True)


def test_nothing_readable_ends_without_a_certificate() -> None:
    for policy in POLICIES:
        play = played(dict.fromkeys(QUERIES), policy)
        assert play.gamma == 0.0
        assert play.checked == ()
        assert play.cost <= len(QUERIES)
