"""Lists of supports: what is written, what is only counted when the list is full, and the sums that
find centres.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from solvers.kernels.emit import (
    CENTRE_SLACK,
    centres_first,
    emit_path,
    emit_supersets,
    emit_support,
    keep_largest,
    top_sum,
)


def blank(rows: int, columns: int) -> np.ndarray:
    return np.full((rows, columns), -9, np.int64)


def test_a_support_is_its_prefix_and_the_last_nodes_padded():
    out = blank(3, 5)
    prefix = np.array([7, 8, 99])
    assert emit_support(out, 0, prefix, 2, 4, -1, 3) == 1
    assert emit_support(out, 1, prefix, 1, -1, -1, -1) == 2
    assert out.tolist() == [[7, 8, 4, 3, -1], [7, -1, -1, -1, -1], [-9] * 5]


def test_a_full_list_is_counted_and_not_written():
    out = blank(1, 2)
    prefix = np.array([5])
    assert emit_support(out, 1, prefix, 1, 6, -1, -1) == 2
    assert emit_path(out, 1, prefix, np.array([0, 0]), 0) == 2
    assert (out == -9).all()


def test_a_path_names_what_was_chosen():
    out = blank(1, 3)
    assert emit_path(out, 0, np.array([10, 11, 12, 13]), np.array([0, 3, 1]), 1) == 1
    assert out.tolist() == [[10, 13, -1]]


@pytest.mark.parametrize("missing", range(5))
def test_supersets_are_all_combinations(missing):
    candidates = np.array([3, 1, 4, 15, 9])
    out = blank(20, 7)
    count = emit_supersets(out, 0, np.array([100, 101]), 2, candidates, 1, 5, missing)
    wanted = [(100, 101, *rest) for rest in combinations(candidates[1:].tolist(), missing)]
    assert [tuple(int(i) for i in row if i >= 0) for row in out[:count]] == wanted
    assert count == comb(4, missing)
    assert (out[count:] == -9).all()


def test_too_few_candidates_make_none_and_too_many_stop_one_past_the_list():
    candidates = np.arange(10)
    assert emit_supersets(blank(5, 4), 2, np.array([1]), 1, candidates, 8, 10, 3) == 2
    out = blank(4, 4)
    assert emit_supersets(out, 0, np.array([77]), 1, candidates, 0, 10, 3) == 5
    assert out[-1].tolist() == [77, 0, 1, 5]


@pytest.mark.parametrize("top", [0, 1, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_the_largest_are_kept_in_order_with_ties(top, seed):
    values = np.random.default_rng(seed).integers(0, 4, size=7) / 2.0
    best = np.zeros(max(top, 1))
    for value in values:
        keep_largest(best, top, value)
    wanted = sorted(values.tolist(), reverse=True)[:top]
    assert best[:top].tolist() == wanted + [0.0] * (top - len(wanted))
    for skip in (0, 3, -1):
        row = np.append(values, 100.0)  # beyond the count
        kept = [value for place, value in enumerate(values) if place != skip]
        assert top_sum(row, 7, skip, top) == pytest.approx(sum(sorted(kept, reverse=True)[:top]))


def test_centres_come_first_the_heaviest_at_the_head():
    stars = np.array([0.2, 1.0 - CENTRE_SLACK / 2, np.inf, 0.999, 3.0, 3.0])
    order, centres = centres_first(stars)
    assert order.tolist() == [2, 4, 5, 1, 3, 0]  # equal ones in the order they had
    assert centres == 4
    assert centres_first(np.zeros(0))[1] == 0
