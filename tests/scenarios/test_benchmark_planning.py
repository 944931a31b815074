"""The planning benchmark at a tiny size: it runs through, and a tiny size judges no speed."""

from __future__ import annotations

import json

from scenarios import ConditionStatus, Context, Done
from scenarios.benchmark_planning import SCENARIO, sparse_field
from scenarios.larger_plans import larger_field


def test_tiny_run(tmp_path):
    changes = {
        "nodes": 7,
        "chords": 6,
        "large": 8,
        "sparse": 700,
        "purchases": 3,
        "items": 10,
        "larger-share": 0.03,
        "larger-seconds": 2.0,
    }
    context = Context(SCENARIO.parameters(quick=True, changes=changes), True, tmp_path)
    done = [Done(part, json.loads(json.dumps(SCENARIO.run(context, part))), 0.0) for part in SCENARIO.parts(context)]
    outcome = SCENARIO.report(context, done)
    SCENARIO.check(outcome)
    assert {verdict.status for verdict in outcome.verdicts} == {ConditionStatus.NOT_JUDGED}


def test_the_sparse_field_has_what_it_says():
    problem = sparse_field(300)
    assert len(problem.on_sale) == 300
    assert problem.k == 1


def test_the_larger_field_has_what_it_says():
    problem = larger_field(1, 200, k=1)
    assert len(problem.blocks) == 799
    assert len(problem.on_sale) == 66 + 400 + 200
    assert {node.dim for node in larger_field(1, 24, k=2, dim=3).nodes} == {3}
