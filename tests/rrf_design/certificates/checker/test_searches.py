"""The checker's own proof searches: nothing harmful is missed."""

from __future__ import annotations

import threading
import time
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest

from rrf_design.checker import _centre_elimination as centre_elimination
from rrf_design.checker import _completion as completion
from rrf_design.checker._centres import Dense, Hunt, hunt, new_hunt, next_set
from rrf_design.checker._completion import flag_at
from rrf_design.checker._couplings import LIMIT
from rrf_design.checker._enumeration import COUNT, DONE, TESTED, new_walk, walk
from rrf_design.checker._gram import field_of
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_floor

from ..conftest import brute_margin, make_record


def dense_part(rng: np.random.Generator, sizes: Any, rows: int) -> Dense:
    width = int(np.sum(sizes))
    matrix = rng.standard_normal((rows, width))
    field = field_of(make_record(matrix, sizes), 2, np.zeros(0))
    assert field.gram is None
    return field.dense[0]


def found_by(
    part: Dense, size: int, shift: float, *, capacity: int, budget: int, price: int = 3
) -> tuple[list[tuple[int, ...]], Hunt]:
    """Every support that was rejected, collected over as many calls as it takes."""
    memory = new_hunt(part, size, shift=shift, capacity=capacity, price=price)
    found: list[tuple[int, ...]] = []
    while True:
        status = hunt(part, memory, shift, 0.0, budget)
        found += [tuple(sorted(int(i) for i in row)) for row in memory.rejected[: memory.state[COUNT]]]
        memory.state[COUNT] = 0
        if status == DONE:
            return found, memory


def least_eigenvalues(part: Dense, size: int) -> dict[tuple[int, ...], float]:
    supports = list(combinations(range(len(part.names)), size))
    columns = [np.concatenate([np.arange(part.cuts[i], part.cuts[i + 1]) for i in s]) for s in supports]
    return {s: float(np.linalg.eigvalsh(part.matrix[np.ix_(c, c)])[0]) for s, c in zip(supports, columns, strict=True)}


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("kind", ["scalar", "pairs", "mixed"])
def test_exactly_the_harmful_supports_are_found(size: int, kind: str) -> None:
    """Thresholds from "nothing is harmful" to "half of them are", and a hair beside an eigenvalue
    on both sides.
    """
    rng = np.random.default_rng([size, len(kind)])
    for number in range(50):
        nodes = int(rng.integers(size + 1, 9))
        sizes = {"scalar": np.ones(nodes, int), "pairs": np.full(nodes, 2), "mixed": rng.integers(1, 4, nodes)}[kind]
        part = dense_part(rng, sizes, int(np.sum(sizes) * rng.uniform(0.9, 4.0)) + 2)
        values = least_eigenvalues(part, size)
        ordered = sorted(values.values())
        for shift in (ordered[0] * (1 - 1e-7), ordered[0] * (1 + 1e-7), ordered[len(ordered) // (2 + number % 9)]):
            if shift <= 1e-9:
                continue
            found = set(found_by(part, size, shift, capacity=64, budget=10**9)[0])
            assert {s for s, value in values.items() if value < shift * (1 - 1e-9)} <= found
            assert found <= {s for s, value in values.items() if value < shift * (1 + 1e-9)}


def test_pausing_and_a_full_list_change_nothing() -> None:
    rng = np.random.default_rng(3)
    part = dense_part(rng, np.array([1, 2, 1, 2, 1, 1, 2, 1, 1]), 22)
    values = least_eigenvalues(part, 4)
    shift = sorted(values.values())[len(values) // 3]
    whole, memory = found_by(part, 4, shift, capacity=4096, budget=10**9)
    for capacity, budget in ((1, 10**9), (3, 1), (4096, 1)):
        again, other = found_by(part, 4, shift, capacity=capacity, budget=budget)
        assert again == whole
        assert other.state[TESTED] == memory.state[TESTED]


def test_a_harmless_field_is_not_even_looked_at() -> None:
    part = dense_part(np.random.default_rng(0), np.ones(30, int), 4000)
    found, memory = found_by(part, 4, 0.1, capacity=8, budget=10**9)
    assert found == []
    assert memory.state[TESTED] == 0


@pytest.mark.parametrize("size", [4, 5])
def test_whatever_an_elimination_is_held_to_cost_nothing_is_missed(size: int) -> None:
    rng = np.random.default_rng(11)
    part = dense_part(rng, np.ones(14, int), 11)
    values = least_eigenvalues(part, size)
    shift = sorted(values.values())[20]
    expected = {s for s, value in values.items() if value < shift * (1 + 1e-9)}
    tests = []
    for price in (0, 3, 100, 10**7):
        found, memory = found_by(part, size, shift, capacity=64, budget=10**9, price=price)
        assert set(found) == expected
        tests.append(int(memory.state[TESTED]))
    assert tests[0] < tests[-1]  # eliminations on one end, stars only on the other


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_sets_of_a_star(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(40):
        pulls = np.sort(rng.random(int(rng.integers(count, 9))) * 1.2 / count)[::-1].copy()
        arms = np.zeros(count + 1, dtype=np.int64)
        found = []
        changed = next_set(pulls, len(pulls), arms, count, 0)
        while changed >= 0:
            if found:
                assert tuple(arms[:changed]) == found[-1][:changed]
            found.append(tuple(int(i) for i in arms[:count]))
            changed = next_set(pulls, len(pulls), arms, count, count)
        heavy = [s for s in combinations(range(len(pulls)), count) if pulls[list(s)].sum() > LIMIT]
        assert sorted(found) == heavy


def hostile(seed: int) -> tuple[Any, Any, Any, Any]:
    """Small fields that mostly are one dense component: ties, near singularity, wide scales, holes;
    some with radii.
    """
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(4, 9))
    sizes = [np.ones(nodes, int), np.full(nodes, 2), rng.integers(1, 4, nodes)][seed % 3]
    width = int(np.sum(sizes))
    matrix = rng.standard_normal((width + int(rng.integers(0, 6)), width))
    family = seed % 5
    if family == 1:
        matrix = rng.integers(-2, 3, matrix.shape).astype(float)
    elif family == 2:
        matrix = matrix * 10.0 ** rng.integers(-3, 4, width)
    elif family == 3:
        matrix[rng.random(matrix.shape) < 0.5] = 0.0
    elif family == 4:
        matrix[:, -1] = matrix[:, 0] + rng.standard_normal(len(matrix)) * 2.0 ** -int(rng.integers(4, 30))
    heights = [2] * (len(matrix) // 2) + [1] * (len(matrix) % 2)
    return matrix, sizes, heights, rng.random(len(heights)) * 0.02


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_pruned_and_plain_proofs_agree_beside_the_threshold(first: int) -> None:
    """In particular nothing is accepted that plain enumeration refuses."""
    for seed in range(first, first + 50):
        matrix, sizes, heights, radii = hostile(seed)
        size = 2 + seed % 4
        record = make_record(matrix, sizes, blocks=heights, radii=radii)
        value = brute_margin(matrix, sizes, size)
        if value < 1e-9:
            continue
        for floor in (value * (1 - 1e-12), value * (1 + 1e-12)):
            plain = prove_floor(record, size, floor=floor, plain=True).outcome
            assert prove_floor(record, size, floor=floor).outcome is plain, seed
        if seed % 3 == 0:
            robust = max(0.0, value - float(np.linalg.norm(radii)) * (1 - 1e-3 * (seed % 2)))
            plain = prove_floor(record, size, floor=robust, with_radii=True, plain=True).outcome
            assert prove_floor(record, size, floor=robust, with_radii=True).outcome is plain, seed


def test_a_larger_dense_field_is_refuted_by_a_hair() -> None:
    rng = np.random.default_rng(8)
    matrix = rng.standard_normal((30, 40))
    record = make_record(matrix / np.linalg.norm(matrix, axis=0))
    from solvers import support_margin

    found = support_margin(record.matrix.toarray(), [1] * 40, size=4)
    assert prove_floor(record, 4, floor=found.lower).outcome is ProofOutcome.PROVED
    refuted = prove_floor(record, 4, floor=found.upper * (1 + 1e-12))
    assert refuted.outcome is ProofOutcome.REFUTED
    assert refuted.support == tuple(sorted(found.support))


def crowded_field(family: str, seed: int, nodes: int = 11):
    """Mostly filled fields: as many rows as nodes or fewer, so that large supports are weak."""
    rng = np.random.default_rng([seed, len(family)])
    matrix = rng.standard_normal((nodes + int(rng.integers(-1, 6)), nodes))
    if family == "integer":
        matrix = rng.integers(-2, 3, matrix.shape).astype(float)
    elif family == "half-empty":
        matrix *= rng.random(matrix.shape) < 0.6
    elif family == "unlike columns":
        matrix *= 10.0 ** rng.integers(-1, 2, nodes)
    elif family == "cancelling":  # every pair shares rows, many of their sums are zero
        matrix = np.vstack([matrix, matrix * rng.choice([-1.0, 1.0], nodes)])
    elif family == "nearly equal":
        matrix[:, 1] = matrix[:, 0] + 1e-2 * rng.standard_normal(len(matrix))
    return matrix


def part_of(matrix, size: int) -> Dense:
    field = field_of(make_record(matrix), size, np.zeros(0))
    assert field.gram is None
    return field.dense[0]


def least(matrix, size: int) -> float:
    """The least eigenvalue of every support's Gram matrix, from singular values."""
    return min(
        float(np.linalg.svd(np.vstack([matrix, np.zeros_like(matrix)])[:, s], compute_uv=False)[-1]) ** 2
        for s in combinations(range(matrix.shape[1]), size)
    )


@pytest.mark.parametrize(
    "family", ["gaussian", "integer", "half-empty", "unlike columns", "cancelling", "nearly equal"]
)
@pytest.mark.parametrize("size", [5, 6, 8])
def test_proved_just_below_the_least_value_and_stopped_just_above(family: str, size: int) -> None:
    judged = 0
    for seed in range(6):
        matrix = crowded_field(family, seed)
        value = least(matrix, size)
        if value < 1e-7 * float(np.square(matrix).sum(axis=0).max()):
            continue
        part = part_of(matrix, size)
        below = centre_elimination.prove_by_centre_elimination(part, size, value * (1 - 1e-6), deadline=None)
        assert below.finished
        assert not below.support
        above = centre_elimination.prove_by_centre_elimination(part, size, value * (1 + 1e-6), deadline=None)
        assert not above.finished
        assert 1 <= len(set(above.support)) == len(above.support) <= size
        assert least(matrix[:, list(above.support)], len(above.support)) < value * (1 + 1e-5)
        judged += 1
    assert judged


@pytest.mark.parametrize("seed", range(3))
def test_the_whole_proof_says_what_plain_enumeration_says(seed: int) -> None:
    matrix, size = crowded_field("gaussian", seed, nodes=13), 7
    record, value = make_record(matrix), float(np.sqrt(least(matrix, size)))
    assert centre_elimination.suits(part_of(matrix, size), size)
    for floor in (0.3 * value, value * (1 - 1e-9), value * (1 + 1e-9), 1.2 * value):
        quick, plain = (prove_floor(record, size, floor=floor, plain=way) for way in (False, True))
        assert quick.outcome is plain.outcome
        assert quick.tested < plain.tested


def test_a_planted_blind_set_is_always_found() -> None:
    """Eight columns with one direction that no row sees: no positive floor may pass, and with seven
    of them all is well.
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix = rng.standard_normal((20, 26))
        hidden = rng.choice(26, 8, replace=False)
        matrix[:, hidden[0]] = matrix[:, hidden[1:]] @ rng.choice([-1.0, 1.0, 0.5], 7)
        record = make_record(matrix)
        assert prove_floor(record, 8, floor=1e-4).outcome is ProofOutcome.REFUTED
        assert prove_floor(record, 7, floor=1e-4).outcome is ProofOutcome.PROVED


def test_equal_columns_are_a_pair_that_fails() -> None:
    matrix = np.random.default_rng(0).standard_normal((30, 12))
    matrix[:, 7] = -matrix[:, 3]
    refuted = prove_floor(make_record(matrix), 8, floor=1e-6)
    assert refuted.outcome is ProofOutcome.REFUTED
    assert {3, 7} <= set(refuted.support)


def test_what_floats_can_not_prove_goes_to_exact_arithmetic() -> None:
    """At its own exact level (a power of two) a support is neither proved nor refuted by floats;
    the claim is true.
    """
    matrix = np.vstack([np.eye(9), np.zeros((9, 9))])
    matrix[9:] = 2.0**-12 * np.random.default_rng(1).integers(-1, 2, (9, 9))
    record = make_record(matrix)
    part = part_of(matrix, 8)
    assert centre_elimination.prove_by_centre_elimination(part, 8, 1.0 - 1e-6, deadline=None).finished
    exact = make_record(np.vstack([np.ones((1, 9)), 2.0 * np.eye(9)]))
    assert not centre_elimination.prove_by_centre_elimination(
        part_of(np.vstack([np.ones((1, 9)), 2.0 * np.eye(9)]), 8), 8, 4.0, deadline=None
    ).finished
    assert prove_floor(exact, 8, floor=2.0).outcome is ProofOutcome.PROVED
    assert prove_floor(record, 8, floor=1.1).outcome is ProofOutcome.REFUTED


def test_no_time_is_no_proof_and_progress_is_told() -> None:
    matrix = np.random.default_rng(2).standard_normal((24, 30))
    record, heard = make_record(matrix), []
    late = prove_floor(record, 9, floor=0.05, time_limit=0.0)
    assert late.outcome is ProofOutcome.UNDECIDED
    part = part_of(matrix, 9)
    assert not centre_elimination.prove_by_centre_elimination(part, 9, 0.05, deadline=time.monotonic() - 1.0).finished
    assert centre_elimination.prove_by_centre_elimination(part, 9, 1e-4, deadline=None, progress=heard.append).finished
    assert heard == sorted(heard)
    assert 0.0 < heard[-1] <= 1.0


def test_radii_blocks_and_small_supports_are_left_to_the_stars() -> None:
    matrix = np.random.default_rng(0).standard_normal((24, 12))
    plain = np.zeros(0)
    assert not centre_elimination.suits(part_of(matrix, 4), 4)
    blocks = field_of(make_record(matrix, [2] * 6), 4, plain)
    assert not centre_elimination.suits(blocks.dense[0], 8)
    radii = field_of(make_record(matrix, radii=np.full(24, 0.1)), 8, np.full(24, 0.01))
    assert not any(centre_elimination.suits(part, 8) for part in radii.dense)


def thin_field(seed: int, *, nodes: int = 30, family: str = "random"):
    """Few relations of two or three nodes, and anchors: sparse enough to be walked along its
    edges.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(nodes - 1):
        row = np.zeros(nodes)
        row[[i, i + 1]] = (1.0, -1.0) if family == "identity" else rng.standard_normal(2)
        rows.append(row)
    for _ in range(nodes // 3):
        row = np.zeros(nodes)
        chosen = rng.choice(nodes, 3 if family == "ternary" else 2, replace=False)
        row[chosen] = (1.0, -1.0) if family == "identity" else rng.standard_normal(len(chosen))
        rows.append(row)
    return np.vstack([*rows, np.eye(nodes)[rng.random(nodes) < 0.5] * 0.7])


def least_of(matrix, size: int) -> float:
    """The margin by the walker's own enumeration, narrowed down by halves."""
    record = make_record(matrix)
    low, high = 0.0, float(np.sqrt(np.square(matrix).sum(axis=0)).max())
    for _ in range(40):
        middle = (low + high) / 2
        proved = prove_floor(record, size, floor=middle, plain=True).outcome is ProofOutcome.PROVED
        low, high = (middle, high) if proved else (low, middle)
    return low


@pytest.mark.parametrize("family", ["random", "identity", "ternary"])
@pytest.mark.parametrize("seed", range(3))
def test_true_claims_are_proved_and_false_ones_refuted(family: str, seed: int) -> None:
    matrix, size = thin_field(seed, nodes=26, family=family), 7
    record = make_record(matrix)
    gram = field_of(record, size, np.zeros(0)).gram
    assert gram is not None
    assert completion.suits(gram)
    value = least_of(matrix, size)
    proved = prove_floor(record, size, floor=value * (1 - 1e-9))
    assert proved.outcome is ProofOutcome.PROVED
    assert proved.tested > 0
    refuted = prove_floor(record, size, floor=value * (1 + 1e-6))
    assert refuted.outcome is ProofOutcome.REFUTED
    assert 1 <= len(refuted.support) <= size
    assert brute_margin(matrix[:, list(refuted.support)], [1] * len(refuted.support), size) < value * (1 + 1e-6)


def test_growth_visits_far_fewer_sets_than_there_are() -> None:
    matrix = thin_field(1, nodes=60)
    record = make_record(matrix)
    value = least_of(matrix, 6)
    record_floor = 0.5 * value
    grown = prove_floor(record, 9, floor=record_floor)
    plain = prove_floor(record, 9, floor=record_floor, plain=True)
    assert grown.outcome is plain.outcome
    assert grown.tested < plain.tested


def test_a_planted_blind_set_is_always_found_of_completion() -> None:
    """Nine nodes whose relations leave one direction free: no positive floor may pass, whatever the
    rest looks like.
    """
    for seed in range(6):
        rng = np.random.default_rng(seed)
        matrix = thin_field(seed, nodes=40)
        hidden = np.sort(rng.choice(40, 9, replace=False))
        free = rng.standard_normal(9)
        matrix = matrix[~(np.abs(matrix[:, hidden]).sum(axis=1) > 0)]
        links = np.zeros((8, 40))
        for t in range(8):
            links[t, hidden[t]], links[t, hidden[t + 1]] = free[t + 1], -free[t]
        record = make_record(np.vstack([matrix, links, np.eye(40)[np.setdiff1d(np.arange(40), hidden)]]))
        assert prove_floor(record, 9, floor=1e-3).outcome is ProofOutcome.REFUTED
        assert prove_floor(record, 8, floor=1e-6).outcome is ProofOutcome.PROVED


def test_no_time_is_no_proof() -> None:
    record = make_record(thin_field(0, nodes=60))
    late = prove_floor(record, 10, floor=1e-3, time_limit=0.0)
    assert late.outcome is ProofOutcome.UNDECIDED
    gram = field_of(record, 10, np.zeros(0)).gram
    assert gram is not None
    assert not completion.prove_by_growth(gram, 1e-6, deadline=time.monotonic() - 1.0).finished


def test_radii_blocks_and_small_supports_are_left_to_the_walker() -> None:
    matrix = thin_field(0)
    for record, size, radii2 in (
        (make_record(matrix), 4, np.zeros(0)),
        (make_record(matrix, radii=np.full(len(matrix), 0.1)), 8, np.full(len(matrix), 0.01)),
        (make_record(np.kron(matrix, np.eye(2)), [2] * 30), 8, np.zeros(0)),
    ):
        gram = field_of(record, size, radii2).gram
        assert gram is not None
        assert not completion.suits(gram)


def test_a_deadline_raises_the_flag_and_leaves_no_timer() -> None:
    before = threading.active_count()
    with flag_at(None) as flag:
        assert flag.tolist() == [0]
        assert threading.active_count() == before
    with flag_at(time.monotonic() - 1.0) as flag:
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
        assert flag.tolist() == [1]
    with flag_at(time.monotonic() + 3600.0) as flag:
        (timer,) = (thread for thread in threading.enumerate() if isinstance(thread, threading.Timer))
    timer.join()
    assert flag.tolist() == [0]


def incidence(graph: nx.Graph) -> np.ndarray:
    matrix = np.zeros((graph.number_of_edges() + 1, graph.number_of_nodes()))
    for row, (a, b) in enumerate(graph.edges):
        matrix[row, a], matrix[row, b] = -1.0, 1.0
    return matrix


def connected_sets(graph: nx.Graph, size: int) -> set[frozenset[int]]:
    found = set()
    for component in nx.connected_components(graph):
        for nodes in combinations(sorted(component), min(size, len(component))):
            if nx.is_connected(graph.subgraph(nodes)):
                found.add(frozenset(nodes))
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_each_connected_support_once(seed: int, size: int) -> None:
    graph = nx.gnp_random_graph(9, 0.25, seed=seed)
    gram = field_of(make_record(incidence(graph)), size, np.zeros(0), plain=True).gram
    assert gram is not None
    w = new_walk(gram, capacity=7)
    seen = []
    while True:  # an impossible threshold rejects everything, so `rejected` lists what was visited
        status = walk(gram, w, 1e9, 1e9, 5)
        seen += [frozenset(int(i) for i in row if i >= 0) for row in w.rejected[: w.state[COUNT]]]
        w.state[COUNT] = 0
        if status == DONE:
            break
    assert len(seen) == len(set(seen)) == w.state[TESTED]
    assert set(seen) == connected_sets(graph, size)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("size", [2, 3, 4])
def test_nodes_of_several_coordinates_are_judged_by_their_least_eigenvalue(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(7, 0.35, seed=seed)
    widths = rng.integers(2, 4, size=7).tolist()
    ends = np.cumsum([0, *widths])
    rows = []
    for a, b in [*graph.edges, *((i, i) for i in graph.nodes)]:
        row = np.zeros((3, ends[-1]))
        for node in (a, b):
            row[:, ends[node] : ends[node + 1]] = rng.integers(-2, 3, size=(3, widths[node]))
        rows.append(row)
    matrix = np.vstack(rows)
    coordinates = {i: range(ends[i], ends[i + 1]) for i in graph.nodes}
    least = {
        nodes: float(np.linalg.svd(matrix[:, [c for i in nodes for c in coordinates[i]]], compute_uv=False)[-1])
        for nodes in connected_sets(graph, size)
    }
    floor = float(np.median(list(least.values()))) + 1e-3
    gram = field_of(make_record(matrix, widths), size, np.zeros(0), plain=True).gram
    assert gram is not None
    w = new_walk(gram, capacity=1000)
    w.factor[:] = np.nan  # what is not written may not be read
    assert walk(gram, w, floor * floor, floor, 1_000_000) == DONE
    rejected = {frozenset(int(i) for i in row if i >= 0) for row in w.rejected[: w.state[COUNT]]}
    assert rejected == {nodes for nodes, value in least.items() if value < floor}
