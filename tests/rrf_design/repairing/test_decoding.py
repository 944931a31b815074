"""What a design knows once for all its fields."""

from __future__ import annotations

import pytest

from rrf_design.repairing.decoding import Decoding


def test_margin_with_and_without_erasures(equality):
    operator = equality("complete").operator()
    assert Decoding(operator, k=1).facts.gamma == pytest.approx(equality("complete").margin().value)
    erased = Decoding(operator, k=1, erased=(2,)).facts
    assert 0 < erased.lower <= erased.gamma < equality("complete").margin().value
    assert erased.method.startswith("erasures")


def test_undetermined_nodes(equality):
    design = Decoding(equality("pairs").operator(), k=1)
    assert design.undetermined((0,)) == frozenset()
    assert design.undetermined((0, 1)) == {0, 1}
    assert design.undetermined((0, 1, 2)) == {0, 1}


def test_unseen_errors(equality):
    triangle = Decoding(equality("triangle").operator(), k=1)
    assert triangle.unseen_nodes == (3,)
    assert [item.support for item in triangle.unseen(())] == [(3,)]
    assert triangle.unseen((0,)) == ()  # the budget is spent
    pairs = Decoding(equality("pairs").operator(), k=2)
    assert pairs.unseen(())[0].support in ((0, 1), (2, 3))
    assert set(pairs.unseen((0,))[0].support) == {0, 1}
    assert Decoding(equality("complete").operator(), k=1).unseen(()) == ()
