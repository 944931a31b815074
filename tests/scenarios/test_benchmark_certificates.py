"""The certificate benchmark at a tiny size: every certificate verifies, and a tiny size judges no speed."""

from __future__ import annotations

import json

from scenarios import ConditionStatus, Context, Done
from scenarios.benchmark_certificates import SCENARIO


def test_tiny_run(tmp_path):
    wide = [{"rows": 10, "nodes": 12, "size": 8}, {"nodes": 12, "degree": 3, "size": 4, "unit": 2, "deliver": 3}]
    changes = {"fields": [["dense", 6, 1, 1], ["graph", 7, 1, 1]], "large": 20, "timed": [["graph", 50]], "wide": wide}
    context = Context(SCENARIO.parameters(quick=True, changes=changes), True, tmp_path)
    done = [Done(part, json.loads(json.dumps(SCENARIO.run(context, part))), 0.0) for part in SCENARIO.parts(context)]
    outcome = SCENARIO.report(context, done)
    SCENARIO.check(outcome)
    assert {verdict.key: verdict.status for verdict in outcome.verdicts} == {
        "dense": ConditionStatus.NOT_JUDGED,
        "graph": ConditionStatus.NOT_JUDGED,
        "large": ConditionStatus.NOT_JUDGED,
        "rigour": ConditionStatus.NOT_JUDGED,
        "supports": ConditionStatus.NOT_JUDGED,
        "valid": ConditionStatus.MET,
    }
    assert len(outcome.tables[1].rows) == 2
    wide_rows = [dict(zip(outcome.tables[2].columns, row, strict=True)) for row in outcome.tables[2].rows]
    assert [row["verify_says"] for row in wide_rows] == ["every claim was re-proved"] * 2
    assert wide_rows[1]["field"] == "graph of 12 nodes, degree 3, one value in 3 delivered, units of 2"


def test_a_refused_certificate_is_counted(tmp_path):
    context = Context(SCENARIO.parameters(quick=True), True, tmp_path)
    row = {"nodes": 4, "dim": 1, "k": 1, "rung": "exact", "solve_seconds": 1.0, "verify_seconds": 7.0, "ratio": 7.0}
    row = {**row, "lowest": 7.0, "highest": 7.0}
    large = {"kind": "large", "nodes": 9, "k": 1, "valid": True, "certify_seconds": 1.0, "verify_seconds": 99.0}
    cost = {"field": "dense 9", "cost": 0.5, "proofs": 1.0, "seconds": 3.0, "status": "exact"}
    done = [
        Done({"kind": "dense"}, {**row, "kind": "dense", "valid": False}, 0.0),
        Done({"kind": "graph"}, {**row, "kind": "graph", "valid": True}, 0.0),
        Done({"kind": "large"}, large, 0.0),
        Done({"kind": "rigour"}, cost, 0.0),
        Done({"kind": "wide"}, {**row, "field": "dense", "valid": True}, 0.0),
    ]
    verdicts = {verdict.key: verdict.status for verdict in SCENARIO.report(context, done).verdicts}
    assert verdicts["valid"] is ConditionStatus.VIOLATED
    full = SCENARIO.report(Context(SCENARIO.parameters(), False, tmp_path), done)
    assert all(verdict.status is ConditionStatus.VIOLATED for verdict in full.verdicts)
