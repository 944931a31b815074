"""The planner comparison at a tiny size: counterexamples fool whom the paper says, and no planner passes the bound."""

from __future__ import annotations

import json

from scenarios import ConditionStatus, Context, Done
from scenarios.planner_comparison import METHODS, SCENARIO, counterexample, random_field


def test_tiny_run(tmp_path):
    changes = {"nodes": 7, "chords": 6, "draws": 1, "cells": [[1, 8]]}
    context = Context(SCENARIO.parameters(quick=True, changes=changes), True, tmp_path)
    done = [Done(part, json.loads(json.dumps(SCENARIO.run(context, part))), 0.0) for part in SCENARIO.parts(context)]
    outcome = SCENARIO.report(context, done)
    SCENARIO.check(outcome)
    assert {verdict.status for verdict in outcome.verdicts} == {ConditionStatus.MET}
    assert len(outcome.tables[0].rows) == len(METHODS)


def test_fields_are_as_described():
    problem = random_field(3, nodes=24, chords=40, anchors=24, k=2)
    assert len(problem.on_sale) == 64
    assert sum(block.owned for block in problem.blocks) == 15
    assert {problem.block_by_id[name].cost for name in problem.on_sale} == {1.0, 2.0, 3.0}
    assert counterexample("six pairs").margin().value == 0.0
