"""The fields of the benchmark for large supports, and what is said about them."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.large_supports import FAMILIES, large_rows, large_verdicts, measured, regular_graph, small_field


def test_a_regular_graph_has_its_relations_and_anchors() -> None:
    plain = regular_graph(20, 3, seed=1)
    assert plain.shape == (30 + 2, 20)
    assert np.allclose(plain[:30].sum(axis=1), 0.0)
    assert np.allclose(plain[30:].sum(axis=1), 1.0)
    typed = regular_graph(20, 3, dim=2, seed=1)
    assert typed.shape == (2 * (30 + 2), 40)
    assert np.allclose((typed @ typed.T).diagonal()[:60], 2.0)


@pytest.mark.parametrize("seed", range(len(FAMILIES)))
def test_small_fields_are_small_and_repeatable(seed: int) -> None:
    matrix = small_field(seed)
    assert matrix.shape[1] in (9, 10)
    assert np.array_equal(matrix, small_field(seed))


def test_an_instance_is_measured_and_judged() -> None:
    instance = {"kind": "large", "nodes": 12, "degree": 3, "size": 7, "limit": 60.0, "unlimited": True}
    row = measured(instance, regular_graph(12, 3))
    assert row["limited"]["status"] == row["before"]["status"] == "exact"
    verdicts = {verdict.key: verdict for verdict in large_verdicts([row], quick=True)}
    assert verdicts["large"].status == "met"
    table = large_rows([row])
    assert table[0]["lower_by_upper"] == pytest.approx(1.0)
    wrong = {**row, "before": {**row["before"], "gamma": 2.0 * row["before"]["gamma"]}}
    late = {**row, "limited": {**row["limited"], "status": "bounded"}}
    for other in (wrong, late):
        assert large_verdicts([other], quick=True)[0].status == "violated"


def test_what_is_not_proven_in_time_is_called_no_bound() -> None:
    instance = {"nodes": 20, "degree": 3, "size": 8, "limit": 30.0, "exact": False, "oracle": False}
    row = measured(instance, regular_graph(20, 3))
    assert "before" not in row
    assert large_rows([row])[0]["before_status"] is None
    unproven = {**row, "limited": {**row["limited"], "status": "bounded", "share": 0.0}}
    bounded = {**row, "limited": {**row["limited"], "status": "bounded", "share": 0.25}}
    assert [shown["status"] for shown in large_rows([row, unproven, bounded])] == ["exact", "no bound", "bounded"]
    assert large_verdicts([row, unproven], quick=True)[0].status == "met"
