"""Promises about a whole data set, without guessing k: pilot, run under a policy, audit, and records that anybody can redo.

drawing          which items are looked at: from a seed and the population's digest; draws_beside: others of the same table, in the same folder
truths, reviews  what is right: gold, or people; leaks: truths that questions already show
sheets           answers side by side, carried to the delivered value
family, playing  the policies, and what each does with an item; rungs: from the planner's frontier; decisions: by the product's own verdicts
checks           what machines check, as rungs
buying           answers from models, through the product's own loop; recalling: those that made an order, in the run; growing: a pilot that stops when more would not pay
pilot_plans      what a pilot will do; ordering: the order of its tests; forecasting: before anything is spent
piloting         play, test, choose; looks: only once; stronger: what a stronger promise would take
measuring        what users otherwise guess: judging (judges), positions (orders), radii, relation_faults; certifying: k in a certificate
policy_documents the policy as a document; policy_forms: every key and word of it; policy_proofs: everything in it redone
running          the policy on the other items; climbing: bought live, rung after rung; policy_rows: the table's rows; run_sentences: what may be said of it; outcomes_again: do the pilot's still come out as they did?
auditing         delivered items drawn and checked; delivered_tables: what was delivered; audited_files: is this file what was audited?

The statistics are `rrf_design.risk`, which knows nothing of any of this.
"""

from __future__ import annotations

from rrf_design.promises.auditing import audit_document, draw_audit, prove_audit_document
from rrf_design.promises.buying import LiveModels
from rrf_design.promises.delivered_tables import read_delivered
from rrf_design.promises.family import CHECK_EVERYTHING, LadderPolicy
from rrf_design.promises.forecasting import forecast_pilot
from rrf_design.promises.pilot_plans import PilotPlan, PilotSettings, plan_pilot
from rrf_design.promises.piloting import PilotResult, gold_truths, run_pilot
from rrf_design.promises.playing import play
from rrf_design.promises.policy_documents import policy_document
from rrf_design.promises.policy_proofs import prove_policy
from rrf_design.promises.running import PolicyRun, run_policy
from rrf_design.promises.sheets import AnswerSheet, read_sheet
from rrf_design.promises.truths import GoldRule, Truth

__all__ = [
    "CHECK_EVERYTHING",
    "AnswerSheet",
    "GoldRule",
    "LadderPolicy",
    "LiveModels",
    "PilotPlan",
    "PilotResult",
    "PilotSettings",
    "PolicyRun",
    "Truth",
    "audit_document",
    "draw_audit",
    "forecast_pilot",
    "gold_truths",
    "plan_pilot",
    "play",
    "policy_document",
    "prove_audit_document",
    "prove_policy",
    "read_delivered",
    "read_sheet",
    "run_pilot",
    "run_policy",
]
