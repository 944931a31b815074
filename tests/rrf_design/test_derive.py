"""Derived problems keep their rows or prices; a fixed selection has its joint noise."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.derive import joined_problem, owning, realised, shared_words, with_radii, without_noise
from rrf_design.errors import InputError
from rrf_design.rows import _own_covariance, block_rows


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
    assert abs(bare.whole.matrix.toarray()[0, 0]) == pytest.approx(2**-0.5)
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


def test_what_failed_is_gone_and_rows_that_stay_are_the_same() -> None:
    problem = market()
    left = realised(problem, failed=["s", "x2"], values={"x1": (4.0,)})
    assert set(left.block_by_id) == {"r", "x0", "x1"}
    row = problem.whole.rows_of("r").toarray()
    assert left.whole.rows_of("r").toarray() == pytest.approx(row, rel=1e-15)
    assert left.block_by_id["x1"].value == (4.0,)  # type: ignore[union-attr]
    gone = realised(problem, failed=["b"], values={})
    assert set(gone.node_by_id) == {"a", "c"}
    assert not gone.relations


def test_radii_of_a_calibration_replace_those_of_the_file() -> None:
    assert with_radii(market(), {"r": 0.2}).block_by_id["r"].uncertainty == 0.2
    with pytest.raises(InputError, match="'q' is not a block"):
        with_radii(market(), {"q": 0.1})


@pytest.mark.parametrize("shared", [{"correlation": 0.5}, {"covariance": (0.3 + 0.7 * np.eye(3)).tolist()}])
def test_rows_stay_what_they_were_when_others_that_share_their_noise_fail(shared: dict[str, object]) -> None:
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
        np.testing.assert_allclose(left.whole.matrix.toarray(), before, rtol=1e-9)
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
    assert "shares noise with what is not held (shared)" in shared_words(problem, blocks[:1])
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
    assert problem.margin(["label a"]).value < 0.6
