"""Every kernel, asked which supports are not above θ, must name exactly those that brute force
names.
"""

from __future__ import annotations

import numpy as np
import pytest
from random_fields import brute, graph_field

from solvers._components import _dense_part, _sparse_part
from solvers._gram import make_field


def found_by(part, theta, limit=100_000):
    order, centres = part.centres(theta)
    done, rows = part.scan(theta, order, np.arange(centres), np.zeros(1, np.int64), limit)
    assert done == centres
    return {tuple(sorted(int(i) for i in row if i >= 0)) for row in rows}


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_kernels_name_exactly_the_harmful_supports(dims, size, share):
    rng = np.random.default_rng([dims, size, int(share * 100)])
    n = 8 if dims < 3 else 7
    B = rng.standard_normal((n * dims + 2, n * dims))
    field = make_field(B, [dims] * n)
    values = brute(field, size, 0.0, connected=False)[1]
    ranked = sorted(values.values())
    theta = 0.999 * ranked[0] if share == 0 else ranked[-1] * 1.1 if share == 1 else ranked[int(share * len(ranked))]
    expected = {s for s, value in values.items() if value < theta}
    nodes = np.arange(n)
    shrink = field.shrink(size)
    near = {s for s, value in values.items() if abs(value - theta) < 1e-9}  # rounding may report the boundary itself
    for part in (_dense_part(field, nodes, size, shrink), _sparse_part(field, nodes, [nodes], size, shrink)):
        assert found_by(part, theta) - near == expected - near, part.kind


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_sparse_kernels_look_at_connected_supports_and_whole_small_components(dims, seed):
    rng = np.random.default_rng(seed)
    size = 3 + seed % 3
    B = graph_field(10, rng, sizes=[dims], degree=1.6, anchors=0.2)
    field = make_field(B, [dims] * 10)
    theta = 0.7
    expected, _ = brute(field, size, theta, connected=True)
    for component in field.components:
        if len(component) < size:
            columns = field.columns_of(component)
            if np.linalg.eigvalsh(field.gram.toarray()[np.ix_(columns, columns)])[0] < theta:
                expected.add(tuple(int(i) for i in component))
    part = _sparse_part(field, np.arange(10), list(field.components), size, field.shrink(size))
    assert found_by(part, theta) == expected


def test_mixed_dimensions_in_every_kernel():
    rng = np.random.default_rng(4)
    sizes = [1, 3, 2, 1, 2]
    field = make_field(rng.standard_normal((12, 9)), sizes)
    nodes = np.arange(5)
    for size in (2, 3, 4):
        values = brute(field, size, 0.0, connected=False)[1]
        theta = sorted(values.values())[len(values) // 3]
        expected = {s for s, value in values.items() if value < theta * (1 - 1e-9)}
        for part in (
            _dense_part(field, nodes, size, field.shrink(size)),
            _sparse_part(field, nodes, [nodes], size, field.shrink(size)),
        ):
            assert found_by(part, theta * (1 - 1e-9)) == expected
