"""What may be promised about a whole data set: exact tests on counts, and nothing about models or files.

bound, rate_bound                     how many are wrong, from a draw of fixed size
stratified_bound, stratified_risk     the same for draws inside strata
AuditSequence, sequential_tail        the same, looked at after every draw
choose, assess                        the cheapest of many policies that is proven to keep its risk; with the whole record
Statement, Among, Limit, Stream       which promise, which denominator, which order of tests
lead_family, replay, dilute           ladders on recorded answers
fit_crowd, fronts, staggered          an order of tests without gold
least_labels, first_look, pilot_size, forecast, prospects_of    what a pilot could prove and cost, before anything is spent
promise                               what may be said, with its denominator
prove_audit, prove_choice             every figure of a published record, redone from what it counted
"""

from __future__ import annotations

from rrf_design.risk.counts import bound, rate_bound
from rrf_design.risk.crowds import Crowd, disputed, fit_crowd
from rrf_design.risk.forecasts import (
    Forecast,
    Prospect,
    best_risk,
    first_look,
    forecast,
    least_labels,
    pilot_size,
    prospects_of,
)
from rrf_design.risk.ladders import UNREADABLE, Gate, Ladder, Last, Replay, dilute, lead_family, replay
from rrf_design.risk.orders import (
    attained_size,
    front,
    fronts,
    half_depth,
    passing_count,
    staggered,
    strides,
    trusted_risk,
)
from rrf_design.risk.policies import AssessedPolicy, Policy, PolicyChoice, Tally, assess, choose
from rrf_design.risk.procedures import Stream, fixed_sequence, holm
from rrf_design.risk.records import audit_record, choice_record, draw_order, prove_audit, prove_choice
from rrf_design.risk.sentences import promise
from rrf_design.risk.sequences import CLEAN, UNIFORM, AuditSequence, sequential_tail
from rrf_design.risk.statements import Among, Limit, Scope, Statement
from rrf_design.risk.strata import Stratum, stratified_bound, stratified_order, stratified_risk

__all__ = [
    "CLEAN",
    "UNIFORM",
    "UNREADABLE",
    "Among",
    "AssessedPolicy",
    "AuditSequence",
    "Crowd",
    "Forecast",
    "Gate",
    "Ladder",
    "Last",
    "Limit",
    "Policy",
    "PolicyChoice",
    "Prospect",
    "Replay",
    "Scope",
    "Statement",
    "Stratum",
    "Stream",
    "Tally",
    "assess",
    "attained_size",
    "audit_record",
    "best_risk",
    "bound",
    "choice_record",
    "choose",
    "dilute",
    "disputed",
    "draw_order",
    "first_look",
    "fit_crowd",
    "fixed_sequence",
    "forecast",
    "front",
    "fronts",
    "half_depth",
    "holm",
    "lead_family",
    "least_labels",
    "passing_count",
    "pilot_size",
    "promise",
    "prospects_of",
    "prove_audit",
    "prove_choice",
    "rate_bound",
    "replay",
    "sequential_tail",
    "staggered",
    "stratified_bound",
    "stratified_order",
    "stratified_risk",
    "strides",
    "trusted_risk",
]
