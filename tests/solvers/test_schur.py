"""One support: its minimum in floating point and in rationals, upper bounds that hold, proofs that
are never wrong.
"""

from __future__ import annotations

import numpy as np
import pytest
from delivered_oracle import holds, plain_value

from solvers._schur import (
    _ratio_above,
    all_least_delivered,
    hidden,
    near_vector,
    proves_hidden_at_least,
)


def blocks(count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        block = rng.integers(-2, 3, size=(int(rng.integers(2, 7)), int(rng.integers(2, 6)))).astype(float)
        block[:, -1] = block[:, 0] + block[:, 1] + rng.choice([0.0, 0.0, 1e-9, 2.0**-50], size=len(block))
        wanted = rng.random(block.shape[1]) < 0.4
        wanted[int(rng.integers(len(wanted)))] = True
        yield block, wanted


def test_minima_bracket_the_truth_however_singular_the_rest():
    for block, wanted in blocks(150):
        found = hidden(block, wanted)
        assert not holds(block, wanted, np.nextafter(found.upper, np.inf), strictly=True)
        assert holds(block, wanted, found.sigma * (1 - 1e-9))
        assert np.linalg.norm(found.vector[wanted]) == pytest.approx(1.0)


def test_proofs_are_never_wrong_and_often_found():
    rng = np.random.default_rng(5)
    proved = 0
    for block, wanted in blocks(150, seed=1):
        level = hidden(block, wanted).sigma * float(rng.choice([0.5, 0.999, 1.001]))
        verdict = proves_hidden_at_least(block, wanted, level * level)
        if verdict:
            assert holds(block, wanted, level * (1 - 1e-15))
        proved += verdict
    assert proved > 30


def test_the_last_bit_decides_whether_a_direction_is_blind():
    """Equal columns hide nothing; columns that differ in the last bit span one direction more."""
    column = np.array([1.0, 1.0, 0.0])
    block = np.column_stack([np.array([0.0, 1.0, 1.0]), column, column])
    wanted = np.array([True, False, False])
    assert hidden(block, wanted).sigma == pytest.approx(np.sqrt(1.5))
    block[1, 2] = np.nextafter(1.0, 2.0)
    found = hidden(block, wanted)
    assert found.sigma == pytest.approx(1.0)
    assert holds(block, wanted, found.sigma * (1 - 1e-9))


def test_upper_bounds_of_a_vector():
    rng = np.random.default_rng(2)
    for _ in range(20):
        block, vector = rng.standard_normal((5, 3)), rng.standard_normal(3)
        wanted = np.array([True, False, True])
        ratio = np.linalg.norm(block @ vector) / np.linalg.norm(vector[wanted])
        assert ratio <= _ratio_above(block, vector, wanted) <= ratio * (1 + 1e-12)
    assert _ratio_above(np.zeros((2, 2)), np.array([1.0, 0.0]), np.array([True, True])) == 0.0


def least_delivered(gram, wanted):
    """λ_min of the Schur complement on the wanted coordinates of one Gram block, as defined."""
    inside = np.flatnonzero(wanted > 0.0)
    if not len(inside):
        return float("inf")
    outside = np.flatnonzero((wanted <= 0.0) & (gram.diagonal() < 1e300))
    complement = gram[np.ix_(inside, inside)]
    if len(outside):
        cross = gram[np.ix_(outside, inside)]
        inverse = np.linalg.pinv(gram[np.ix_(outside, outside)], rcond=1e-11, hermitian=True)
        complement = complement - cross.T @ inverse @ cross
    return float(np.linalg.eigvalsh(complement)[0])


def test_guesses_are_close_on_plain_blocks():
    rng = np.random.default_rng(3)
    for _ in range(10):
        block = rng.standard_normal((6, 4))
        wanted = np.array([True, False, True, False])
        value = plain_value(block, wanted)
        guess = all_least_delivered((block.T @ block)[None], wanted.astype(float)[None])
        assert guess == pytest.approx([value**2])
        vector = near_vector(block, wanted)
        assert np.linalg.norm(block @ vector) / np.linalg.norm(vector[wanted]) == pytest.approx(value, rel=1e-6)
    assert all_least_delivered(np.eye(2)[None], np.zeros((1, 2))).tolist() == [np.inf]


@pytest.mark.parametrize("seed", range(12))
def test_many_guesses_at_once_are_the_single_ones(seed):
    rng = np.random.default_rng(seed)
    order, count = int(rng.integers(2, 9)), int(rng.integers(1, 20))
    blocks = rng.normal(size=(count, int(rng.integers(1, order + 3)), order))  # singular ones among them
    grams = np.swapaxes(blocks, 1, 2) @ blocks
    wanted = (rng.random((count, order)) < 0.4).astype(float)
    if seed % 3 == 0:  # the last place is empty
        grams[:, -1, :] = grams[:, :, -1] = 0.0
        grams[:, -1, -1], wanted[:, -1] = 1e305, 0.0
    singly = [least_delivered(gram, mask) for gram, mask in zip(grams, wanted, strict=True)]
    assert all_least_delivered(grams, wanted) == pytest.approx(singly, rel=1e-8, abs=1e-8)


def test_guesses_without_anything_to_see():
    assert np.linalg.norm(near_vector(np.zeros((2, 2)), np.array([True, False]))) == pytest.approx(1.0)
