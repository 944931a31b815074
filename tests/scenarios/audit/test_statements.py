from __future__ import annotations

from scenarios.audit import statements


def test_every_statement_is_decided_by_its_rows() -> None:
    for slip in statements.SLIPS:
        rows = slip.compute()
        met, seen = slip.judge(rows)
        assert met, seen
        assert slip.note(rows)
        assert slip.table(rows).rows
        assert slip.verdict(rows).key == slip.expectation.key


def test_a_statement_that_held_would_be_said_to_hold() -> None:
    anchors = statements.anchored_designs()
    raised = [{**row, "with_anchor": row["without"] + 1.0} for row in anchors]
    assert not statements._judge_anchors(raised)[0]
    ordered = [{**row, "larger_margin_has_larger_error": 0} for row in statements.order_of_errors()]
    assert not statements._judge_order(ordered)[0]
    between = [{**row, "margin": row["independent"]} for row in statements.correlated_copies()]
    assert not statements._judge_copies(between)[0]
    units = statements.change_of_units()
    assert not statements._judge_units([{**row, "gamma_1": units[0]["gamma_1"]} for row in units])[0]
