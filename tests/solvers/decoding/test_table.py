"""A batch of syndromes by the table against one search each."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.decoding import SupportDecoder, SupportTable, table_fits


@pytest.mark.parametrize("known", [(), (1,)])
@pytest.mark.parametrize("dims", [[1] * 7, [2, 1, 3, 1, 2]])
def test_agrees_with_the_search(known, dims):
    rng = np.random.default_rng(len(dims) + len(known))
    B = rng.integers(-1, 2, size=(9, sum(dims))).astype(float)
    starts = np.cumsum([0, *dims])
    syndromes = []
    for _ in range(60):
        e = np.zeros(sum(dims))
        for i in rng.choice(len(dims), int(rng.integers(0, 4)), replace=False):
            e[starts[i] : starts[i + 1]] = rng.normal(size=dims[i])
        syndromes.append(B @ e + 0.02 * rng.normal(size=9))
    for epsilon in (0.1, 0.3):
        batch = SupportTable(B, dims, k=2, known=known).decode(np.array(syndromes), epsilon=epsilon)
        decoder = SupportDecoder(B, dims, known=known)
        for i, s in enumerate(syndromes):
            single = decoder.decode(s, k=2, epsilon=epsilon, limit=0)
            assert batch.explained[i] == single.explained
            assert batch.residual[i] == pytest.approx(single.residual, abs=1e-9)
            listed = {batch.supports[j] for j in np.flatnonzero(batch.minimal[i])}
            assert listed == {item.support for item in single.explanations}
            if single.unique:
                assert batch.supports[batch.chosen[i]] == single.support
                np.testing.assert_allclose(B @ batch.error[i], B @ single.error, atol=1e-9)


def test_too_many_supports_are_refused():
    assert not table_fits(200, 2)
    with pytest.raises(ValueError, match="use SupportDecoder"):
        SupportTable(np.zeros((1, 200)), k=2)
