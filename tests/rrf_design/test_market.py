"""Markets, noise, problems derived from problems, and margins under shrinkage."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from small import all_designs, random_problem

import rrf_design as rrf
from rrf_design.derive import joined_problem, owning, realised, shared_words, with_radii, without_noise
from rrf_design.errors import BudgetError, InputError
from rrf_design.market import Market, exact
from rrf_design.noise import (
    Noise,
    Radius,
    _field_spread,
    _largest_gain,
    node_weights,
    radius_of,
    recovery_bound,
    spread_at,
)
from rrf_design.planning import plan
from rrf_design.rows import _own_covariance, _shrunk, block_rows


def anchors(*entries, **settings):
    return rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y", "cost": 0.25}],
        anchors=[{"node": "x", "cost": 1.0, **entry} for entry in entries],
        **settings,
    )


def test_rules_that_contradict_themselves():
    with pytest.raises(InputError, match="rule 'r': at_least = 2 is more than at_most = 1"):
        plan(
            anchors({"id": "a"}, {"id": "b"}, rules=[{"id": "r", "blocks": ["a", "b"], "at_least": 2, "at_most": 1}]),
            budget=1.0,
        )
    with pytest.raises(InputError, match="rule 'r': at_least = 3, but it names only 2 blocks"):
        plan(anchors({"id": "a"}, {"id": "b"}, rules=[{"id": "r", "blocks": ["a", "b"], "at_least": 3}]), budget=1.0)


def test_rules_that_contradict_each_other():
    problem = anchors(
        {"id": "a", "excludes": ["b"]}, {"id": "b"}, rules=[{"id": "both", "blocks": ["a", "b"], "at_least": 2}]
    )
    with pytest.raises(InputError, match=r"no design satisfies them all \(rule 'both'"):
        plan(problem, budget=5.0)


def test_a_block_in_two_tiers():
    tiers = [{"id": "t", "blocks": ["a"], "prices": [1.0]}, {"id": "u", "blocks": ["a"], "prices": [2.0]}]
    with pytest.raises(InputError, match="tier 'u': 'a' is priced by tier 't' already"):
        Market(anchors({"id": "a"}, tiers=tiers))


def test_demanded_purchases_that_the_budget_does_not_cover():
    problem = anchors({"id": "a"}, {"id": "b", "cost": 3.0}, rules=[{"id": "r", "blocks": ["b"], "at_least": 1}])
    with pytest.raises(BudgetError, match="the least that must be bought costs 3") as caught:
        plan(problem, budget=2.0)
    assert (caught.value.needed, caught.value.available) == (3.0, 2.0)


def test_prices_are_decimals():
    problem = anchors(*({"id": f"a{i}", "cost": 0.1} for i in range(3)))
    assert len(plan(problem, budget=0.3).selected) == 3
    assert 0.1 + 0.1 + 0.1 > 0.3


def test_queries_are_paid_once_and_come_with_their_blocks():
    problem = anchors({"id": "a"}, {"id": "b", "node": "y"}, {"id": "c", "node": "y"})
    market = Market(problem)
    assert market.cost(market.mask(("b", "c"))) == Fraction("2.25")
    assert market.names(market.mask(("b",))) == ("y", "b")
    assert market.names(market.drop(market.mask(("a", "b")), market.index["b"])) == ("a",)


def test_requirements_come_along_and_exclusions_hold():
    problem = anchors(
        {"id": "a", "requires": ["b"]}, {"id": "b", "requires": ["c"]}, {"id": "c", "excludes": ["d"]}, {"id": "d"}
    )
    market = Market(problem)
    assert market.names(market.mask(("a",))) == ("a", "b", "c")
    assert not market.extendable(market.mask(("a", "d")))
    assert market.names(market.drop(market.mask(("a",)), market.index["c"])) == ()


def test_what_excludes_an_owned_block_can_not_be_bought():
    problem = rrf.Problem(
        nodes=[{"id": "x"}],
        anchors=[{"id": "own", "node": "x"}, {"id": "a", "node": "x", "cost": 1.0, "excludes": ["own"]}],
    )
    found = plan(problem, budget=1.0)
    assert found.selected == ()
    assert "can't be bought beside what they exclude: a" in found.notes


@pytest.mark.parametrize("seed", range(4))
def test_bills_agree_with_the_definition(seed):
    problem = random_problem(seed, features=("nodes", "tiers", "rules", "links"), blocks=6)
    market = Market(problem)
    listed = {names: cost for cost, _, names in all_designs(problem, value=lambda names: 0.0)}
    for names, cost in listed.items():
        assert market.cost(market.mask(names)) == cost
        assert market.broken(market.mask(names)) == ""


@pytest.mark.parametrize("features", [(), ("tiers",), ("nodes", "tiers", "links")], ids="-".join)
def test_what_some_items_add_is_the_difference_of_two_bills(features):
    market = Market(random_problem(17, features=features, blocks=8))
    rng = np.random.default_rng(0)
    for _ in range(30):
        held = market.close(rng.random(len(market.items)) < 0.3)
        more = market.close(rng.random(len(market.items)) < 0.3)
        added = market.extra(market.names(more), set(market.names(held)))
        assert added == market.cost(held | more) - market.cost(held)


def test_money_is_the_number_that_was_written():
    binary = Fraction(0.1)
    assert exact(binary) == binary  # a fraction stays what it is
    assert exact(0.1) == exact("0.1") == Fraction(1, 10)  # also after an equal number of another type
    assert exact(3) == 3


def pair(**settings: Any) -> rrf.Problem:
    content: dict[str, Any] = {
        "nodes": [{"id": "a"}, {"id": "b"}],
        "relations": [{"id": "r", "tail": "a", "head": "b"}],
        "anchors": [{"id": "x", "node": "a", "value": 1.0}],
    }
    return rrf.Problem(**{**content, **settings})


def found(problem: rrf.Problem, **given: Any) -> Any:
    return radius_of(problem, problem.operator(), Noise(**given) if given else None)


def test_what_is_declared_counts_and_what_is_given_replaces_it() -> None:
    assert found(pair(epsilon=0.3)).total == 0.3
    assert found(pair(epsilon=0.3), epsilon=0.1).total == 0.1
    assert found(pair()).total == 0.0
    assert not found(pair()).declared
    several = found(pair(sigma=0.1))
    assert several.total == pytest.approx(0.1 * 5.991464547107979**0.5)  # the χ² quantile of two rows
    assert several.confidence == 0.95


def test_noise_of_blocks_alone_is_noise() -> None:
    judged = pair(anchors=[{"id": "judge", "node": "a", "value": 42.0, "sigma": 5.0}])
    assert found(judged).total == pytest.approx(1.959963984540054)  # one whitened row of unit variance
    assert found(judged).rows.blocks == ("judge",)


def test_uncertain_blocks_add_what_the_field_can_make_of_them() -> None:
    doubtful = {"relations": [{"id": "r", "tail": "a", "head": "b", "uncertainty": 0.1}]}
    unknown = pair(epsilon=0.2, **doubtful)
    assert found(unknown).total is None
    assert node_weights(unknown.operator()) == {"a": pytest.approx(0.01), "b": pytest.approx(0.01)}
    assert found(pair(epsilon=0.2, amplitude=100.0, **doubtful)).total == pytest.approx(10.2)
    nodes = [{"id": "a", "range": [-3.0, 2.0]}, {"id": "b", "range": [0.0, 4.0]}]
    ranged = pair(nodes=nodes, **doubtful)
    assert _field_spread(ranged, ranged.operator()) == pytest.approx(0.5)
    assert spread_at(ranged.operator(), {"a": 3.0, "b": 4.0}) == pytest.approx(0.5)
    both = pair(nodes=nodes, amplitude=1.0, **doubtful)
    assert _field_spread(both, both.operator()) == pytest.approx(0.1)


def test_a_block_is_uncertain_on_every_node_it_names_also_where_its_coefficient_is_zero() -> None:
    nothing = {"id": "r", "tail": "a", "head": "b", "transport": {"scale": 0.0}, "uncertainty": 0.1}
    assert set(node_weights(pair(relations=[nothing]).operator())) == {"a", "b"}


def test_ranges_count_every_coordinate_in_the_metric() -> None:
    nodes = [{"id": "a", "dim": 2, "range": [0.0, 1.0], "metric": 4.0}, {"id": "b", "dim": 2, "range": [0.0, 0.0]}]
    relations = [{"id": "r", "tail": "a", "head": "b", "uncertainty": 1.0}]
    problem = rrf.Problem(nodes=nodes, relations=relations)
    assert _field_spread(problem, problem.operator()) == pytest.approx(2.0 * 2**0.5)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": -1.0}, {"epsilon": True}, {"sigma": 0.0}, {"epsilon": 0.1, "sigma": 0.1}]
)
def test_noise_that_is_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Noise(**wrong)
    with pytest.raises(InputError, match="not one of"):
        Noise(kind="pink")


def test_answers_that_scatter_and_ranges_out_of_order_are_refused() -> None:
    with pytest.raises(InputError, match="comes first"):
        pair(nodes=[{"id": "a", "range": [2.0, 1.0]}, {"id": "b"}])
    problem = pair(nodes=[{"id": "a", "sigma": 1e308}, {"id": "b"}])
    with pytest.raises(InputError, match=r"sigma of the nodes a: too large for floating point"):
        found(problem)


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_gain_is_a_bound_on_the_norm(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    operator = rrf.from_matrix(rng.standard_normal((4, 3)) * 10.0 ** rng.integers(-3, 4)).operator()
    true = np.linalg.norm(operator.matrix.toarray(), 2)
    assert true <= _largest_gain(operator) <= true * (1 + 1e-8)
    monkeypatch.setattr("rrf_design.noise.DENSE", 0)
    assert true <= _largest_gain(operator) <= 4 * true


def test_small_errors_everywhere_are_noise_and_error() -> None:
    plain = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a"}], tail=0.5)
    found = radius_of(plain, plain.whole)
    assert found.declared
    assert found.total == pytest.approx(0.5)
    assert found.bound(1.0) == pytest.approx(1.5)
    assert (
        found.words()
        == "the noise of all rows together is at most 0, all other answers together are off by at most 0.5"
    )
    with pytest.raises(InputError, match=r"delta = 0\.5 can't be promised with errors of up to tail = 0\.5"):
        rrf.Problem(nodes=[{"id": "a"}], tail=0.5, delta=0.5)
    with pytest.raises(InputError, match="tail must be greater than or equal to 0"):
        rrf.Problem(nodes=[{"id": "a"}], tail=-0.5)


def test_two_explanations_are_no_further_apart_than_twice_the_radius_over_the_margin() -> None:
    """Every bound is this one: a radius's own, and that of a repair with it."""
    from fractions import Fraction

    assert recovery_bound(0.0, 0.5) == 0.0
    for epsilon, lower in ((0.1, 0.3), (1.0, 3.0), (1e-9, 0.7)):
        assert Fraction(recovery_bound(epsilon, lower)) >= 2 * Fraction(epsilon) / Fraction(lower)
    problem = pair(epsilon=0.3, k=1, deliver=["b"])
    fixed = rrf.repair(problem, {"a": 1.0, "b": 1.0})
    radius = found(problem)
    assert isinstance(radius, Radius)
    assert fixed.error_bound == radius.bound(fixed.gamma_lower) == recovery_bound(0.3, fixed.gamma_lower)


def market() -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c", "cost": 1.0}],
        relations=[
            {"id": "r", "tail": "a", "head": "b", "family": "f", "sigma": 0.5},
            {"id": "s", "tail": "b", "head": "c", "family": "f"},
        ],
        anchors=[{"id": f"x{i}", "node": "a", "value": 1.0, "cost": 9.0} for i in range(3)],
        tiers=[{"id": "t", "blocks": ["x0", "x1", "x2"], "prices": [5.0, 2.0]}],
        rules=[{"id": "most", "blocks": ["x0", "x1", "x2"], "at_most": 2, "at_least": 1}],
    )


def test_without_noise_rows_are_in_the_units_of_the_file() -> None:
    bare = without_noise(market())
    assert abs(bare.operator("all").matrix.toarray()[0, 0]) == pytest.approx(2**-0.5)
    assert without_noise(bare) is bare


def test_owning_leaves_the_bill_of_the_rest_as_it_was() -> None:
    problem = market()
    rest = owning(problem, ["x0", "c"])
    assert rest.block_by_id["x0"].owned
    assert rest.node_by_id["c"].cost is None
    assert (rest.tiers[0].prices, rest.rules[0].at_most, rest.rules[0].at_least) == ((2.0,), 1, 0)
    before, after = problem.structure.market, rest.structure.market
    assert after.extra(["x1", "x2"], ()) == before.extra(["x1", "x2"], {"x0"}) == 4
    assert np.array_equal(rest.margin().operator.matrix.toarray(), problem.operator(["x0", "c"]).matrix.toarray())
    assert owning(problem, []) is problem


def test_what_failed_is_gone_and_rows_that_stay_are_those_of_the_design_that_is_left() -> None:
    problem = market()
    left = realised(problem, failed=["s", "x2"], values={"x1": (4.0,)})
    assert set(left.block_by_id) == {"r", "x0", "x1"}
    row = problem.structure.holding(["x1"], ["s"]).operator.rows_of("r").toarray()
    assert left.operator(["x1"]).rows_of("r").toarray() == pytest.approx(row[:, : row.shape[1]], rel=1e-15)
    assert left.block_by_id["x1"].value == (4.0,)  # type: ignore[union-attr]
    gone = realised(problem, failed=["b"], values={})
    assert set(gone.node_by_id) == {"a", "c"}
    assert not gone.relations


def test_radii_of_a_calibration_replace_those_of_the_file() -> None:
    assert with_radii(market(), {"r": 0.2}).block_by_id["r"].uncertainty == 0.2
    with pytest.raises(InputError, match="'q' is not a block"):
        with_radii(market(), {"q": 0.1})


@pytest.mark.parametrize("shared", [{"correlation": 0.5}, {"covariance": (0.3 + 0.7 * np.eye(3)).tolist()}])
def test_rows_are_those_of_what_is_left_when_others_that_share_their_noise_fail(shared: dict[str, object]) -> None:
    anchors = [{"id": f"x{i}", "node": "a", "value": 1.0, "sigma": 1.0} for i in range(3)]
    relations = [
        {"id": f"r{i}", "tail": "a", "head": "b", "family": "f", "correlation": 0.25, "sigma": 1.0} for i in range(3)
    ]
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=relations,
        anchors=anchors,
        noise=[{"id": "n", "blocks": ["x0", "x1", "x2"], **shared}],
    )
    for failed in (["x1", "r0"], ["x0", "x2", "r0", "r1"]):
        left = realised(problem, failed=failed, values={})
        before = problem.structure.holding((), failed).operator.matrix.toarray()
        np.testing.assert_allclose(left.operator().matrix.toarray(), before, rtol=1e-9)
        assert len(left.noise) == (len(failed) == 2)
    assert without_noise(problem).noise == ()


def test_what_turned_out_as_it_was_written_is_the_same_problem() -> None:
    """Then everything that was computed of it holds, and thousands of equal items share one
    structure.
    """
    nodes, anchors = [{"id": "a"}], [{"id": "x", "node": "a", "value": 7.0, "cost": 1.0}]
    problem = rrf.Problem(nodes=nodes, anchors=anchors)
    assert realised(problem, failed=(), values={"x": (7.0,)}) is problem
    assert realised(problem, failed=(), values={"x": (8.0,)}).anchors[0].value == (8.0,)
    assert realised(problem, failed=("x",), values={}).anchors == ()


def field(seed: int) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    nodes = [{"id": f"n{i}"} for i in range(4)]
    root = rng.normal(size=(3, 3))
    covariance = root @ root.T + 0.2 * np.eye(3)
    blocks: list[dict[str, Any]] = [
        {"id": f"a{i}", "node": f"n{i}", "value": 1.0, "sigma": float(covariance[i, i] ** 0.5)} for i in range(2)
    ]
    relation = {"id": "r2", "tail": "n2", "head": "n3", "offset": 0.5, "sigma": float(covariance[2, 2] ** 0.5)}
    if seed % 2:
        blocks[1]["cost"] = 1.0
    others = [{"id": f"s{i}", "tail": f"n{i}", "head": f"n{(i + 1) % 4}", "sigma": 0.7} for i in range(4)]
    covariance = (covariance + covariance.T) / 2
    noise = {"id": "shared", "blocks": ["a0", "a1", "r2"], "covariance": covariance.tolist()}
    return rrf.Problem(nodes=nodes, relations=[relation, *others], anchors=blocks, noise=[noise])


def by_definition(problem: rrf.Problem, select: list[str]) -> float:
    held = problem.design(select).operator.block_ids
    rows, sigma = [], []
    for name in held:
        block = problem.block_by_id[name]
        parts = block_rows(problem, block)
        rows.append(np.hstack([parts.get(node.id, np.zeros((1, 1))) for node in problem.nodes]))
        sigma.append(float(_own_covariance(block, 1)[0, 0]))
    whole = np.diag(sigma)
    entry = problem.noise[0]
    for i, a in enumerate(entry.blocks):
        for j, b in enumerate(entry.blocks):
            if a in held and b in held and entry.covariance is not None:
                whole[held.index(a), held.index(b)] = entry.covariance[i][j]
    white = np.linalg.solve(np.linalg.cholesky(whole), np.vstack(rows))
    supports = combinations(range(len(problem.nodes)), 2)
    return min(float(np.linalg.svd(white[:, list(s)], compute_uv=False)[-1]) for s in supports)


@pytest.mark.parametrize("seed", range(12))
def test_the_margin_of_a_selection_is_that_of_its_joint_noise(seed: int) -> None:
    problem = field(seed)
    for select in ([], ["a1"]) if seed % 2 else ([],):
        together, chosen = joined_problem(problem, select)
        assert together.margin(chosen).value == pytest.approx(by_definition(problem, select), rel=1e-7)
        assert together.margin(chosen).value >= problem.margin(select).value * (1 - 1e-9)
    made = rrf.certify(together, chosen)
    assert rrf.verify(made).valid


def test_the_rows_ask_what_they_asked() -> None:
    together, chosen = joined_problem(field(0))
    operator = together.operator(chosen)
    (joint,) = [block for block in together.blocks if block.id == "shared"]
    assert joint.nodes == ("n0", "n1", "n2", "n3")
    j = operator.block_index["shared"]
    part = slice(int(operator.block_offsets[j]), int(operator.block_offsets[j + 1]))
    right = operator.syndrome({"n0": 1.0, "n1": 1.0, "n2": 1.0, "n3": 1.5})[part]
    assert np.abs(right).max() < 1e-12  # what every member says holds there


def test_what_can_not_be_one_block_is_refused_and_a_correlation_stays() -> None:
    problem = field(0)
    heavy = tuple(a.model_copy(update={"weight": 2.0}) for a in problem.anchors)
    with pytest.raises(rrf.InputError, match="has a weight, is uncertain or may be wrong by itself"):
        joined_problem(problem.model_copy(update={"anchors": heavy}))
    entry = problem.noise[0].model_copy(update={"covariance": None, "correlation": 0.5})
    alone = problem.model_copy(update={"noise": (entry,)})
    assert joined_problem(alone)[0] is alone


def test_a_margin_is_called_a_bound_only_where_held_blocks_share_noise() -> None:
    problem = field(0)
    blocks = problem.noise[0].blocks
    assert "share noise" in shared_words(problem, blocks)
    assert shared_words(problem, blocks[:1]) == "", "what nobody holds is not spoken of"
    assert "frontier --jointly tries every selection" in shared_words(problem, blocks, verb="frontier")
    assert shared_words(problem, ["s0"]) == ""
    assert shared_words(joined_problem(problem)[0], blocks) == ""


def test_a_block_that_is_held_alone_has_its_own_noise() -> None:
    labels = [{"id": f"label {x}", "node": x, "sigma": 1.0, "cost": 1.0} for x in "ab"]
    shared = {"id": "annotator", "blocks": ["label a", "label b"], "covariance": [[1.0, 0.6], [0.6, 1.0]]}
    same = {"id": "same", "tail": "a", "head": "b", "sigma": 1.0}
    problem = rrf.Problem(nodes=[{"id": "a"}, {"id": "b"}], anchors=labels, relations=[same], noise=[shared])
    together, chosen = joined_problem(problem, ["label a"])
    assert chosen == ("label a",)
    assert together.margin(chosen).value == pytest.approx(0.618034)
    assert problem.margin(["label a"]).value == pytest.approx(0.618034)
    assert problem.margin("all").value < joined_problem(problem, "all")[0].margin().value


SIGMA = np.array([[1.0, 0.8], [0.8, 2.0]])


def shrinkage_field(covariance: np.ndarray, **settings: float) -> rrf.Problem:
    labels = {"id": "labels", "nodes": ["x", "y"], "rows": [[1.0, 0.0], [0.0, 1.0]], "value": [0.0, 0.0]}
    tie = {"id": "r", "tail": "x", "head": "y"}
    return rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y"}],
        relations=[tie],
        anchors=[{**labels, "covariance": covariance.tolist()}],
        **settings,
    )


@pytest.mark.parametrize("tau", [0.05, 0.5, 1.0])
def test_shrinkage_is_the_margin_of_the_shrunk_covariance(tau: float) -> None:
    slow = shrinkage_field(_shrunk(SIGMA, tau)).margin().value
    assert shrinkage_field(SIGMA, shrinkage=tau).margin().value == pytest.approx(slow)


def repeated(repeats: int | None, rows: int = 2, **settings: float) -> rrf.Problem:
    entry = {"id": "a", "node": "x", "value": [0.0] * rows, "covariance": np.eye(rows).tolist()}
    entry |= {} if repeats is None else {"estimated_from": repeats}
    return rrf.Problem(nodes=[{"id": "x", "dim": rows}], anchors=[entry], **settings)


@pytest.mark.parametrize("rows", [1, 2])
def test_an_estimate_is_raised_by_what_so_few_repeats_may_have_missed(rows: int) -> None:
    values = [repeated(many, rows).margin().value for many in (60, 1000, 10**6, None)]
    assert values == sorted(values)
    assert values[2] == pytest.approx(1.0, rel=0.01)
    made = rrf.certify(repeated(60, rows))
    assert rrf.verify(made).valid
    assert made.document["error"]["confidence"] >= 0.95 - 1e-9
    entry = made.document["noise"]["estimated"]["blocks"][0]
    assert 1.0 / values[0] ** 2 == pytest.approx(entry["inflation"])


@pytest.mark.parametrize("rows", [1, 3])
def test_the_truth_is_below_the_raised_estimate_as_often_as_promised(rows: int) -> None:
    from rrf_design.checker.noise import inflation

    rng = np.random.default_rng(rows)
    factor = inflation(rows=rows, repeats=60, confidence=0.9)
    logs = rng.standard_normal((400, 60, rows))
    least = [np.linalg.eigvalsh(np.atleast_2d(np.cov(log.T)))[0] for log in logs]
    assert np.mean(np.array(least) * factor < 1.0) <= 0.1 + 4 * 0.3 / 20  # four standard errors


def test_too_little_is_refused() -> None:
    import copy

    from rrf_design.checker._steps import check_noise

    made = rrf.certify(repeated(60))
    for key, value in (("inflation", 1.5), ("repeats", 10**7), ("rows", 7), ("block", "b")):
        document = copy.deepcopy(made.document)
        document["noise"]["estimated"]["blocks"][0][key] = value
        if key == "repeats":  # more repeats than were taken would need less: that is a premise, and no arithmetic
            assert check_noise(document, made.record)
            continue
        with pytest.raises(rrf.RRFError, match=r"noise\.estimated"):
            check_noise(document, made.record)
    with pytest.raises(
        rrf.InputError, match="anchor 'a': 5 repeats are too few to bound the covariance of 2 rows; take at"
    ):
        repeated(5)
    with pytest.raises(rrf.InputError, match="estimated_from speaks of sigma or covariance"):
        rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x", "estimated_from": 9}])
    with pytest.raises(rrf.InputError, match="raises the estimate itself; leave shrinkage out"):
        repeated(60, shrinkage=0.5)


def test_what_an_estimate_costs_is_told() -> None:
    from rrf_design._explain import explain
    from rrf_design.noise import raised_noise, raised_words

    label = {"id": "label", "node": "x", "sigma": 1.0}
    told = rrf.Problem(nodes=[{"id": "x"}], anchors=[label])
    guessed = rrf.Problem(
        nodes=[{"id": "x", "sigma": 0.1, "estimated_from": 30}], anchors=[{**label, "estimated_from": 60}]
    )
    assert raised_words(told) == ""
    assert [(one.name, one.repeats) for one in raised_noise(guessed)] == [("label", 60), ("x", 30)]
    words = raised_words(guessed)
    assert "label 1.5" in words
    assert "Taken at their word the margin would be 1 instead of 0.79" in words
    assert "and the error bound" in words
    explained = explain(guessed)
    assert words in explained.to_json()["words"]
    assert explained.to_json()["estimated"][0]["name"] == "label"
