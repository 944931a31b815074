"""The repair benchmark at a tiny size: both sides agree, and a tiny size judges no speed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from scenarios import ConditionStatus, Context, Done
from scenarios.benchmark_repair import FAMILIES, SCENARIO, Loop, sample
from solvers.decoding import decode_support


@pytest.mark.parametrize("family", FAMILIES)
def test_loop_and_search_find_the_planted_error(family):
    instance = sample(family, 16, seed=3)
    dense = instance.matrix if isinstance(instance.matrix, np.ndarray) else instance.matrix.toarray()
    groups = np.split(np.arange(dense.shape[1]), 16)
    assert Loop(dense, groups, instance.syndrome, 1)() == instance.wrong
    found = decode_support(instance.matrix, instance.dims, syndrome=instance.syndrome, k=2, epsilon=instance.epsilon)
    assert found.support == instance.wrong


def test_tiny_run(tmp_path):
    changes = {"nodes": 12, "large": 20, "fields": 40, "strides": dict.fromkeys(FAMILIES, 1)}
    context = Context(SCENARIO.parameters(quick=True, changes=changes), True, tmp_path)
    done = [Done(part, json.loads(json.dumps(SCENARIO.run(context, part))), 0.0) for part in SCENARIO.parts(context)]
    outcome = SCENARIO.report(context, done)
    SCENARIO.check(outcome)
    assert {verdict.key: verdict.status for verdict in outcome.verdicts} == {
        "graph": ConditionStatus.NOT_JUDGED,
        "typed": ConditionStatus.NOT_JUDGED,
        "dense": ConditionStatus.NOT_JUDGED,
        "right": ConditionStatus.MET,
    }
    assert len(outcome.tables[1].rows) == len(FAMILIES)
