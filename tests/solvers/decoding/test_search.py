"""The support search against the definition: least squares over every support."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from solvers import margin
from solvers.decoding import SupportDecoder, decode_support


def by_definition(B, groups, s, k, radius):
    """All minimal supports within the radius, and the least residual of any support of at most k nodes."""
    minimal, least = [], np.inf
    for size in range(k + 1):
        for support in combinations(range(len(groups)), size):
            columns = np.concatenate([groups[i] for i in support]) if support else np.zeros(0, dtype=int)
            e = np.linalg.lstsq(B[:, columns], s, rcond=1e-10)[0] if size else np.zeros(0)
            residual = float(np.linalg.norm(B[:, columns] @ e - s))
            least = min(least, residual)
            if residual <= radius and not any(set(other) <= set(support) for other in minimal):
                minimal.append(support)
    return sorted(minimal), least


def random_field(rng, *, integer):
    n, k = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    dims = rng.integers(1, int(rng.integers(2, 4)), size=n)
    groups = np.split(np.arange(dims.sum()), np.cumsum(dims)[:-1])
    shape = (int(rng.integers(2, 12)), int(dims.sum()))
    B = rng.integers(-1, 2, size=shape).astype(float) if integer else rng.normal(size=shape)
    B *= rng.random(shape) < 0.5
    e = np.zeros(shape[1])
    for i in rng.choice(n, size=min(n, int(rng.integers(0, k + 2))), replace=False):
        e[groups[i]] = rng.normal(size=len(groups[i]))
    return B, groups, k, e


class TestMessages:
    def test_syndrome_of_another_length(self):
        with pytest.raises(ValueError, match=r"one entry per row \(2\), got shape \(3,\)"):
            decode_support(np.eye(2), syndrome=[1, 2, 3], k=1)

    def test_nan(self):
        with pytest.raises(ValueError, match="NaN"):
            decode_support(np.eye(2), syndrome=[1, np.nan], k=1)
        with pytest.raises(ValueError, match="B holds a NaN"):
            decode_support([[np.nan]], syndrome=[1], k=1)

    def test_negative_radius(self):
        with pytest.raises(ValueError, match="epsilon"):
            decode_support(np.eye(2), syndrome=[1, 2], k=1, epsilon=-1)

    def test_unknown_erased_node(self):
        with pytest.raises(ValueError, match=r"numbered 0..1"):
            SupportDecoder(np.eye(2), known=[2])


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_definition(seed):
    rng = np.random.default_rng(seed)
    for trial in range(40):
        B, groups, k, e = random_field(rng, integer=trial % 2 == 0)
        epsilon = (0.0, 0.1, 0.5)[trial % 3]
        s = B @ e + 0.3 * epsilon * rng.normal(size=B.shape[0])
        expected, least = by_definition(B, groups, s, k, epsilon + 1e-12 * np.linalg.norm(s))
        for operator in (B, sparse.csr_array(B)):
            found = decode_support(operator, groups, syndrome=s, k=k, epsilon=epsilon, limit=0)
            assert sorted(item.support for item in found.explanations) == expected
            assert found.complete
            assert found.explained == bool(expected)
            if not expected:
                assert found.residual == pytest.approx(least, abs=1e-9)
            assert found.residual == pytest.approx(np.linalg.norm(B @ found.error - s), abs=1e-9)
            assert found.unique == (len(expected) == 1)


@pytest.mark.parametrize(("nodes", "dim", "k"), [(300, 1, 1), (300, 1, 2), (120, 3, 2), (300, 1, 4)])
def test_sparse_graph_in_the_hundreds(nodes, dim, k):
    rng = np.random.default_rng(nodes + dim + k)
    tails = rng.integers(0, nodes, 3 * nodes)
    heads = (tails + 1 + rng.integers(0, nodes - 1, 3 * nodes)) % nodes
    rows = np.arange(3 * nodes)
    edges = sparse.csr_array((np.r_[-np.ones(3 * nodes), np.ones(3 * nodes)], (np.r_[rows, rows], np.r_[tails, heads])))
    B = sparse.kron(edges, sparse.eye_array(dim)).tocsr()
    e = np.zeros(nodes * dim)
    wrong = np.sort(rng.choice(nodes, k, replace=False))
    for i in wrong:
        e[i * dim : (i + 1) * dim] = 1 + rng.random(dim)
    noise = rng.normal(size=B.shape[0])
    noise *= 0.05 / np.linalg.norm(noise)
    found = decode_support(B, [dim] * nodes, syndrome=B @ e + noise, k=k, epsilon=0.05)
    assert found.support == tuple(wrong)
    assert found.unique
    assert found.best_smaller > 0.05
    assert found.tested < 200  # the rest was excluded by arithmetic
    assert np.linalg.norm(found.error - e) < 0.1


def test_limit_says_that_the_list_is_cut():
    found = decode_support(np.ones((1, 30)), syndrome=[1.0], k=1, limit=4)
    assert len(found.explanations) == 4
    assert not found.complete
    assert not found.unique


def test_time_limit_is_never_complete():
    rng = np.random.default_rng(0)
    found = decode_support(rng.normal(size=(60, 60)), syndrome=rng.normal(size=60), k=4, time_limit=0.0)
    assert not found.complete


def test_residual_on_the_edge_is_marked():
    found = decode_support(np.eye(2), syndrome=[1.0, 0.5], k=1, epsilon=0.5)
    assert found.explanations[0].edge
    clear = decode_support(np.eye(2), syndrome=[1.0, 0.5], k=1, epsilon=0.6)
    assert not clear.explanations[0].edge


def test_known_nodes_cost_nothing_of_the_budget():
    rng = np.random.default_rng(5)
    B = rng.normal(size=(12, 8))
    e = np.zeros(8)
    e[[1, 4, 6]] = [3.0, -2.0, 1.0]
    found = decode_support(B, syndrome=B @ e, k=1, known=[1, 6])
    assert found.support == (4,)
    assert found.unique
    np.testing.assert_allclose(found.error, e, atol=1e-10)


def test_null_space_and_free_dimensions():
    decoder = SupportDecoder(np.array([[1.0, -1.0, 0.0]]))
    assert decoder.free_dimensions((0, 1)) == 1
    assert decoder.free_dimensions((0,)) == 0
    assert decoder.free_dimensions((2,)) == 1
    null = decoder.null_space((0, 1))
    np.testing.assert_allclose(np.abs(null[:, 0]), [np.sqrt(0.5), np.sqrt(0.5), 0], atol=1e-12)


def test_empty_operator_explains_only_nothing():
    found = decode_support(np.zeros((0, 3)), syndrome=[], k=1)
    assert found.support == ()
    assert found.explained


@pytest.mark.parametrize("seed", range(4))
def test_every_sparse_error_is_recovered_wherever_the_margin_is_positive(seed):
    """Identifiability and stability, over two thousand random fields: e itself without noise, 2ε/γ with it."""
    rng = np.random.default_rng(1000 + seed)
    positive = 0
    for trial in range(500):
        n, k = int(rng.integers(3, 7)), int(rng.integers(1, 3))
        dims = rng.integers(1, 3, size=n)
        starts = np.cumsum([0, *dims])
        B = rng.integers(-1, 2, size=(int(rng.integers(3, 12)), int(starts[-1]))).astype(float)
        gamma = margin(B, dims.tolist(), k=k)
        e = np.zeros(starts[-1])
        for i in rng.choice(n, size=int(rng.integers(0, k + 1)), replace=False):
            e[starts[i] : starts[i + 1]] = rng.normal(size=dims[i])
        noise = rng.normal(size=B.shape[0])
        epsilon = (0.0, 0.05)[trial % 2]
        noise *= epsilon * rng.random() / np.linalg.norm(noise)
        found = decode_support(B, dims.tolist(), syndrome=B @ e + noise, k=k, epsilon=epsilon, limit=0)
        assert found.explained
        if gamma.lower > 0:
            positive += 1
            assert np.linalg.norm(found.error - e) <= 2 * epsilon / gamma.lower + 1e-9 / gamma.lower
            if epsilon == 0.0:
                assert found.unique
        for item in found.explanations:
            assert np.linalg.norm(B @ item.error - B @ e - noise) <= epsilon + 1e-9
    assert positive > 150
