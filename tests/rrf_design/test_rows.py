"""Rows of blocks whitened and weighted, and the operator they are assembled to."""

from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import linalg

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design.blocks import Relation
from rrf_design.rows import (
    EXACT,
    Sharing,
    _checked_covariance,
    _correlated,
    _row_whitener,
    _shrunk,
    _whitening,
    applied,
    bare_target,
    block_entries,
    block_rows,
    block_target,
    one_row,
    spd_factor,
)

SIGMA = [[2.0, 0.6], [0.6, 1.0]]


def anchored(block: dict[str, Any], **settings: Any) -> Problem:
    return Problem(nodes=[{"id": "n", "dim": 2}], anchors=[{"id": "a", "node": "n", **block}], **settings)


def white(block: dict[str, Any], **settings: Any) -> Any:
    problem = anchored(block, **settings)
    return applied(_row_whitener(problem, problem.anchors[0], 2), np.eye(2))


def test_without_noise_nothing_is_done() -> None:
    assert np.array_equal(white({}), np.eye(2))


def test_sigma_divides() -> None:
    assert np.allclose(white({"sigma": 4}), np.eye(2) / 4)


def test_covariance_is_whitened_to_the_identity() -> None:
    w = white({"covariance": SIGMA})
    assert np.allclose(w @ np.array(SIGMA) @ w.T, np.eye(2))
    assert np.allclose(w, w.T)  # Σ^(-1/2) itself, as in the paper


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_shrinkage_is_the_papers_estimate(tau: float) -> None:
    w = white({"covariance": SIGMA}, shrinkage=tau)
    shrunk = (1 - tau) * np.array(SIGMA) + tau * np.trace(SIGMA) / 2 * np.eye(2)
    assert np.allclose(w @ shrunk @ w.T, np.eye(2))


def test_the_floor_holds_in_every_direction() -> None:
    w = white({"covariance": [[1.0, 0.0], [0.0, 1e-12]]}, variance_floor=0.25)
    assert np.allclose(w, np.diag([1.0, 2.0]))
    assert np.allclose(white({"sigma": 1e-9}, variance_floor=0.25), 2 * np.eye(2))


@pytest.mark.parametrize("settings", [{"variance_floor": 0.01}, {"shrinkage": 0.5}])
def test_floor_and_shrinkage_leave_no_direction_of_a_singular_covariance_exact(settings: dict[str, float]) -> None:
    singular = {"covariance": [[1.0, 1.0], [1.0, 1.0]]}
    assert np.linalg.norm(white(singular, **settings), 2) < np.linalg.norm(white(singular), 2) / 10


@pytest.mark.parametrize("settings", [{"variance_floor": 10.0}, {"shrinkage": 0.9}])
def test_no_floor_makes_an_indefinite_covariance_one(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match="not positive semidefinite"):
        white({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, **settings)


def test_a_metric_gives_the_declared_length() -> None:
    r = np.array([0.3, -2.0])
    for metric in (3.0, SIGMA):
        w = white({"metric": metric})
        assert (w @ r) @ (w @ r) == pytest.approx(r @ (np.array(metric) * (np.eye(2) if metric == 3.0 else 1.0)) @ r)


def test_those_of_a_family_that_are_held_share_its_weight() -> None:
    entries = [{"id": f"a{i}", "node": "n", "family": "f", "weight": 3.0, "cost": 1.0} for i in range(4)]
    problem = Problem(nodes=[{"id": "n"}], anchors=[*entries, {"id": "own", "node": "n", "weight": 3.0}])
    for held in range(5):
        rows = problem.operator([f"a{i}" for i in range(held)]).matrix.toarray().ravel()
        assert np.allclose(rows, [*[np.sqrt(3 / max(held, 1))] * held, np.sqrt(3)])


def test_what_is_raised_never_falls_when_more_is_held() -> None:
    rng = np.random.default_rng(5)
    kinds = [{"family": "f", "correlation": 0.3}, {"family": "g"}, {}, {"estimated_from": 40}]
    blocks = [{"id": f"a{i}", "node": "n", "sigma": 1.0, **kinds[i % 4]} for i in range(12)]
    noise = [
        {"id": "some", "blocks": ["a2", "a6"], "correlation": 0.5},
        {"id": "other", "blocks": ["a3", "a7", "a11"], "estimated_from": 40, "covariance": (np.eye(3) + 0.2) / 1.2},
    ]
    noise[1]["covariance"] = ((np.eye(3) + 0.2) / 1.2).tolist()
    sharing = Sharing(Problem(nodes=[{"id": "n"}], anchors=blocks, noise=noise))
    asked = np.ones(1, dtype=bool)
    for _ in range(50):
        few = rng.random(12) < 0.4
        more = few | (rng.random(12) < 0.4)
        little, much = (sharing.raised(held[None], asked[None])[0] for held in (few, more))
        assert (little[few] <= much[few]).all()
        assert np.allclose(sharing.least(few, asked)[few], little[few])
        assert (sharing.least(few, asked)[more] <= much[more] * (1 + 1e-15)).all()
        factors = [sharing.of(few, asked).factor(name) for name in sharing.blocks]
        assert np.allclose(np.array(factors)[few], little[few] ** -0.5)


def test_rows_of_a_relation_to_itself_are_added() -> None:
    problem = Problem(
        nodes=[{"id": "n", "dim": 2}],
        relations=[{"id": "r", "tail": "n", "head": "n", "transport": {"permute": [1, 0]}, "offset": 0.5}],
    )
    rows = block_rows(problem, problem.relations[0])
    assert np.array_equal(rows["n"], [[1, -1], [-1, 1]])
    assert np.array_equal(block_target(problem.relations[0], 2), [0.5, 0.5])


def test_an_anchor_over_several_nodes_is_cut_at_them() -> None:
    problem = Problem(
        nodes=[{"id": "p"}, {"id": "q", "dim": 2}],
        anchors=[{"id": "a", "nodes": ["q", "p"], "rows": [[1.0, 2.0, 3.0], [0.0, 0.0, 4.0]]}],
    )
    rows = block_rows(problem, problem.anchors[0])
    assert np.array_equal(rows["q"], [[1, 2], [0, 0]])
    assert np.array_equal(rows["p"], [[3], [4]])
    assert np.isnan(block_target(problem.anchors[0], 2)).all()


def test_the_factor_of_a_metric() -> None:
    factor = spd_factor(tuple(map(tuple, SIGMA)), 2, "here")
    assert np.allclose(factor @ factor.T, SIGMA)
    with pytest.raises(InputError, match="here must be 3×3"):
        spd_factor(tuple(map(tuple, SIGMA)), 3, "here")


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0]], "anchor 'a': covariance must be 2×2, not 1×1"),
        ([[1.0, 0.5], [0.4, 1.0]], "anchor 'a': covariance is not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "anchor 'a': covariance is not positive semidefinite"),
        ([[1.0, np.nan], [np.nan, 1.0]], "anchor 'a': covariance holds a number that is not finite"),
        ([[1.0], [1.0, 2.0]], "anchor 'a': covariance must be a matrix of numbers"),
    ],
)
def test_what_is_no_covariance_is_refused_in_one_line(matrix: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _checked_covariance(matrix, rows=2, where="anchor 'a'")
    assert str(caught.value) == message


def test_noisy_directions_have_variance_one_and_exact_ones_none() -> None:
    rng = np.random.default_rng(0)
    for rank in (1, 3, 4):
        half = rng.standard_normal((4, rank))
        covariance = half @ half.T
        white = _whitening(covariance, where="a")
        found = np.linalg.eigvalsh(white @ covariance @ white.T)
        np.testing.assert_allclose(found, [0.0] * (4 - rank) + [1.0] * rank, atol=1e-6)
        assert np.linalg.matrix_rank(white) == 4  # the exact rows are still there
        if rank < 4:
            sizes = np.linalg.eigvalsh(white)
            assert sizes[-1] == pytest.approx(EXACT * sizes[rank - 1], rel=1e-6)


def test_variances_near_rounding_never_come_out_above_one() -> None:
    for small in (1e-14, 4e-15, 2e-15, 1e-15, 1e-16, 0.0):
        covariance = np.diag([1.0, 3e-15, small])
        white = _whitening(covariance, where="a")
        assert np.linalg.eigvalsh(white @ covariance @ white.T)[-1] <= 1 + 1e-9


def test_a_constraint_up_to_a_part_in_a_million() -> None:
    """Two labels with one and the same noise: their difference is exact, and what is left is one
    label.
    """
    pair = {"id": "a", "nodes": ["x", "y"], "rows": [[1.0, 0.0], [0.0, 1.0]], "covariance": [[1.0, 1.0], [1.0, 1.0]]}
    margin = rrf.Problem(nodes=[{"id": "x"}, {"id": "y"}], anchors=[pair]).margin().value
    # min ‖Σ^(-1/2)h‖ over unit h with h_x = h_y: (1, 1)/√2 has whitened length 1/√2
    assert margin == pytest.approx(1 / np.sqrt(2), rel=1e-6)
    with pytest.raises(InputError, match="covariance is zero; leave it out"):
        rrf.Problem(nodes=[{"id": "x"}, {"id": "y"}], anchors=[{**pair, "covariance": [[0.0, 0.0], [0.0, 0.0]]}])


def test_shrinkage_runs_from_what_was_declared_to_equal_variances() -> None:
    covariance = np.array([[1.0, 0.9], [0.9, 3.0]])
    assert _shrunk(covariance, 0.0).tolist() == covariance.tolist()
    assert _shrunk(covariance, 1.0).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    with pytest.raises(InputError, match="shrinkage must lie between 0 and 1"):
        _shrunk(covariance, 1.5)


def family(correlation: float | None, **settings: Any) -> rrf.Problem:
    more = {} if correlation is None else {"correlation": correlation}
    anchors = [{"id": f"a{i}", "node": "x", "family": "f", "sigma": 0.5, "value": 1.0, **more} for i in range(3)]
    return rrf.Problem(nodes=[{"id": "x"}], anchors=anchors, **settings)


def test_a_family_goes_from_independence_to_copies() -> None:
    found = [family(rho).margin().value ** 2 for rho in (0.0, 0.5, 1.0, None)]
    assert found == pytest.approx([3 / 0.25, 1.5 / 0.25, 1 / 0.25, 1 / 0.25])  # m/(1 + (m − 1)ρ), and one weight shared
    assert _correlated(3, 0.1) >= 1.2


def labels(**entry: Any) -> rrf.Problem:
    anchors = [{"id": f"a{i}", "node": f"n{i}", "sigma": 0.5, "value": 0.0, "cost": 1.0} for i in range(3)]
    return rrf.Problem(
        nodes=[{"id": f"n{i}"} for i in range(3)],
        anchors=anchors,
        noise=[{"id": "annotator", "blocks": ["a0", "a1", "a2"], **entry}] if entry else [],
    )


@pytest.mark.parametrize("seed", range(10))
def test_raised_variances_cover_every_part_that_is_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((3, int(rng.integers(1, 4))))
    sigma = half @ half.T
    sigma *= 0.25 / np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
    np.fill_diagonal(sigma, 0.25)
    problem = labels(covariance=sigma.tolist())
    for size in (1, 2, 3):
        for held in combinations(range(3), size):
            rows = problem.operator([f"a{i}" for i in held]).matrix.toarray()
            left = rows[:, list(held)]
            noise = left @ sigma[np.ix_(held, held)] @ left.T
            assert np.linalg.eigvalsh(noise)[-1] <= 1 + 1e-9


def test_a_correlation_is_the_covariance_of_equal_members() -> None:
    sigma = 0.25 * (0.6 + 0.4 * np.eye(3))
    wide, narrow = labels(covariance=sigma.tolist()), labels(correlation=0.6)
    assert wide.margin("all").value == pytest.approx(narrow.margin("all").value, rel=1e-9)
    assert narrow.margin("all").value == pytest.approx(labels().margin("all").value / np.sqrt(2.2))


def test_shared_noise_leaves_the_promised_radius_no_more_often_than_allowed() -> None:
    problem = labels(correlation=0.8)
    radius = problem.design("all").radius(problem)
    assert radius.rows.kind == "correlated"
    draws = np.random.default_rng(3).multivariate_normal(np.zeros(3), 0.25 * (0.8 + 0.2 * np.eye(3)), size=20_000)
    whitened = draws * problem.operator("all").matrix.toarray().diagonal()
    assert (np.linalg.norm(whitened, axis=1) > radius.epsilon).mean() <= 0.05


def test_one_deviation_for_all_rows_covers_what_they_share() -> None:
    alone, shared = family(None, sigma=0.1), family(0.5, sigma=0.1)
    assert shared.design().radius(shared).rows.sigma == pytest.approx(0.1 * np.sqrt(2))
    assert alone.design().radius(alone).rows.kind == "chi"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"correlation": 1.5}, "noise 'annotator': correlation must be less than or equal to 1, not 1.5"),
        ({"correlation": -0.1}, "noise 'annotator': correlation must be greater than or equal to 0, not -0.1"),
        (
            {"correlation": 0.1, "covariance": [[1.0]]},
            "noise 'annotator': give exactly one of correlation and covariance",
        ),
        ({"covariance": [[1.0]]}, "noise 'annotator': covariance must be 3×3, not 1×1"),
        (
            {"covariance": [[0.25, 0.1, 0.0], [0.0, 0.25, 0.0], [0.0, 0.0, 0.25]]},
            "noise 'annotator': covariance is not symmetric",
        ),
        (
            {"covariance": [[0.25, 1.0, 0.0], [1.0, 0.25, 0.0], [0.0, 0.0, 0.25]]},
            "noise 'annotator': covariance is not positive semidefinite",
        ),
        ({"covariance": np.eye(3).tolist()}, "noise 'annotator': its covariance of anchor 'a0' is not what that block declares"),
        ({"blocks": ["a0"], "correlation": 0.5}, "noise 'annotator': blocks must name at least two blocks, and none of them twice"),
        ({"blocks": ["a0", "b0"], "correlation": 0.5}, "noise 'annotator': unknown block 'b0'"),
    ],
)  # fmt: skip
def test_bad_entries_are_refused_in_one_line(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        labels(**entry)
    assert str(caught.value) == message


def test_other_bad_input() -> None:
    with pytest.raises(InputError, match=r"anchor 'a1': correlation 0.2 differs from 0.1 of 'a0' in the same family"):
        rrf.Problem(
            nodes=[{"id": "x"}],
            anchors=[{"id": f"a{i}", "node": "x", "family": "f", "correlation": 0.1 * (i + 1)} for i in range(2)],
        )
    with pytest.raises(InputError, match="anchor 'a': correlation speaks of the members of a family; name the family"):
        rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x", "correlation": 0.1}])
    bare = [{"id": f"a{i}", "node": "x"} for i in range(2)]
    with pytest.raises(InputError, match="anchor 'a0' declares no noise of its own; give it sigma or covariance"):
        rrf.Problem(nodes=[{"id": "x"}], anchors=bare, noise=[{"id": "n", "blocks": ["a0", "a1"], "correlation": 0.1}])
    noisy = [{**block, "sigma": 1.0} for block in bare]
    twice = [{"id": f"n{i}", "blocks": ["a0", "a1"], "correlation": 0.1} for i in range(2)]
    with pytest.raises(InputError, match="noise 'n1': 'a0' stands in noise 'n0' already; put them into one entry"):
        rrf.Problem(nodes=[{"id": "x"}], anchors=noisy, noise=twice)


def random_spd(rng: np.random.Generator, dim: int) -> list[list[float]]:
    root = rng.normal(size=(dim, dim + 1))
    matrix = root @ root.T + 0.1 * np.eye(dim)
    return ((matrix + matrix.T) / 2).tolist()


def random_noise(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    return [
        {},
        {"sigma": float(rng.uniform(0.5, 2))},
        {"covariance": random_spd(rng, rows)},
        {"metric": float(rng.uniform(0.5, 2))},
        {"metric": random_spd(rng, rows)},
    ][rng.integers(5)]


def random_document(rng: np.random.Generator, nodes: int = 5, blocks: int = 8) -> dict[str, Any]:
    dims = rng.integers(1, 4, size=nodes)
    metrics = [[None, float(rng.uniform(0.5, 2)), random_spd(rng, d)][rng.integers(3)] for d in dims]
    relations = []
    for j in range(blocks):
        t, h = (int(x) for x in rng.integers(0, nodes, size=2))
        kinds: list[Any] = [{"matrix": rng.normal(size=(dims[h], dims[t])).tolist()}]
        kinds.append({"select": rng.integers(0, dims[t], size=dims[h]).tolist()})
        if dims[t] == dims[h]:
            kinds += ["identity", {"scale": float(rng.normal())}, {"permute": rng.permutation(dims[t]).tolist()}]
        relations.append(
            {
                "id": f"r{j}",
                "tail": f"n{t}",
                "head": f"n{h}",
                "transport": kinds[rng.integers(len(kinds))],
                "offset": rng.normal(size=dims[h]).tolist(),
                "weight": 2.0,
                "family": f"f{rng.integers(4)}",
                "uncertainty": float(rng.uniform(0, 0.1)),
                **random_noise(rng, int(dims[h])),
            }
        )
    anchors = []
    for j in range(3):
        node, other = (int(x) for x in rng.choice(nodes, size=2, replace=False))
        height, width = int(rng.integers(1, 4)), int(dims[node] + dims[other])
        value = rng.normal(size=height).tolist()
        anchors.append(
            {
                "id": f"a{j}",
                "nodes": [f"n{node}", f"n{other}"],
                "rows": rng.normal(size=(height, width)).tolist(),
                "value": value,
                "weight": 0.5,
                **random_noise(rng, height),
            }
        )
    entries = [
        {"id": f"n{i}", "dim": int(d), **({} if m is None else {"metric": m})}
        for i, (d, m) in enumerate(zip(dims, metrics, strict=True))
    ]
    return {"nodes": entries, "relations": relations, "anchors": anchors, "shrinkage": 0.2, "variance_floor": 0.3}


def by_definition(document: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(W_Y^(1/2) B, its target, W_H) with dense matrices, straight from the paper."""
    dims = {n["id"]: n["dim"] for n in document["nodes"]}
    starts = dict(zip(dims, np.cumsum([0, *dims.values()]), strict=False))
    where = {name: slice(starts[name], starts[name] + dims[name]) for name in dims}
    width = sum(dims.values())
    members: dict[str, int] = {}
    for block in (*document["relations"], *document["anchors"]):
        members[block.get("family", block["id"])] = members.get(block.get("family", block["id"]), 0) + 1
    rows, targets = [], []
    for block in (*document["relations"], *document["anchors"]):
        if "tail" in block:
            part = np.zeros((dims[block["head"]], width))
            part[:, where[block["head"]]] += np.eye(dims[block["head"]])
            part[:, where[block["tail"]]] -= dense_transport(block["transport"], dims[block["tail"]])
            target = np.array(block["offset"])
        else:
            part = np.zeros((len(block["rows"]), width))
            columns = np.concatenate([np.arange(width)[where[name]] for name in block["nodes"]])
            part[:, columns] = block["rows"]
            target = np.array(block["value"])
        scale = np.sqrt(block["weight"] / members[block.get("family", block["id"])])
        w = row_root(block, len(part), document["shrinkage"], document["variance_floor"])
        rows.append(scale * w @ part)
        targets.append(scale * w @ target)
    metrics = [np.asarray(n.get("metric", 1.0)) for n in document["nodes"]]
    fibers = [m if m.ndim else m * np.eye(n["dim"]) for m, n in zip(metrics, document["nodes"], strict=True)]
    return np.vstack(rows), np.concatenate(targets), linalg.block_diag(*fibers)


def dense_transport(transport: Any, tail_dim: int) -> np.ndarray:
    if transport == "identity":
        return np.eye(tail_dim)
    if "scale" in transport:
        return transport["scale"] * np.eye(tail_dim)
    if "matrix" in transport:
        return np.array(transport["matrix"])
    return np.eye(tail_dim)[transport.get("permute", transport.get("select"))]


def row_root(block: dict[str, Any], rows: int, tau: float, floor: float) -> np.ndarray:
    """Some root of the metric on the rows; which one changes no length."""
    if "sigma" in block:
        return np.eye(rows) / max(block["sigma"], np.sqrt(floor))
    if "metric" in block:
        metric = np.asarray(block["metric"])
        return np.real(linalg.sqrtm(metric if metric.ndim else metric * np.eye(rows)))
    if "covariance" in block:
        covariance = np.array(block["covariance"])
        shrunk = (1 - tau) * covariance + tau * np.trace(covariance) / rows * np.eye(rows)
        values, vectors = np.linalg.eigh(shrunk)
        return vectors @ np.diag(np.maximum(values, floor) ** -0.5) @ vectors.T
    return np.eye(rows)


@pytest.mark.parametrize("seed", range(25))
def test_the_operator_is_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    document = random_document(rng)
    operator = Problem(**document).operator()
    B, target, fibers = by_definition(document)
    z = rng.normal(size=B.shape[1])
    field = operator.unstack(operator.stack({name: z[np.r_[cut]] for name, cut in cuts(document)}))
    assert np.allclose(np.concatenate(list(field.values())), z)  # there and back
    stacked = operator.stack({name: z[cut] for name, cut in cuts(document)})
    assert stacked @ stacked == pytest.approx(z @ fibers @ z)  # length in the fiber metrics
    residual = operator.matrix @ stacked - operator.target
    expected = B @ z - target
    assert np.linalg.norm(residual) == pytest.approx(np.linalg.norm(expected))
    for j in range(len(operator.block_ids)):
        rows = slice(operator.block_offsets[j], operator.block_offsets[j + 1])
        assert np.linalg.norm(residual[rows]) == pytest.approx(np.linalg.norm(expected[rows]))
    assert np.allclose(operator.syndrome({name: z[cut] for name, cut in cuts(document)}), residual)


def cuts(document: dict[str, Any]) -> list[tuple[str, slice]]:
    ends = np.cumsum([0, *(n["dim"] for n in document["nodes"])])
    return [(n["id"], slice(a, b)) for n, a, b in zip(document["nodes"], ends, ends[1:], strict=False)]


SHOP: dict[str, Any] = {
    "nodes": [
        {"id": "a"},
        {"id": "b", "dim": 2, "metric": 4.0},
        {"id": "new", "cost": 1.0},
        {"id": "far", "cost": 1.0},
    ],
    "relations": [
        {"id": "ab", "tail": "b", "head": "a", "transport": {"select": [1]}},
        {"id": "anew", "tail": "a", "head": "new"},
        {"id": "bnew", "tail": "b", "head": "new", "transport": {"select": [0]}, "cost": 2.0, "uncertainty": 0.5},
    ],
    "anchors": [{"id": "aa", "node": "a", "value": 3.0}, {"id": "af", "node": "far", "cost": 1.0}],
}


@pytest.mark.parametrize(
    ("select", "nodes", "blocks"),
    [
        (None, ["a", "b"], ["ab", "aa"]),
        ([], ["a", "b"], ["ab", "aa"]),
        ("new", ["a", "b", "new"], ["ab", "anew", "aa"]),
        (["bnew"], ["a", "b", "new"], ["ab", "anew", "bnew", "aa"]),
        (("af", "a", "ab"), ["a", "b", "far"], ["ab", "aa", "af"]),
        ("all", ["a", "b", "new", "far"], ["ab", "anew", "bnew", "aa", "af"]),
    ],
)
def test_nodes_with_a_cost_come_in_when_opened(select: Any, nodes: list[str], blocks: list[str]) -> None:
    problem = Problem(**SHOP)
    operator = problem.operator(select)
    assert list(operator.node_ids) == nodes
    assert list(operator.block_ids) == blocks
    assert problem.design(select).opened == set(nodes)
    assert operator.shape == (int(operator.block_offsets[-1]), int(operator.node_offsets[-1]))
    assert [list(group) for group in operator.groups] == [
        list(range(a, b)) for a, b in zip(operator.node_offsets, operator.node_offsets[1:], strict=False)
    ]
    everything = problem.operator("all")
    for block in blocks:  # a slice of the whole, to the last bit
        full = everything.rows_of(block).toarray()
        kept = [c for n in nodes for c in everything.groups[everything.node_index[n]]]
        assert np.array_equal(operator.rows_of(block).toarray(), full[:, kept])
        assert operator.radii[operator.block_index[block]] == problem.block_by_id[block].uncertainty
        assert operator.block_kinds[operator.block_index[block]] in problem.block_by_id[block].title


def test_a_field_without_open_nodes_is_refused() -> None:
    problem = Problem(nodes=[{"id": "a", "cost": 1.0}])
    with pytest.raises(InputError, match="no node has been asked"):
        problem.operator()
    assert problem.operator("a").shape == (0, 1)


def test_targets_unknown_yet_are_nan_and_stop_the_syndrome() -> None:
    operator = Problem(**SHOP).operator("all")
    assert np.isnan(operator.target[-1])
    with pytest.raises(InputError, match="anchor 'af': no value is known yet"):
        operator.syndrome({"a": 1.0, "b": [1.0, 2.0], "new": 0.0, "far": 0.0})


def test_a_response_of_the_wrong_length_is_named() -> None:
    with pytest.raises(InputError, match=r"node 'b': expected 2 numbers"):
        Problem(**SHOP).operator().stack({"a": 1.0, "b": 3.0})


def test_unstack_only_some() -> None:
    operator = Problem(**SHOP).operator()
    assert operator.unstack(np.array([1.0, 4.0, 6.0]), only=(1,)) == {"b": (2.0, 3.0)}


def test_copies_of_a_block_in_a_family_add_nothing() -> None:
    def gram(copies: int) -> np.ndarray:
        edges = [{"id": f"r{i}", "tail": "a", "head": "b", "family": "f", "weight": 2.0, "transport": {"scale": 3.0}}
                 for i in range(copies)]  # fmt: skip
        matrix = Problem(nodes=[{"id": "a"}, {"id": "b"}], relations=edges).operator().matrix
        return (matrix.T @ matrix).toarray()

    for copies in (2, 3, 7):
        assert np.allclose(gram(copies), gram(1), rtol=1e-14)


def test_zeros_are_not_stored() -> None:
    problem = Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[
            {"id": "zero", "tail": "a", "head": "b", "transport": {"scale": 0.0}},
            {"id": "self", "tail": "a", "head": "a"},
        ],
        anchors=[{"id": "both", "nodes": ["a", "b"], "rows": [[0.0, 1.0]]}],
    )
    assert problem.operator().matrix.nnz == 2
    assert problem.operator().shape == (3, 2)


def test_what_a_problem_derives_is_neither_pickled_nor_copied() -> None:
    problem = Problem(**SHOP)
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert "whole" not in again.__dict__
    assert (again.operator("all").matrix != problem.operator("all").matrix).nnz == 0
    heavier = problem.model_copy(update={"anchors": [problem.anchors[0].model_copy(update={"weight": 4.0})]})
    assert heavier.operator().rows_of("aa").toarray()[0, 0] == 2.0
    with pytest.raises(InputError, match="the field is empty"):
        problem.model_copy(update={"nodes": ()})


def test_results_are_read_only() -> None:
    operator = Problem(**SHOP).operator()
    with pytest.raises(ValueError, match="read-only"):
        operator.target[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        operator.radii[0] = 1.0


@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e200, 1e290])
def test_extreme_metrics_and_covariances_stay_exact(size: float) -> None:
    diagonal = [[size, 0.0], [0.0, 1.0]]
    problem = Problem(
        nodes=[{"id": "a", "dim": 2, "metric": diagonal}, {"id": "b", "dim": 2}],
        anchors=[{"id": "x", "node": "a"}, {"id": "y", "node": "b", "metric": diagonal}],
        shrinkage=0.0,
    )
    matrix = problem.operator().matrix
    assert np.allclose(matrix.diagonal(), [size**-0.5, 1.0, size**0.5, 1.0], rtol=1e-14)
    assert matrix.nnz == 4
    scaled = [[size, 0.0], [0.0, size]]
    noisy = Problem(
        nodes=[{"id": "a", "dim": 2}], anchors=[{"id": "x", "node": "a", "covariance": scaled}], shrinkage=0.5
    )
    assert np.allclose(noisy.operator().matrix.diagonal(), size**-0.5, rtol=1e-14)


def test_a_row_between_two_numbers_is_what_the_general_way_makes_of_it() -> None:
    columns = {"a": range(3, 4), "b": range(7, 8), "wide": range(8, 10)}
    pair = {"id": "r", "tail": "a", "head": "b"}
    for more in ({}, {"transport": {"scale": -3.0}, "offset": 2.0}, {"head": "a"}, {"transport": {"scale": 0.0}}):
        block = Relation(**{**pair, **more})
        tail, head, scale, offset = one_row(block, columns) or pytest.fail("it has one row")
        entries = block_entries(block, columns)
        assert (entries.rows, entries.columns, entries.values) == ([0, 0], [tail, head], [-scale, 1.0])
        assert bare_target(block, 1) == (offset,)
    for other in ({"transport": {"permute": [0]}}, {"offset": [1.0]}, {"transport": {"matrix": [[2.0]]}}):
        assert one_row(Relation(**{**pair, **other}), columns) is None
    assert one_row(Relation(id="r", tail="wide", head="wide"), columns) is None
    assert one_row(Relation(id="r", rows={"a": [[1.0]]}), columns) is None
