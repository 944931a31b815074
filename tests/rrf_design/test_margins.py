"""The paper's numbers, through problems: replay designs, closed forms and worked examples; metrics
and whitening; data sets and matrices; zero margins seen from the components alone.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design._margin import check_k
from solvers import margin as solve

TREE = [(0, 1), (0, 2), (0, 3)]
TRIANGLE = [(0, 1), (0, 2), (1, 2)]
ALL = list(itertools.combinations(range(4), 2))
REPLAY = {
    "one relation": ([(0, 1)], [], 0.0),
    "paired relations": ([(0, 1), (2, 3)], [], 0.0),
    "three-node chain": ([(0, 1), (1, 2)], [], 0.0),
    "spanning tree": (TREE, [], 0.765),
    "triangle plus isolate": (TRIANGLE, [], 0.0),
    "typed complete": (ALL, [], 1.414),
    "tree plus anchor": (TREE, [0], 0.835),
    "triangle, component anchor": (TRIANGLE, [0], 0.0),
    "triangle, isolate anchor": (TRIANGLE, [3], 1.0),
    "complete plus anchor": (ALL, [0], 1.414),
}


def graph(n: int, edges: list[tuple[int, int]], anchored: Any = (), *, dim: int = 1, **settings: Any) -> Problem:
    """Identity relations of unit weight; `anchored` are nodes, or node to strength a (weight
    a²).
    """
    strengths = anchored if isinstance(anchored, dict) else dict.fromkeys(anchored, 1.0)
    return Problem(
        nodes=[{"id": str(i), "dim": dim} for i in range(n)],
        relations=[{"id": f"{t}-{h}", "tail": str(t), "head": str(h)} for t, h in edges],
        anchors=[{"id": f"a{i}", "node": str(i), "weight": a * a} for i, a in strengths.items()],
        **settings,
    )


def path(n: int, anchored: Any = ()) -> Problem:
    return graph(n, [(i, i + 1) for i in range(n - 1)], anchored)


def brute(B: np.ndarray, groups: list[list[int]], size: int) -> float:
    supports = itertools.combinations(range(len(groups)), min(size, len(groups)))
    columns = ([c for i in s for c in groups[i]] for s in supports)
    return min(0.0 if len(c) > len(B) else float(np.linalg.svd(B[:, c], compute_uv=False)[-1]) for c in columns)


@pytest.mark.parametrize("dim", [1, 8])
@pytest.mark.parametrize("design", REPLAY)
def test_the_replay_table(design: str, dim: int) -> None:
    edges, anchored, expected = REPLAY[design]
    found = graph(4, edges, anchored, dim=dim).margin(k=1)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert (found.value == 0.0) == (expected == 0.0)
    assert found.lower <= found.value <= found.upper + 1e-12
    assert found.status == "exact"


@pytest.mark.parametrize("strength", [1e-4, 0.01, 0.3, 1.0, 2.0, 17.0, 1e3])
def test_two_nodes_for_all_anchor_strengths(strength: float) -> None:
    expected = np.sqrt((2 + strength**2 - np.sqrt(strength**4 + 4)) / 2)
    # the difference of nearly equal numbers loses digits for large and small strengths: rewrite as
    # a product
    stable = np.sqrt(2 * strength**2 / (2 + strength**2 + np.sqrt(strength**4 + 4)))
    assert stable == pytest.approx(expected, rel=1e-3)
    for dim in (1, 3):
        assert graph(2, [(0, 1)], {0: strength}, dim=dim).margin().value == pytest.approx(stable, rel=1e-9)


def test_two_nodes_without_an_anchor() -> None:
    found = graph(2, [(0, 1)]).margin()
    assert found.value == 0.0
    assert np.allclose(np.abs([found.witness["0"], found.witness["1"]]), np.sqrt(0.5))


def test_an_orthogonal_transport_changes_no_margin() -> None:
    turn = [[0.6, -0.8], [0.8, 0.6]]
    for transport in ("identity", {"matrix": turn}, {"permute": [1, 0]}):
        problem = Problem(
            nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}],
            relations=[{"id": "r", "tail": "a", "head": "b", "transport": transport}],
            anchors=[{"id": "x", "node": "a", "weight": 4.0}],
        )
        assert problem.margin().value == pytest.approx(np.sqrt((6 - np.sqrt(20)) / 2))


def test_the_four_node_chain() -> None:
    free, held = path(4), path(4, [0])
    assert free.margin(k=1).value == pytest.approx(np.sqrt((3 - np.sqrt(5)) / 2))
    assert free.margin(k=2).value == 0.0
    # the worst pair is the paper's: columns three and four
    worst = np.linalg.svd(np.array([[0, 0], [-1, 1], [0, -1], [0, 0]]), compute_uv=False)[-1]
    assert held.margin(k=1).value == pytest.approx(worst)
    assert held.margin(k=1).support == ("2", "3")
    assert held.margin(k=2).value > 0


def test_the_clique_and_the_pair() -> None:
    edges = [*itertools.combinations(range(10), 2), (10, 11)]
    assert graph(12, edges).margin(k=1).value == 0.0
    assert graph(12, edges, [0]).margin(k=1).value == 0.0  # the highest degree is the wrong place
    assert graph(12, edges).margin(k=1).support == ("10", "11")
    for place in (10, 11):
        assert graph(12, edges, [place]).margin(k=1).value > 0.6


def test_six_pairs_need_six_anchors() -> None:
    edges = [(2 * i, 2 * i + 1) for i in range(6)]
    gammas = [graph(12, edges, [2 * i for i in range(count)]).margin(k=1).value for count in range(7)]
    assert gammas[:6] == [0.0] * 6
    assert gammas[6] == pytest.approx(np.sqrt((3 - np.sqrt(5)) / 2))


def test_complementary_anchors() -> None:
    problem = Problem(
        nodes=[{"id": "u", "dim": 2}],
        anchors=[
            {"id": "c1", "node": "u", "rows": [[1.0, 0.0]], "cost": 1.0},
            {"id": "c2", "node": "u", "rows": [[0.0, 1.0]], "cost": 1.0},
        ],
    )
    assert [problem.margin(s).value for s in (None, "c1", "c2", "all")] == [0.0, 0.0, 0.0, 1.0]


def test_the_kernel_1_04_04() -> None:
    """No two-sparse null vector, though the null space property fails: γ₁ > 0."""
    rows = [[0.4, -1.0, 0.0], [0.4, 0.0, -1.0]]
    assert np.allclose(np.array(rows) @ [1.0, 0.4, 0.4], 0)
    problem = Problem(nodes=[{"id": n} for n in "abc"], anchors=[{"id": "x", "nodes": list("abc"), "rows": rows}])
    assert problem.margin(k=1).value == pytest.approx(brute(np.array(rows), [[0], [1], [2]], 2))
    assert problem.margin(k=1).value > 0.2
    assert problem.margin(k=2).value == 0.0
    assert set(problem.margin(k=2).support) == set("abc")


@pytest.mark.parametrize("strength", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("n", [2, 5, 9])
def test_path_bounds(n: int, strength: float) -> None:
    problem = path(n, {0: strength})
    least = problem.margin(k=(n + 1) // 2).value  # supports of all n nodes: the global σ_min
    assert least >= max(2 * n / strength**2, 2 * n * n) ** -0.5
    assert problem.margin(k=1).value >= least


def test_the_component_criterion() -> None:
    """γ_k = 0 exactly when an unanchored component has at most 2k nodes."""
    rng = np.random.default_rng(3)
    for _ in range(12):
        sizes = rng.integers(1, 6, size=3)
        starts = np.cumsum([0, *sizes])
        edges = [(int(a + i), int(a + i + 1)) for a, s in zip(starts, sizes, strict=False) for i in range(s - 1)]
        held = rng.random(3) < 0.5
        free = [s for s, h in zip(sizes, held, strict=True) if not h]
        problem = graph(int(starts[-1]), edges, [int(a) for a, h in zip(starts, held, strict=False) if h])
        for k in (1, 2):
            assert (problem.margin(k=k).value == 0.0) == (min(free, default=99) <= 2 * k)


def test_blocks_only_ever_help() -> None:
    rng = np.random.default_rng(5)
    pairs = list(itertools.combinations(range(6), 2))
    offers = [{"id": f"r{t}{h}", "tail": str(t), "head": str(h), "cost": 1.0, "family": f"f{t}"} for t, h in pairs]
    problem = Problem(nodes=[{"id": str(i)} for i in range(6)], relations=offers)
    chosen: list[str] = []
    last = 0.0
    for name in rng.permutation([o["id"] for o in offers]).tolist():
        chosen.append(name)
        now = problem.margin(chosen).value
        assert now >= last - 1e-12
        last = now
    assert last > 0


@pytest.mark.parametrize("seed", range(8))
def test_metrics_give_the_margin_of_the_whitened_matrix(seed: int) -> None:
    """γ^(W): min over sparse h of sqrt(hᵀBᵀ W_Y B h / hᵀ W_H h)."""
    rng = np.random.default_rng(seed)
    dims = [1, 2, 2, 1]
    columns = np.split(np.arange(6), np.cumsum(dims)[:-1])
    B = rng.normal(size=(7, 6))

    def spd(d: int) -> np.ndarray:
        root = rng.normal(size=(d, d))
        return root @ root.T + 0.2 * np.eye(d)

    rows, fibers = spd(7), [spd(d) for d in dims]
    problem = Problem(
        nodes=[
            {"id": f"n{i}", "dim": d, "metric": w.tolist() if i % 2 else float(w[0, 0])}
            for i, (d, w) in enumerate(zip(dims, fibers, strict=True))
        ],
        anchors=[{"id": "b", "nodes": [f"n{i}" for i in range(4)], "rows": B.tolist(), "metric": rows.tolist()}],
    )
    white = np.linalg.cholesky(rows).T @ B
    for i, (columns_i, w) in enumerate(zip(columns, fibers, strict=True)):
        root = np.linalg.cholesky(w) if i % 2 else np.sqrt(w[0, 0]) * np.eye(len(columns_i))
        white[:, columns_i] = white[:, columns_i] @ np.linalg.inv(root).T
    groups = [c.tolist() for c in columns]
    found = problem.margin(k=1)
    assert found.value == pytest.approx(brute(white, groups, 2))
    assert found.value == pytest.approx(solve(white, groups, k=1).value)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    # the witness in the user's coordinates has unit length in the metric
    length = sum(
        np.array(h) @ (fibers[i] if i % 2 else fibers[i][0, 0] * np.eye(dims[i])) @ np.array(h)
        for i, h in ((int(name[1:]), h) for name, h in found.witness.items())
    )
    assert length == pytest.approx(1.0)
    assert sum(found.seen_by().values()) == pytest.approx(found.value**2)


def test_correlated_anchors_count_less_than_independent_ones() -> None:
    def gamma(rho: float) -> float:
        return Problem(
            nodes=[{"id": "n"}],
            anchors=[{"id": "a", "node": "n", "rows": [[1.0], [1.0]], "covariance": [[1.0, rho], [rho, 1.0]]}],
        ).margin().value  # fmt: skip

    assert gamma(0.0) == pytest.approx(np.sqrt(2))
    assert gamma(0.999) == pytest.approx(np.sqrt(2 / 1.999))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_duplicates_change_no_margin(k: int) -> None:
    def chain(copies: int) -> Problem:
        edges = [(t, t + 1, c) for t in range(6) for c in range(copies if t == 2 else 1)]
        return Problem(
            nodes=[{"id": str(i)} for i in range(7)],
            relations=[
                {"id": f"{t}.{c}", "tail": str(t), "head": str(h), "family": f"f{t}", "weight": 1.5}
                for t, h, c in edges
            ],
            anchors=[{"id": "a", "node": "0"}],
        )

    once = chain(1).margin(k=k).value
    assert once > 0
    for copies in (2, 5):
        assert chain(copies).margin(k=k).value == pytest.approx(once, rel=1e-12)


def test_larger_budgets_never_help() -> None:
    problem = path(8, [0, 7])
    gammas = [problem.margin(k=k).value for k in (1, 2, 3, 4, 5, 10**30)]
    assert gammas == sorted(gammas, reverse=True)
    assert gammas[-1] == gammas[-2] == gammas[3]


def test_the_default_k_is_the_problems() -> None:
    assert path(4).model_copy(update={"k": 2}).margin().k == 2
    assert path(4).margin().k == 1
    assert check_k(None, 3) == 3
    assert check_k(np.int64(2), 3) == 2


@pytest.mark.parametrize("k", [0, -1, True, False, 1.0, "1", float("nan"), [1]])
def test_no_other_k(k: Any) -> None:
    with pytest.raises(InputError, match="k must be a whole number of at least 1"):
        path(3).margin(k=k)


@pytest.mark.parametrize("options", [{"time_limit": -1.0}, {"time_limit": float("nan")}, {"method": "magic"}])
def test_wrong_options_are_input_errors(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        path(3).margin(**options)


def test_the_json_has_the_promised_keys() -> None:
    found = path(4, [0]).margin()
    document = found.to_json()
    assert set(document) >= {"k", "gamma", "lower", "upper", "status", "support", "witness", "method"}
    assert document["gamma"] == found.gamma == found.value
    assert document["support"] == list(found.support) == list(document["witness"])
    assert found.selected == ()


def test_a_design_without_blocks_sees_nothing() -> None:
    found = graph(3, []).margin()
    assert found.value == 0.0
    assert found.seen_by() == {}


def test_who_sees_the_witness() -> None:
    seen = graph(4, TRIANGLE, [3]).margin().seen_by()
    assert seen["a3"] == 0.0
    assert sum(seen.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(20))
def test_it_decides_zero_margins_of_identity_fields(seed):
    rng = np.random.default_rng(seed)
    dim = 1 + seed % 2
    nodes = [{"id": f"n{i}", "dim": dim} for i in range(7)]
    pairs = [(i, j) for i in range(7) for j in range(i + 1, 7) if rng.random() < 0.2]
    relations = [{"id": f"r{i}{j}", "tail": f"n{i}", "head": f"n{j}"} for i, j in pairs]
    anchors = [{"id": f"a{i}", "node": f"n{i}"} for i in range(7) if rng.random() < 0.4]
    problem = rrf.Problem(nodes=nodes, relations=relations, anchors=anchors)
    for k in (1, 2):
        criterion = rrf.component_criterion(problem, k=k)
        assert criterion.zero == (problem.margin(k=k).value == 0.0)
    everything = problem.margin(k=4).value > 0
    assert criterion.injective == everything


def test_it_refuses_what_it_does_not_cover():
    nodes = [{"id": "a"}, {"id": "b"}]
    scaled = rrf.Problem(nodes=nodes, relations=[{"id": "r", "tail": "a", "head": "b", "transport": {"scale": 3.0}}])
    with pytest.raises(rrf.InputError, match="relation 'r': transport scale"):
        rrf.component_criterion(scaled)
    partial = rrf.Problem(nodes=[{"id": "a", "dim": 2}], anchors=[{"id": "x", "node": "a", "rows": [[1.0, 0.0]]}])
    with pytest.raises(rrf.InputError, match="anchor 'x': partial rows"):
        rrf.component_criterion(partial)


def test_sums_are_not_identities() -> None:
    problem = rrf.Problem(
        nodes=[{"id": name} for name in "abc"], relations=[{"id": "s", "sum": ["a", "b"], "head": "c"}]
    )
    with pytest.raises(rrf.InputError, match="relation 's': among several nodes"):
        rrf.component_criterion(problem)


def test_a_data_set_has_a_margin_for_each_structure_and_the_weakest_speaks() -> None:
    recipe = {
        "answer": {"of": "total", "tolerance": 0.005},
        "ask": [{"id": "total", "prompt": "{{ text }}?"}, {"id": "again", "like": "total", "prompt": "{{ text }}!"}],
    }
    items = rrf.dataset(recipe, [{"text": "1 + 2"}, {"text": "2 + 2"}])
    found = rrf.margin(items)
    assert (found.worst.result.value, found.worst.count, len(found.speakers)) == (0.0, 2, 1)
    assert found.to_json()["items"] == 2
    assert rrf.explain(items).worst.result.enough is False
    assert rrf.margin(items["1"]).value == items["1"].margin().value


def test_a_matrix_needs_k_and_real_groups() -> None:
    assert rrf.margin(np.eye(3), [1, 2], k=1).value == solve(np.eye(3), [1, 2], k=1).value
    with pytest.raises(InputError, match="give k"):
        rrf.margin(np.eye(3))  # type: ignore[call-overload]
    for bad in ({"k": 0}, {"k": 1, "method": "guess"}):
        with pytest.raises(InputError, match="margin: "):
            rrf.margin(np.eye(3), **bad)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="guess"):
        rrf.margin(graph(3, [(0, 1)]), method="guess")
