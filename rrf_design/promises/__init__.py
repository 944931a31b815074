"""Promises about a whole data set, without guessing k: pilot, run under a policy, audit, and
records that anybody can redo.

pilot_design, forecast     what a pilot will do; what sizes of it could prove and cost
pass_rows                  the rows of one pass, and what it is expected to take
policies, play             the policies that it tests, and what each does with an item
pilot_order                the order of the tests, fixed before any truth is seen
pilot, reuse               play, test, choose; what an earlier look or the run takes over from it
measure, measure_relations what users otherwise guess; judging: judges
policy_document            the policy as a document; `rrf_design.checker.promises` proves it again
running                    the policy on the other items, its rows, what may be said
audits, delivered_tables   delivered items drawn and checked
premise                    k in a certificate; truths: what is right, from gold or people
sheets, decisions, checks, buying     answers, verdicts, machine checks and purchases behind all

The statistics are `rrf_design.risk`, which knows nothing of any of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rrf_design._lazy import lazy_names

_HOME = {
    "rrf_design.checker.promises": "prove_audit prove_policy",
    "rrf_design.promises._audits": "Audit audit audit_document draw_audit",
    "rrf_design.promises._buying": "LiveModels NOTHING",
    "rrf_design.promises._delivered_tables": "check_delivered compared read_delivered",
    "rrf_design.promises._delivery": "DeliverySession Look TestedDelivery answered cost_words deliver money read_cells",
    "rrf_design.promises._forecast": "NO_PILOT forecast_pilot in_words",
    "rrf_design.promises._judging": "between",
    "rrf_design.promises._one_pass": "OnePass",
    "rrf_design.promises._pass_rows": "forecast_delivery",
    "rrf_design.promises._pilot": "Pilot pilot pilot_settings",
    "rrf_design.promises._pilot_analysis": "PilotResult gold_truths run_pilot",
    "rrf_design.promises._pilot_design": "PilotPlan PilotSettings plan_pilot",
    "rrf_design.promises._play": "play",
    "rrf_design.promises._policies": "CHECK_EVERYTHING CascadePolicy LastStage escalations_of family_of",
    "rrf_design.promises._policy_document": "policy_document",
    "rrf_design.promises._premise": "premise_summary with_pilot with_premise",
    "rrf_design.promises._running": "PolicyRun run_policy",
    "rrf_design.promises._sheets": "AnswerSheet read_sheet",
    "rrf_design.promises._truths": "GoldRule Truth check_review_file joined_reviews read_reviews write_reviews",
}

__all__ = [
    "CHECK_EVERYTHING",
    "AnswerSheet",
    "Audit",
    "CascadePolicy",
    "DeliverySession",
    "GoldRule",
    "LiveModels",
    "Look",
    "OnePass",
    "Pilot",
    "PilotPlan",
    "PilotResult",
    "PilotSettings",
    "PolicyRun",
    "TestedDelivery",
    "Truth",
    "answered",
    "audit",
    "audit_document",
    "deliver",
    "draw_audit",
    "forecast_delivery",
    "forecast_pilot",
    "gold_truths",
    "money",
    "pilot",
    "pilot_settings",
    "plan_pilot",
    "play",
    "policy_document",
    "prove_audit",
    "prove_policy",
    "read_cells",
    "read_delivered",
    "read_sheet",
    "run_pilot",
    "run_policy",
]

if TYPE_CHECKING:
    from rrf_design.checker.promises import prove_audit, prove_policy
    from rrf_design.promises._audits import Audit, audit, audit_document, draw_audit
    from rrf_design.promises._buying import NOTHING as NOTHING
    from rrf_design.promises._buying import LiveModels
    from rrf_design.promises._delivered_tables import check_delivered as check_delivered
    from rrf_design.promises._delivered_tables import compared as compared
    from rrf_design.promises._delivered_tables import read_delivered
    from rrf_design.promises._delivery import (
        DeliverySession,
        Look,
        TestedDelivery,
        answered,
        deliver,
        money,
        read_cells,
    )
    from rrf_design.promises._delivery import cost_words as cost_words
    from rrf_design.promises._forecast import NO_PILOT as NO_PILOT
    from rrf_design.promises._forecast import forecast_pilot
    from rrf_design.promises._forecast import in_words as in_words
    from rrf_design.promises._judging import between as between
    from rrf_design.promises._one_pass import OnePass
    from rrf_design.promises._pass_rows import forecast_delivery
    from rrf_design.promises._pilot import Pilot, pilot, pilot_settings
    from rrf_design.promises._pilot_analysis import PilotResult, gold_truths, run_pilot
    from rrf_design.promises._pilot_design import PilotPlan, PilotSettings, plan_pilot
    from rrf_design.promises._play import play
    from rrf_design.promises._policies import CHECK_EVERYTHING, CascadePolicy
    from rrf_design.promises._policies import LastStage as LastStage
    from rrf_design.promises._policies import escalations_of as escalations_of
    from rrf_design.promises._policies import family_of as family_of
    from rrf_design.promises._policy_document import policy_document
    from rrf_design.promises._premise import premise_summary as premise_summary
    from rrf_design.promises._premise import with_pilot as with_pilot
    from rrf_design.promises._premise import with_premise as with_premise
    from rrf_design.promises._running import PolicyRun, run_policy
    from rrf_design.promises._sheets import AnswerSheet, read_sheet
    from rrf_design.promises._truths import GoldRule, Truth
    from rrf_design.promises._truths import check_review_file as check_review_file
    from rrf_design.promises._truths import joined_reviews as joined_reviews
    from rrf_design.promises._truths import read_reviews as read_reviews
    from rrf_design.promises._truths import write_reviews as write_reviews

__getattr__, __dir__ = lazy_names(__name__, _HOME)
