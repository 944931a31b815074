"""Looks of a growing pilot, and when more would not pay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rrf_design.promises import PilotSettings
from rrf_design.promises._pilot_analysis import stages, why_stop


def test_looks_grow_from_what_could_prove_the_risk() -> None:
    settings = PilotSettings(300, 0.05, sequential=True)
    sizes = [look.labels for look in stages(settings)]
    assert sizes[0] == 82  # none wrong, tested at every moment; 59 would do for one look
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 300
    assert [look.labels for look in stages(settings, already=200)] == [200, 300]
    assert stages(replace(settings, sequential=False)) == [replace(settings, sequential=False)]
    assert [look.labels for look in stages(replace(settings, labels=82))] == [82]


def test_it_stops_when_more_labels_cost_more_than_they_save(make_world: Any) -> None:
    clean = make_world(items=200, wrong=0.0).pilot(PilotSettings(60, 0.1, sequential=True))
    assert clean.chosen is not None
    assert why_stop(clean, 20) is not None
    bad = make_world(items=200, wrong=0.0, together=0.4).pilot(PilotSettings(60, 0.1, sequential=True))
    assert bad.chosen is None
    words = why_stop(bad, 20)  # nothing looks good: checking everything is the answer
    assert words is not None
    assert "check everything" in words
    open_case = make_world(items=200, wrong=0.04).pilot(PilotSettings(42, 0.1, sequential=True))
    assert open_case.chosen is not None or why_stop(open_case, 1) is None
