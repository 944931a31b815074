"""The search over a whole field: full lists, falling thresholds, and the bound that needs no
search.
"""

from __future__ import annotations

import numpy as np
from random_fields import brute

from solvers._gram import make_field
from solvers._search import Search, _gershgorin


def test_a_full_list_is_reported_as_incomplete():
    B = np.random.default_rng(1).standard_normal((14, 12))
    search = Search(make_field(B, None), 4)
    found = search.below(1e6, limit=10)
    assert not found.complete


def test_adapting_ends_at_the_minimum():
    B = np.random.default_rng(2).standard_normal((14, 12))
    field = make_field(B, None)
    found = Search(field, 4).below(1e6, limit=10, adapt=True)
    _, values = brute(field, 4, 0.0, connected=False)
    assert found.complete
    assert min(values, key=values.__getitem__) in found.supports


def test_gershgorin_needs_no_search_and_stays_below():
    B = np.random.default_rng(3).standard_normal((200, 12))
    field = make_field(B, None)
    _, values = brute(field, 3, 0.0, connected=False)
    bound = _gershgorin(Search(field, 3))
    assert 0 < bound <= min(values.values())
