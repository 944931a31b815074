"""No repair says what the exact explanations belie; and the judge knows a false one."""

from __future__ import annotations

from dataclasses import replace

import pytest

import rrf_design as rrf
from rrf_design.verdict import Verdict
from scenarios.rival_repairs import DrawnRepair, _exact, faults, least, rival_case


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_nothing_false_is_said(first: int) -> None:
    for seed in range(first, first + 40):
        assert not rival_case(seed)["faults"], seed


def test_the_least_residual() -> None:
    square, error, unique = least([[_exact(1)], [_exact(1)]], [_exact(1), _exact(3)], width=1)
    assert (square, error, unique) == (2, [2], True)
    assert least([[_exact(1), _exact(1)]], [_exact(5)], width=2)[::2] == (0, False)
    assert least([], [], width=2) == (0, [0, 0], False)  # the only check is the one that is left out


def test_the_judge_knows_what_is_false() -> None:
    seen = set()
    for seed in range(0, 400, 2):
        drawn = DrawnRepair(seed)
        found = rrf.repair(drawn.problem, {n: [y] for n, y in zip(drawn.names, drawn.answers, strict=True)})
        if str(found.verdict) == "certified":
            moved = replace(found, repaired={n: [v[0] + 50.0] for n, v in found.repaired.items()})
            assert "certified, though an explanation is beyond the bound" in faults(drawn, moved)
            seen.add("certified")
        if str(found.verdict) == "contradicted":
            assert "certified, though nothing explains the data" in faults(
                drawn, replace(found, verdict=Verdict.CERTIFIED)
            )
            seen.add("contradicted")
        if len(seen) == 2:
            return
    raise AssertionError(f"only {seen} came up")
