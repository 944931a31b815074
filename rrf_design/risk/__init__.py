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

from rrf_design.risk._arguments import choice as choice
from rrf_design.risk._arguments import share as share
from rrf_design.risk._arguments import whole as whole
from rrf_design.risk._belief import Believed, Picks
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
from rrf_design.risk._counts import BinomialTail as BinomialTail
from rrf_design.risk._counts import PValue as PValue
from rrf_design.risk._counts import bound, rate_bound
from rrf_design.risk._forecasts import AGREED_WRONG as AGREED_WRONG
from rrf_design.risk._forecasts import DISCOUNT as DISCOUNT
from rrf_design.risk._forecasts import FORECAST_ERROR as FORECAST_ERROR
from rrf_design.risk._forecasts import (
    Forecast,
    Prospect,
    attained_size,
    best_risk,
    first_look,
    forecast,
    front,
    fronts,
    half_depth,
    least_labels,
    passing_count,
    pilot_size,
    prospects_of,
    staggered,
    strides,
    trusted_risk,
)
from rrf_design.risk._peel import LARGEST as LARGEST
from rrf_design.risk._peel import Boundary, Cut, ErrorGuess, boundary, plan_cut
from rrf_design.risk._policies import (
    AssessedPolicy,
    Policy,
    PolicyChoice,
    Tally,
    assess,
    choose,
    fixed_sequence,
    holm,
)
from rrf_design.risk._policies import Counted as Counted
from rrf_design.risk._policies import decide as decide
from rrf_design.risk._policies import weigh as weigh
from rrf_design.risk._sequences import CLEAN, UNIFORM, AuditSequence, sequential_tail
from rrf_design.risk._statements import Among, Limit, Scope, Statement, Stream
from rrf_design.risk._statements import ClaimAndGate as ClaimAndGate
from rrf_design.risk._statements import evidence as evidence
from rrf_design.risk._strata import Stratum, draw_order, stratified_bound, stratified_order, stratified_risk
from rrf_design.risk._strata import binomial_is_heaviest as binomial_is_heaviest

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
