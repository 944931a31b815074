from __future__ import annotations

from scenarios import judges_and_scatter as scenario


def test_small_fields_keep_to_their_definitions() -> None:
    assert sum(scenario.rates(seed)["wrong"] for seed in range(12)) == 0
    drawn = [scenario.scatter(seed, plans=seed < 1) for seed in range(10)]
    assert sum(row["wrong"] for row in drawn) == 0
    assert sum(row["outside"] for row in drawn) <= 0.05 * 10 * scenario.DRAWS
    assert sum(scenario.estimates(seed)["missed"] for seed in range(40)) <= 4


def test_units_and_plain_nodes_have_as_many_columns_and_groups() -> None:
    import numpy as np

    chords = [(0, 1), (1, 2), (0, 2)]
    united = scenario._united(chords, 3, np.random.default_rng(0))
    plain = scenario._plain(chords, 3, np.random.default_rng(0))
    assert united[0].shape[1] == plain[0].shape[1] == 6
    assert sorted(int(c) for group in united[1] for c in group) == list(range(6))
    assert len(united[1]) == len(plain[1]) == 3
    assert all(scenario.costs(20, 1, 0)[f"{name} / plain"] > 0 for name in ("units", "half", "everything"))
