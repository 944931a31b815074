"""What may be promised about a whole data set: exact tests on counts, and nothing about models or
files.

- how many are wrong, from a draw of fixed size: `bound`, `rate_bound`; inside strata:
  `stratified_bound`, `stratified_risk`;
- the same, looked at after every draw: `AuditSequence`, `sequential_tail`;
- whom to believe where answers differ, how many doubtful rows to look at, and when to stop looking
  and fixing: `Believed`, `plan_cut`, `boundary`;
- the cheapest of many policies that is proven to keep its risk, with the whole record: `choose`,
  `assess`; which promise, which denominator, which order of tests: `Statement`, `Among`, `Limit`,
  `Stream`;
- ladders on recorded answers: `lead_family`, `replay`, `dilute`; an order of their tests without
  gold: `fit_crowd`, `fronts`, `staggered`;
- what a pilot could prove and cost, before anything is spent: `forecast`, `prospects_of`,
  `least_labels`, `first_look`, `pilot_size`.

Documents are proved again by `rrf_design.checker`, which shares nothing with this package.
"""

from __future__ import annotations

from rrf_design.risk._cascades import (
    UNREADABLE,
    Crowd,
    Gate,
    Ladder,
    Last,
    Replay,
    dilute,
    disputed,
    fit_crowd,
    lead_family,
    replay,
)
from rrf_design.risk.belief import Believed, Picks
from rrf_design.risk.boundary import Boundary, boundary
from rrf_design.risk.counts import bound, rate_bound
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
from rrf_design.risk.peel import Cut, ErrorGuess, plan_cut
from rrf_design.risk.policies import (
    AssessedPolicy,
    Policy,
    PolicyChoice,
    Stream,
    Tally,
    assess,
    choose,
    fixed_sequence,
    holm,
)
from rrf_design.risk.sequences import CLEAN, UNIFORM, AuditSequence, sequential_tail
from rrf_design.risk.statements import Among, Limit, Scope, Statement
from rrf_design.risk.strata import Stratum, draw_order, stratified_bound, stratified_order, stratified_risk

__all__ = [
    "CLEAN",
    "UNIFORM",
    "UNREADABLE",
    "Among",
    "AssessedPolicy",
    "AuditSequence",
    "Believed",
    "Boundary",
    "Crowd",
    "Cut",
    "ErrorGuess",
    "Forecast",
    "Gate",
    "Ladder",
    "Last",
    "Limit",
    "Picks",
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
    "best_risk",
    "bound",
    "boundary",
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
    "plan_cut",
    "prospects_of",
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
