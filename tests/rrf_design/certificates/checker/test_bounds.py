"""What the searches bound with: couplings, pieces, exact numbers, Gram matrices."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest

from rrf_design.certificates._sections import nullspace_section
from rrf_design.checker._couplings import HOPELESS, couple_blocks, couple_scalars, edge_pulls, norm_above, roots_of
from rrf_design.checker._gram import field_of
from rrf_design.checker._pieces import TOLD_APART, Links, backward_edges, girths, last_pivot, lengthen, tabulate
from rrf_design.checker.exact import (
    RATIONAL_ORDER,
    ProofOutcome,
    _exact_gram,
    definiteness,
    dependent,
    float_down,
    float_up,
    ratio_up,
    sqrt_down,
    sqrt_up,
)
from rrf_design.checker.nullspace import NullSpace, check_nullspace
from rrf_design.checker.proofs import prove_floor
from rrf_design.errors import Refused

from ..conftest import brute_margin, make_record, random_field


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (3, 5), (7, 2)])
def test_norms_are_bounded_from_above_and_closely(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape)
    for scale in (1e-30, 1.0, 1e30):
        block = rng.standard_normal(shape) * scale
        bound = norm_above(block, *shape, np.zeros((shape[1], shape[1])))
        exact = np.linalg.norm(block, 2)
        assert exact * (1 - 1e-10) <= bound <= exact * shape[1] ** 0.125 * (1 + 1e-10)


def whitened(matrix: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Norms of the scaled blocks, by plain linear algebra."""
    count = len(cuts) - 1
    roots = [np.linalg.inv(np.linalg.cholesky(matrix[a:b, a:b])) for a, b in pairwise(cuts)]
    result = np.zeros((count, count))
    for i in range(count):
        for j in range(count):
            if i != j:
                block = matrix[cuts[i] : cuts[i + 1], cuts[j] : cuts[j + 1]]
                result[i, j] = np.linalg.norm(roots[i] @ block @ roots[j].T, 2)
    return result


@pytest.mark.parametrize("sizes", [[1] * 6, [2] * 5, [1, 3, 2, 4]])
def test_dense_couplings(sizes: list[int]) -> None:
    rng = np.random.default_rng(len(sizes))
    cuts = np.concatenate([[0], np.cumsum(sizes)])
    factor = rng.standard_normal((3 * cuts[-1], cuts[-1]))
    matrix = factor.T @ factor
    links, sound = np.zeros((len(sizes), len(sizes))), np.zeros(len(sizes), dtype=np.bool_)
    if max(sizes) == 1:
        couple_scalars(matrix, links, sound, len(sizes))
    else:
        scale = np.sqrt(np.add.reduceat(np.diag(matrix), cuts[:-1]))
        couple_blocks(matrix, cuts, links, sound, len(sizes), scale)
    exact = whitened(matrix, cuts)
    assert sound.all()
    assert np.allclose(links, links.T, rtol=1e-14)
    assert (links >= exact * (1 - 1e-10)).all()
    assert (links <= exact * 1.2 + 1e-9).all()


def test_a_node_that_is_harmful_in_itself_makes_every_sum_hopeless() -> None:
    matrix = np.diag([1.0, -1.0, 1.0])
    links, sound = np.zeros((3, 3)), np.zeros(3, dtype=np.bool_)
    couple_scalars(matrix, links, sound, 3)
    assert sound.tolist() == [True, False, True]
    assert links[1, 0] == links[0, 1] == HOPELESS
    assert links[0, 2] == 0.0
    couple_blocks(np.diag([1.0, 1.0, 1.0, -1.0]), np.array([0, 2, 4]), links, sound, 2, np.full(2, 1.5))
    assert sound.tolist()[:2] == [True, False]
    assert links[0, 1] == HOPELESS


@pytest.mark.parametrize("seed", range(40))
def test_every_harmful_support_holds_a_root(seed: int) -> None:
    matrix, sizes, _, _ = random_field(seed)
    size = 2 + seed % 3
    gram = field_of(make_record(matrix, sizes), size, np.zeros(0), plain=True).gram
    assert gram is not None
    starts = np.concatenate([[0], np.cumsum(sizes)])
    exact = matrix.T @ matrix
    for shift in (0.01, 0.3, 1.0):
        roots = set(roots_of(gram, shift, np.ones(len(sizes), dtype=np.bool_)).tolist())
        for support in combinations(range(len(sizes)), min(size, len(sizes))):
            columns = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in support])
            if np.linalg.eigvalsh(exact[np.ix_(columns, columns)])[0] < shift * (1 - 1e-9):
                assert roots & set(support)


def test_edges_without_a_block_pull_at_nothing() -> None:
    record = make_record(np.eye(4), blocks=[2, 2], radii=[0.1, 0.1])
    gram = field_of(record, 2, np.square(record.radii), plain=True).gram
    pulls, sound = edge_pulls(gram, 0.25)
    assert sound.all()
    assert (pulls < 1e-12).all()


def random_graph(seed: int, *, nodes: int = 8, chance: float = 0.22):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(nodes, chance, seed=seed)
    matrix = np.zeros((nodes, nodes))
    for i, j in graph.edges:
        matrix[i, j] = matrix[j, i] = rng.standard_normal()
    np.fill_diagonal(matrix, 0.3 + rng.random(nodes) - np.linalg.eigvalsh(matrix)[0])
    starts = np.append(0, np.cumsum([graph.degree(i) for i in range(nodes)]))
    ends = [(i, j) for i in range(nodes) for j in sorted(graph.neighbors(i))]
    neighbours = np.array([j for _, j in ends], dtype=np.int64)
    entries = np.array([matrix[i, j] for i, j in ends], dtype=np.float64)
    arrays = Links(starts, neighbours, entries, np.diag(matrix).copy(), backward_edges(starts, neighbours))
    return graph, arrays, matrix, ends


def pieces_of(graph: nx.Graph, u: int, f: int, most: int) -> list[tuple[int, ...]]:
    rest = [i for i in graph if i not in (u, f)]
    sets = (tuple(sorted((f, *more))) for b in range(most) for more in combinations(rest, b))
    return [s for s in sets if nx.is_connected(graph.subgraph(s))]


@pytest.mark.parametrize("seed", range(4))
def test_every_bound_is_below_what_it_bounds(seed: int) -> None:
    graph, arrays, matrix, ends = random_graph(seed)
    largest = 3
    tables = tabulate(arrays, largest, 10**9)
    assert not len(tables.broken)
    for e, (u, f) in enumerate(ends):
        assert ends[arrays.backward[e]] == (f, u)
        for piece in pieces_of(graph, u, f, largest):
            inverse = np.linalg.inv(matrix[np.ix_(piece, piece)])
            at = piece.index(f)
            b = len(piece)
            assert tables.alone[e, b] <= 1.0 / inverse[at, at]
            beside = [p for p, i in enumerate(piece) if i != f and set(graph.neighbors(i)) - set(piece)]
            for m in range(2, b + 1):
                for more in combinations(beside, m - 1):
                    both = [at, *more]
                    exact = 1.0 / np.linalg.eigvalsh(inverse[np.ix_(both, both)])[-1]
                    assert tables.among[e, b, min(m, TOLD_APART + 1)] <= exact
        single = min(1.0 / np.linalg.inv(matrix[np.ix_(p, p)])[p.index(f), p.index(f)]
                     for p in pieces_of(graph, u, f, largest))  # fmt: skip
        assert tables.alone[e, largest] == pytest.approx(single, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_longer_pieces_are_bounded_too(seed: int) -> None:
    graph, arrays, matrix, ends = random_graph(seed, chance=0.2)
    most = 6
    girth = girths(arrays, most)
    least = np.full(most + 1, np.inf)
    for b in range(1, most + 1):
        sets = (s for s in combinations(graph, b) if nx.is_connected(graph.subgraph(s)))
        least[b] = min([least[b - 1], *(np.linalg.eigvalsh(matrix[np.ix_(s, s)])[0] for s in sets)])
    longer = lengthen(arrays, tabulate(arrays, 2, 10**9).alone, girth, least)
    for e, (u, f) in enumerate(ends):
        rest = graph.subgraph(set(graph) - {u})
        through = [len(c) for c in nx.simple_cycles(rest, length_bound=most) if f in c]
        assert min(girth[e], most + 1) == min([most + 1, *through])
        for piece in pieces_of(graph, u, f, most):
            inverse = np.linalg.inv(matrix[np.ix_(piece, piece)])
            assert longer[e, len(piece)] <= 1.0 / inverse[piece.index(f), piece.index(f)]


def test_sets_not_definite_are_handed_back_and_too_many_given_up() -> None:
    _, arrays, matrix, _ = random_graph(1)
    level = np.linalg.eigvalsh(matrix)[0] + 1.0
    broken = tabulate(arrays._replace(pivots=arrays.pivots - level), 4, 10**9).broken
    assert np.linalg.eigvalsh(matrix[np.ix_(broken, broken)])[0] < level
    graph, arrays, _, _ = random_graph(2)
    sets = sum(nx.is_connected(graph.subgraph(s)) for b in (1, 2, 3) for s in combinations(graph, b))
    assert not len(tabulate(arrays, 3, sets).broken)
    assert tabulate(arrays, 3, sets - 1).broken.tolist() == [-1]


def test_pivots_are_what_elimination_or_rationals_leave() -> None:
    matrix = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 1.0]])
    for last in range(3):
        exact = 1.0 / np.linalg.inv(matrix)[last, last]
        assert last_pivot(matrix, 3, last, np.zeros((3, 3))) == pytest.approx(exact, rel=1e-11)
    assert last_pivot(matrix - 2.5 * np.eye(3), 3, 0, np.zeros((3, 3))) == 0.0
    columns = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert definiteness(columns, floor=0.0) is ProofOutcome.PROVED
    assert definiteness(columns, floor=1e-300) is ProofOutcome.REFUTED


def test_the_exact_smallest_singular_value_is_proved_and_the_next_number_is_not() -> None:
    columns = np.diag([3.0, 0.5])
    assert definiteness(columns, floor=0.5) is ProofOutcome.PROVED
    assert definiteness(columns, floor=float(np.nextafter(0.5, 1))) is ProofOutcome.REFUTED


def test_numbers_are_exact_and_the_last_bit_is_seen() -> None:
    tiny = 2.0**-52
    columns = np.array([[1.0, 1.0], [0.0, tiny]])
    sigma2 = (2 + tiny**2 - np.sqrt((2 + tiny**2) ** 2 - 4 * tiny**2)) / 2
    assert sigma2 == 0.0  # floating point can't see it
    assert definiteness(columns, floor=tiny / 2) is ProofOutcome.PROVED
    assert definiteness(columns, floor=tiny) is ProofOutcome.REFUTED
    columns = np.eye(2)
    assert definiteness(columns, floor=0.49, radii=(0.3, 0.4)) is ProofOutcome.PROVED
    assert definiteness(columns, floor=0.51, radii=(0.3, 0.4)) is ProofOutcome.REFUTED
    columns = np.array([[0.1, 0.2], [0.3, 0.0]])
    gram = _exact_gram(columns)
    assert Fraction(int(gram[0][0].p), int(gram[0][0].q)) == Fraction(0.1) ** 2 + Fraction(0.3) ** 2
    assert gram[0][1] == gram[1][0]


@pytest.mark.parametrize("value", [Fraction(2), Fraction(1, 3), Fraction(10) ** 400, Fraction(1, 10**500), Fraction(0)])
def test_roots_are_rounded_to_their_side(value: Fraction) -> None:
    assert Fraction(sqrt_down(value)) ** 2 <= value <= Fraction(sqrt_up(value)) ** 2
    assert sqrt_up(value) <= np.nextafter(np.nextafter(sqrt_down(value), np.inf), np.inf)


def test_numbers_are_rounded_to_their_side() -> None:
    third = Fraction(1, 3)
    assert Fraction(float_down(third)) < third < Fraction(float_up(third))
    assert float_down(Fraction(1, 2)) == float_up(Fraction(1, 2)) == 0.5


def test_dependent_columns_have_exactly_no_margin() -> None:
    columns = np.array([[1.0, 3.0], [0.1, 3.0 * 0.1]])
    assert dependent(np.array([[1e90, -1e90], [1e-30, -1e-30]]))
    assert not dependent(columns)  # 3·0.1 is not the triple of the double 0.1
    assert dependent(np.ones((1, 2)))
    assert not dependent(np.eye(RATIONAL_ORDER + 1))
    assert ratio_up(np.ones((2, 2)), Fraction(1, 10**30)) == 0.0
    assert ratio_up(columns, Fraction(1, 4)) == 0.5


def test_a_dense_field_is_one_matrix_with_a_lowered_diagonal() -> None:
    matrix = np.random.default_rng(0).standard_normal((12, 9))
    field = field_of(make_record(matrix, [2, 1, 3, 1, 2]), 3, np.zeros(0))
    assert field.gram is None
    part = field.dense[0]
    exact = matrix.T @ matrix
    assert np.array_equal(part.matrix, part.matrix.T)
    assert np.allclose(part.matrix, exact, rtol=1e-12)
    assert (np.diag(part.matrix) < np.diag(exact)).all()
    assert part.cuts.tolist() == [0, 2, 3, 6, 7, 9]


@pytest.mark.parametrize("sizes", [[1] * 9, [2] * 9, [1, 2, 3] * 3])
def test_a_field_with_a_dense_and_a_sparse_part(sizes: list[int]) -> None:
    """Six nodes that all touch, and a chain of three: both parts are searched, and the weaker one
    decides.
    """
    rng = np.random.default_rng(sum(sizes))
    width, split = sum(sizes), sum(sizes[:6])
    for weak in (0.3, 3.0):
        upper = np.hstack([rng.standard_normal((2 * split, split)), np.zeros((2 * split, width - split))])
        chain = np.zeros((3 * (width - split), width))
        chain[:, split:] = weak * np.vstack([np.eye(width - split), np.tri(width - split), np.eye(width - split)])
        matrix = np.vstack([upper, chain])
        record = make_record(matrix, sizes)
        field = field_of(record, 3, np.zeros(0))
        assert [part.names.tolist() for part in field.dense] == [list(range(6))]
        assert field.gram is not None
        assert field.gram.roots.tolist() == [6, 7, 8]
        value = brute_margin(matrix, sizes, 3)
        assert prove_floor(record, 3, floor=value * (1 - 1e-10)).outcome is ProofOutcome.PROVED
        assert prove_floor(record, 3, floor=value * (1 + 1e-10)).outcome is ProofOutcome.REFUTED


def test_blocks_of_one_size_and_of_mixed_sizes_are_the_gram_matrix() -> None:
    rng = np.random.default_rng(4)
    for sizes in ([1] * 6, [2] * 6, [1, 2, 1, 3, 1, 2]):
        starts = np.concatenate([[0], np.cumsum(sizes)])
        matrix = np.zeros((24, starts[-1]))
        for row in range(24):
            for i in rng.choice(5, 2, replace=False):  # the last node is touched by nothing
                matrix[row, starts[i] : starts[i + 1]] = rng.standard_normal(sizes[i])
        gram = field_of(make_record(matrix, sizes), 2, np.zeros(0), plain=True).gram
        assert gram is not None
        exact = matrix.T @ matrix
        for i, size in enumerate(sizes):
            own = gram.blocks[gram.self_blocks[i] :][: size * size].reshape(size, size)
            assert np.allclose(own, exact[starts[i] : starts[i + 1], starts[i] : starts[i + 1]])
            for e in range(gram.neighbour_starts[i], gram.neighbour_starts[i + 1]):
                j = int(gram.neighbours[e])
                block = gram.blocks[gram.edge_blocks[e] :][: size * sizes[j]].reshape(size, sizes[j])
                assert np.allclose(block, exact[starts[i] : starts[i + 1], starts[j] : starts[j + 1]])


def test_nodes_that_share_a_block_are_adjacent_where_radii_count() -> None:
    record = make_record(np.eye(4), blocks=[2, 2], radii=[0.1, 0.1])
    without = field_of(record, 2, np.zeros(0), plain=True).gram
    with_radii = field_of(record, 2, np.square(record.radii), plain=True).gram
    assert without is not None
    assert with_radii is not None
    assert len(without.neighbours) == 0
    assert with_radii.neighbours.tolist() == [1, 0, 3, 2]
    assert (with_radii.edge_blocks == -1).all()


def test_numbers_beyond_the_range_of_doubles_are_left_to_exact_arithmetic() -> None:
    matrix = np.random.default_rng(1).standard_normal((6, 4)) * 1e200
    record = make_record(matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        assert prove_floor(record, 2, floor=1e190).outcome is ProofOutcome.PROVED
        assert prove_floor(record, 2, floor=1e202).outcome is ProofOutcome.REFUTED


def test_an_operator_whose_rows_touch_everything_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.checker._gram.PAIR_LIMIT", 10)
    monkeypatch.setattr("rrf_design.checker._gram.DENSE_COORDINATES", 3)
    with pytest.raises(Refused, match="too dense"):
        prove_floor(make_record(np.ones((1, 5))), 2, floor=0.1)


def test_a_chain_never_becomes_a_plain_matrix() -> None:
    matrix = np.eye(400) - np.eye(400, k=1)
    field = field_of(make_record(matrix), 2, np.zeros(0))
    assert field.dense == ()


def example() -> np.ndarray:
    """The paper's 2×3 matrix: kernel (1, 0.4, 0.4), every two columns independent."""
    return np.array([[0.4, -1.0, 0.0], [0.0, 1.0, -1.0]])


def test_an_injective_operator_is_certified() -> None:
    record = make_record(np.vstack([np.eye(3), np.ones((1, 3))]))
    section = nullspace_section(record, 1)
    assert section["status"] == NullSpace.CERTIFIED
    assert section["tau"] == pytest.approx(1.0, rel=1e-5)
    assert "certified" in check_nullspace(section, record, 1)
    rng = np.random.default_rng(0)
    for h in rng.standard_normal((200, 3)):
        inside = np.sort(np.abs(h))[-1]
        assert inside <= section["tau"] * np.linalg.norm(record.matrix @ h) + section["rho"] * np.abs(h).sum()


def test_a_positive_margin_does_not_certify_the_convex_decoder() -> None:
    record = make_record(example())
    section = nullspace_section(record, 1)
    assert section["status"] == NullSpace.REFUTED
    assert section["witness"]["set"] == ["n0"]
    assert "refuted" in check_nullspace(section, record, 1)


def test_a_gauge_that_is_spread_out_is_certified() -> None:
    """A triangle and an anchored pair: the kernel is one constant over three nodes, ρ₀ = 1/2."""
    matrix = np.zeros((5, 5))
    for row, (a, b) in enumerate([(0, 1), (1, 2), (2, 0), (3, 4)]):
        matrix[row, a], matrix[row, b] = -1.0, 1.0
    matrix[4, 3] = 1.0
    record = make_record(matrix)
    section = nullspace_section(record, 1)
    assert section["status"] == NullSpace.CERTIFIED
    assert section["rho"] == pytest.approx(0.5, rel=1e-6)
    assert check_nullspace(section, record, 1).startswith("certified")
    rng = np.random.default_rng(0)
    gauge = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    for noise in (0.0, 1e-3, 1.0):
        for h in gauge + noise * rng.standard_normal((100, 5)):
            size = np.sort(np.abs(h))
            allowed = section["rho"] * size[:-1].sum() + section["tau"] * np.linalg.norm(matrix @ h)
            assert size[-1] <= allowed * (1 + 1e-9)
    for change in ({"rho": 0.4}, {"tau": section["tau"] / 2}, {"kernel": {**section["kernel"], "floor": 5.0}}):
        with pytest.raises(Refused, match="nullspace"):
            check_nullspace({**section, **change}, record, 1)
    doubled = {**section["kernel"], "directions": section["kernel"]["directions"] * 2}
    with pytest.raises(Refused, match="kernel"):
        check_nullspace({**section, "kernel": doubled}, record, 1)


def test_two_gauges_in_one_component_are_certified_on_small_fields_and_left_open_on_larger_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chain of five answers in the plane: both coordinates are free, ρ = 1/4."""
    wide = np.kron(
        np.array([[-1.0, 1.0, 0, 0, 0], [0, -1.0, 1.0, 0, 0], [0, 0, -1.0, 1.0, 0], [0, 0, 0, -1, 1]]), np.eye(2)
    )
    record = make_record(wide, [2] * 5)
    section = nullspace_section(record, 1)
    assert section["status"] == NullSpace.CERTIFIED
    assert section["rho"] == pytest.approx(0.25, rel=5e-3)
    assert check_nullspace(section, record, 1).startswith("certified")
    monkeypatch.setattr("rrf_design.certificates._sections.DUAL_COORDINATES", 9)
    monkeypatch.setattr("rrf_design.checker.nullspace.DUAL_COORDINATES", 9)
    left = nullspace_section(record, 1)
    assert left["status"] == NullSpace.NOT_CERTIFIED
    assert check_nullspace(left, record, 1) == "not certified"
    with pytest.raises(Refused, match="kernel"):
        check_nullspace(section, record, 1)


def test_large_operators_are_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.certificates._sections.SMALL", 2)
    assert nullspace_section(make_record(np.eye(3)), 1)["status"] == NullSpace.NOT_CERTIFIED


def test_false_sections_are_refused() -> None:
    record = make_record(np.eye(3))
    section = nullspace_section(record, 1)
    for change in ({"tau": 0.5}, {"c2": 0.1}, {"rho": 1.0}, {"status": "refuted"}, {"status": "perhaps"}):
        with pytest.raises(Refused, match="nullspace"):
            check_nullspace({**section, **change}, record, 1)
    bad = nullspace_section(make_record(example()), 1)
    with pytest.raises(Refused, match="does not refute"):
        check_nullspace({**bad, "witness": {**bad["witness"], "set": ["n1"]}}, make_record(example()), 1)
    with pytest.raises(Refused, match="must name"):
        check_nullspace({**bad, "witness": {**bad["witness"], "set": ["n0", "n1"]}}, make_record(example()), 1)


def several_gauges(seed: int, *, nodes: int = 10, rows: int = 7, dim: int = 1) -> np.ndarray:
    """Generic rows over all nodes: one component whose kernel has more than one dimension."""
    return np.random.default_rng(seed).standard_normal((rows, nodes * dim))


def holds(section: dict[str, Any], matrix: np.ndarray, sizes: list[int], k: int, h: np.ndarray) -> bool:
    ends = np.cumsum(sizes)
    norms = np.sort([np.linalg.norm(part) for part in np.split(h, ends[:-1])])
    allowed = section["rho"] / np.sqrt(k) * norms[:-k].sum() + section["tau"] * np.linalg.norm(matrix @ h)
    return bool(np.linalg.norm(norms[-k:]) <= allowed * (1 + 1e-9))


@pytest.mark.parametrize(("dim", "k", "nodes", "rows"), [(1, 1, 14, 11), (2, 1, 12, 20), (1, 2, 16, 14)])
def test_a_component_with_several_gauges_is_certified_by_duality(dim: int, k: int, nodes: int, rows: int) -> None:
    decided = dict.fromkeys(NullSpace, 0)
    for seed in range(3):
        matrix = several_gauges(seed, nodes=nodes, rows=rows, dim=dim)
        record = make_record(matrix, [dim] * nodes)
        section = nullspace_section(record, k)
        decided[NullSpace(section["status"])] += 1
        check_nullspace(section, record, k)
        if section["status"] != NullSpace.CERTIFIED:
            continue
        assert set(section["kernel"]) == {"dual"}
        rng = np.random.default_rng(seed)
        kernel = np.linalg.svd(matrix)[2][rows:]
        for noise in (0.0, 1e-6, 0.1):
            for weights in rng.standard_normal((50, len(kernel))):
                h = weights @ kernel + noise * rng.standard_normal(nodes * dim)
                assert holds(section, matrix, [dim] * nodes, k, h)
        for change in ({"rho": section["rho"] * 0.999}, {"tau": section["tau"] * 0.99}, {"kernel": {"dual": [[0.0]]}}):
            with pytest.raises(Refused, match="nullspace"):
                check_nullspace({**section, **change}, record, k)
    assert decided[NullSpace.CERTIFIED] > 0


def test_every_small_scalar_field_with_several_gauges_is_decided_at_k_one() -> None:
    """Duality is exact there, so that only fields within a hair of ρ = 1 stay open."""
    for seed in range(12):
        record = make_record(several_gauges(seed, nodes=9, rows=4 + seed % 4))
        assert nullspace_section(record, 1)["status"] != NullSpace.NOT_CERTIFIED, seed


def test_a_gauge_on_one_node_beside_others_is_refuted() -> None:
    matrix = np.zeros((3, 5))
    matrix[:, :3] = np.random.default_rng(2).standard_normal((3, 3))
    matrix[2, 3] = 1.0  # node 4 is touched by nothing, nodes 0 to 3 share a gauge
    section = nullspace_section(make_record(matrix), 1)
    assert section["status"] == NullSpace.REFUTED
