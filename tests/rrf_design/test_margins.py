"""Designs of a structure and their margins."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design import InputError, Problem
from rrf_design._margin import check_k
from rrf_design.goal import Goal
from rrf_design.structure import share
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


def test_the_clique_and_the_pair_and_six_pairs() -> None:
    edges = [*itertools.combinations(range(10), 2), (10, 11)]
    assert graph(12, edges).margin(k=1).value == 0.0
    assert graph(12, edges, [0]).margin(k=1).value == 0.0  # the highest degree is the wrong place
    assert graph(12, edges).margin(k=1).support == ("10", "11")
    for place in (10, 11):
        assert graph(12, edges, [place]).margin(k=1).value > 0.6
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


def test_blocks_only_ever_help_where_they_share_nothing() -> None:
    rng = np.random.default_rng(5)
    pairs = list(itertools.combinations(range(6), 2))
    offers = [{"id": f"r{t}{h}", "tail": str(t), "head": str(h), "cost": 1.0} for t, h in pairs]
    problem = Problem(nodes=[{"id": str(i)} for i in range(6)], relations=offers)
    chosen: list[str] = []
    last = 0.0
    for name in rng.permutation([o["id"] for o in offers]).tolist():
        chosen.append(name)
        now = problem.margin(chosen).value
        assert now >= last - 1e-12
        last = now
    assert last > 0


def test_a_copy_on_sale_changes_nothing_and_one_that_is_bought_adds_nothing() -> None:
    anchor = {"id": "x", "node": "a", "family": "f"}
    copies = [{**anchor, "id": f"copy{i}", "cost": 1.0} for i in range(3)]
    relations = [{"id": "same", "tail": "a", "head": "b"}]
    nodes = [{"id": "a"}, {"id": "b"}]
    alone = Problem(nodes=nodes, relations=relations, anchors=[anchor]).margin()
    problem = Problem(nodes=nodes, relations=relations, anchors=[anchor, *copies])
    assert problem.margin().value == alone.value
    assert problem.margin("all").value == pytest.approx(alone.value)
    other = Problem(nodes=nodes, relations=relations, anchors=[anchor, {**copies[0], "node": "b"}])
    assert other.margin("copy0").value == pytest.approx(0.7071067811865476), "two of a family count half each"


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


def chain(**more: object) -> rrf.Problem:
    nodes = [{"id": f"n{i}"} for i in range(4)] + [{"id": "late", "cost": 0.5}]
    relations = [{"id": f"r{i}", "tail": f"n{i}", "head": f"n{i + 1}"} for i in range(3)]
    relations += [
        {"id": "to-late", "tail": "n3", "head": "late"},
        {"id": "far", "tail": "n0", "head": "n3", "cost": 1.0},
    ]
    anchors = [{"id": f"a{i}", "node": f"n{i}", "value": 1.0, "cost": 2.0} for i in range(4)]
    tiers = [{"id": "t", "blocks": ["a0", "a1"], "prices": [2.0, 0.5]}]
    return rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, tiers=tiers, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("select", [[], ["far"], ["late"], ["a0", "a1"], ["late", "a3", "far"]])
def test_a_slice_has_the_rows_that_the_problem_has_with_only_those_blocks(select: list[str]) -> None:
    problem = chain()
    design = problem.design(select)
    operator = design.slice(problem)
    kept = [b for b in problem.blocks if b.id in operator.block_ids]
    alone = rrf.Problem(
        nodes=[n.model_copy(update={"cost": None}) for n in problem.nodes if n.id in operator.node_ids],
        relations=[b.model_copy(update={"cost": None}) for b in kept if b in problem.relations],
        anchors=[b.model_copy(update={"cost": None}) for b in kept if b in problem.anchors],
    )
    assert np.array_equal(operator.matrix.toarray(), alone.whole.matrix.toarray())
    assert np.array_equal(operator.target, alone.whole.target)
    assert design.margin().value == alone.margin().value
    assert problem.margin(select).selected == problem.resolve(select)


def test_the_price_is_the_markets_tiers_and_queries_included() -> None:
    problem = chain()
    assert problem.design(["a0", "a1"]).price == 2.5
    assert problem.design(["late"]).price == 0.5
    assert problem.design([]).price == 0


def test_a_margin_is_solved_once_unless_an_option_changes_how(monkeypatch: pytest.MonkeyPatch) -> None:
    import solvers

    calls = []
    real = solvers.margin
    monkeypatch.setattr(solvers, "margin", lambda *a, **k: calls.append(1) or real(*a, **k))  # type: ignore[func-returns-value]
    problem = chain()
    first = problem.design(["a0"]).margin()
    assert problem.design(["a0"]).margin().solved is first.solved
    assert len(calls) == 1
    problem.design(["a0"]).margin(time_limit=5.0)
    assert len(calls) == 2


def test_an_empty_field_has_no_margin() -> None:
    problem = rrf.Problem(nodes=[{"id": "a", "cost": 1.0}], anchors=[{"id": "x", "node": "a", "cost": 1.0}])
    with pytest.raises(InputError, match="empty"):
        problem.structure.holding().margin()
    with pytest.raises(InputError, match="select at least one"):
        problem.margin()


def test_standing_uses_the_problems_goal_or_another() -> None:
    problem = chain(target=0.9)
    design = problem.design(["a0", "a1"])
    assert not design.standing(problem).reached
    assert design.standing(problem, goal=Goal(target=0.1)).reached
    assert design.standing(problem).wanted == 0.9


def test_robust_lower_is_between_the_global_bound_and_the_margin() -> None:
    base = chain()
    relations = [r.model_copy(update={"uncertainty": 0.05}) for r in base.relations]
    doubtful = base.model_copy(update={"relations": tuple(relations)})
    design = doubtful.design(["a0", "a3"])
    margin = design.margin()
    eta = float(np.linalg.norm(design.operator.radii))
    assert margin.lower - eta <= design.robust_lower(margin) < margin.lower


def test_over_keeps_rows_that_reach_beyond() -> None:
    problem = chain()
    wide = problem.design(["late"])
    narrow = wide.over(problem.design().nodes)
    assert "late" not in narrow.operator.node_ids
    assert "to-late" in narrow.operator.block_ids


def item(**changes: Any) -> rrf.Problem:
    content: dict[str, Any] = {
        "k": 1,
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "cost": 0.5}],
        "relations": [
            {"id": "ab", "tail": "a", "head": "b"},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ac", "tail": "a", "head": "c", "transport": {"scale": 0.0}, "cost": 1.0},
        ],
        "anchors": [{"id": "x", "node": "a", "value": 1.0, "cost": 2.0}],
    }
    return rrf.Problem(**{**content, **changes})


def test_texts_values_and_offsets_are_an_items_own() -> None:
    other = item(
        name="other",
        nodes=[{"id": "a", "prompt": "?"}, {"id": "b"}, {"id": "c", "cost": 0.5}],
        anchors=[{"id": "x", "node": "a", "value": 7.0, "cost": 2.0, "source": "person"}],
    )
    first, second = share([item(), other])
    assert first is second
    assert first.holding().margin().solved is second.holding().margin().solved


@pytest.mark.parametrize(
    "changes",
    [
        {"k": 2},
        {"target": 0.5},
        {"epsilon": 0.1},
        {"anchors": [{"id": "x", "node": "a", "value": 1.0, "cost": 3.0}]},
        {"anchors": [{"id": "x", "node": "b", "value": 1.0, "cost": 2.0}]},
        {"rules": [{"id": "r", "blocks": ["x"], "at_most": 0}]},
    ],
)
def test_what_changes_rows_prices_rules_or_goals_is_another_structure(changes: dict[str, Any]) -> None:
    assert item().structure.key != item(**changes).structure.key


def test_a_block_touches_every_node_it_names_also_with_coefficient_zero() -> None:
    structure = item().structure
    assert structure.touches.toarray().tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0]]


def test_holding_a_block_does_not_ask_its_nodes_and_selecting_it_does() -> None:
    structure = item().structure
    held = structure.holding(["ac"])
    assert held.opened == {"a", "b"}
    assert held.operator.block_ids == ("ab",)
    chosen = structure.selecting(["ac"])
    assert chosen.opened == {"a", "b", "c"}
    assert chosen.operator.block_ids == ("ab", "bc", "ac")
    failed = structure.holding(["c", "x"], ["a"])
    assert (failed.opened, failed.operator.block_ids) == ({"a", "b", "c"}, ("ab", "bc", "x"))
    assert failed.margin().unread == ("a",)
    assert structure.holding(["c", "x"], ["x"]).operator.block_ids == ("ab", "bc")


def test_energies_are_those_of_every_block_and_rounding_is_no_sight() -> None:
    structure = item().structure
    seen = structure.energies({"a": (0.6,), "b": (0.6 + 1e-17,)})
    assert seen["ab"] == 0.0
    assert seen["x"] == pytest.approx(0.36)
    assert seen["bc"] == pytest.approx(0.36)
    assert set(seen) == {"ab", "bc", "ac", "x"}


def test_arrays_can_not_be_changed() -> None:
    structure = item().structure
    for array in (structure.given, structure.owned, structure.operator.target):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert isinstance(structure.given, np.ndarray)


def test_shared_items_ask_one_structure_for_their_designs() -> None:
    """Equal to what each would have found by itself."""
    nodes = [{"id": "a"}, {"id": "b"}]
    listed = [
        rrf.Problem(nodes=nodes, relations=[{"id": "r", "tail": "a", "head": "b", "offset": float(i), "cost": 1.0}])
        for i in range(3)
    ]
    alone = [problem.operator("all") for problem in listed]
    one, *others = share(listed)
    assert all(problem.structure is one for problem in listed)
    assert others == [one, one]
    assert listed[0].design("all") is listed[2].design("all")
    assert listed[0].design() is not listed[0].design("all")
    for problem, before in zip(listed, alone, strict=True):
        now = problem.operator("all")
        assert (now.matrix != before.matrix).nnz == 0
        assert now.target.tolist() == before.target.tolist()
