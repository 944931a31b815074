"""How sure a repair is: one place that compares what a decoder proved with the margin, ε and k.

The stability theorem speaks of any estimate, whatever found it: if the truth has at most k wrong nodes and residual
at most ε, every ê with at most k wrong nodes and residual at most ε is within 2ε/γ_k of it. With erased nodes R the
margin is γ(k | R) (`solvers.decoding.erasures`). At γ = 0 nothing is promised uniformly, but these data may still have
one explanation only: when one minimal support S explains them and no error that contains S can move unseen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rrf_design.repair.contract import Candidate, Certainty, Outcome, Task
from rrf_design.repair.design import Design


@dataclass(frozen=True, slots=True)
class Verdict:
    certainty: Certainty
    reason: str
    error_bound: float | None
    guaranteed: bool
    hidden: tuple[Candidate, ...] = ()
    """Errors that change nothing measured and could be added to the answer within the budget."""


def judge(task: Task, outcome: Outcome, design: Design, *, support: tuple[int, ...], residual: float) -> Verdict:
    """Certainty, its reason, and the error bound that holds."""
    facts = design.facts
    # A support that was proved to explain is not refused because its residual was rounded once more.
    radius = (task.epsilon + task.tolerance) * (1.0 + 1e-9 * bool(outcome.proved and outcome.explanations))
    unexplained = residual > radius
    k, many = task.k, len(outcome.explanations)
    if outcome.heuristic:
        return Verdict(Certainty.HEURISTIC, f"{outcome.method} promises nothing about wrong answers.", None, False)
    if outcome.edge:
        reason = f"the residual {residual:.6g} is ε = {task.epsilon:g} to within rounding, so floats can't decide."
        return Verdict(Certainty.UNDECIDED, reason, None, False)
    if unexplained and outcome.undecided:
        return Verdict(Certainty.UNDECIDED, _open_sets(task, outcome), None, False)
    if unexplained and not outcome.complete:
        return Verdict(Certainty.UNDECIDED, "a limit ended the search before an explanation was found.", None, False)
    if unexplained:
        reason = (
            f"no error on at most {_nodes(k)} leaves a residual within ε = {task.epsilon:g} (the least is"
            f" {residual:.4g}): more answers are wrong than k = {k}, an anchor or relation is, or the noise is larger."
            if outcome.proved and not outcome.explanations
            else f"the answer found leaves a residual of {residual:.4g}, above ε = {task.epsilon:g}."
        )
        return Verdict(Certainty.UNEXPLAINED, reason, None, False)
    if len(support) > k:
        reason = f"the answer edits {len(support)} nodes, more than k = {k}, so the stability theorem does not apply."
        return Verdict(Certainty.HEURISTIC, reason, None, False)
    if facts.lower > 0.0:
        return _with_margin(task, outcome, facts.lower, facts.gamma, many)
    if task.erased and facts.others > 0.0:
        found = _with_margin(task, outcome, facts.others, facts.others, many, who="every answered node's value")
        return replace(found, error_bound=None, guaranteed=False)
    if facts.gamma > 0.0:
        reason = f"the margin was not proved positive (between 0 and {facts.gamma:.4g} when the search ended)."
        return Verdict(Certainty.UNDECIDED, reason, None, False)
    return _at_zero_margin(task, outcome, design, support)


def _with_margin(
    task: Task, outcome: Outcome, lower: float, gamma: float, many: int, *, who: str = "every repaired value"
) -> Verdict:
    bound = 2.0 * task.epsilon / lower
    rounding = 2.0 * task.tolerance / lower
    if rounding > max(1e-3 * bound, 1e-9 * max(1.0, float(np.abs(task.response).max(initial=0.0)))):
        bound += rounding  # the margin is so small that rounding alone moves the answer
    wanted = task.problem.delta
    sure = wanted is None or bound <= wanted
    missed = "" if sure else f" That misses the acceptable error δ = {wanted:g}."
    near = f"within {bound:.4g} of the truth{_in_metrics(task, bound)}" if bound else "the truth, up to rounding,"
    limits = f"{who} is {near} if at most"
    chance = "" if task.confidence is None else f", with probability at least {task.confidence:g}"
    limits += f" {task.k} answered node{'s are' if task.k > 1 else ' is'} wrong{chance} (γ = {gamma:.4g}).{missed}"
    if outcome.proved and outcome.undecided:
        return Verdict(Certainty.BOUNDED, f"{_open_sets(task, outcome)} But {limits}", bound, sure)
    if outcome.proved and outcome.complete and many == 1:
        found = len(outcome.explanations[0].support)
        lead = "the answers agree with everything that is measured, and "
        if found == task.k:
            lead = f"no other set of at most {_nodes(task.k)} explains the data, and "
        elif found:
            lead = f"every set of at most {_nodes(task.k)} that explains the data includes this one, and "
        return Verdict(Certainty.UNIQUE, lead + limits, bound, sure)
    if outcome.proved and many > 1:
        lead = f"{many} different sets of nodes explain the data within ε, so who is wrong is open, but "
        if any(item.edge for item in outcome.explanations):
            lead = f"{many} different sets of nodes explain the data within ε or on its edge, so who is wrong is open, but "
        return Verdict(Certainty.BOUNDED, lead + limits, bound, sure)
    return Verdict(Certainty.BOUNDED, limits, bound, sure)


def _at_zero_margin(task: Task, outcome: Outcome, design: Design, support: tuple[int, ...]) -> Verdict:
    names = task.operator.node_ids
    witness = ", ".join(names[i] for i in design.unseen_nodes)
    promise = f"the margin is zero: an error along the witness on {witness} changes nothing that is measured"
    if outcome.proved and len(outcome.explanations) > 1:
        sets = " or ".join(f"{{{', '.join(names[i] for i in item.support)}}}" for item in outcome.explanations[:6])
        reason = f"{promise}, and {len(outcome.explanations)} sets of nodes explain the data equally well: {sets}."
        return Verdict(Certainty.AMBIGUOUS, reason, None, False)
    hidden = design.unseen(support)
    if hidden:
        where = ", ".join(names[i] for i in hidden[0].support)
        reason = f"{promise}, and in these data {where} could be wrong as well without any trace."
        return Verdict(Certainty.AMBIGUOUS, reason, None, False, hidden)
    if outcome.undecided:
        return Verdict(Certainty.UNDECIDED, f"{promise}. {_open_sets(task, outcome)}", None, False)
    if outcome.proved and outcome.complete:
        reason = f"{promise}; these data have one explanation only, but this design can't promise that."
        return Verdict(Certainty.UNIQUE_HERE, reason, None, False)
    return Verdict(Certainty.AMBIGUOUS, promise + ".", None, False)


def own_units(task: Task, bound: float) -> dict[str, float]:
    """A bound on the length of the whole error, for each node in the units of its answers: h = L⁻ᵀh̃ in a metric LLᵀ."""
    factors = task.operator.fiber_factors
    inverse = {name: 1.0 / float(np.linalg.svd(factor, compute_uv=False)[-1]) for name, factor in factors.items()}
    return {name: bound * inverse.get(name, 1.0) for name in task.operator.node_ids}


def _in_metrics(task: Task, bound: float) -> str:
    """Where nodes have metrics, a length in them is not a length in the units of the answers: say both."""
    if not task.operator.fiber_factors:
        return ""
    own = own_units(task, bound)
    shown = ", ".join(f"{name} {own[name]:.4g}" for name in list(own)[:6])
    return f" in the nodes' metrics (in their own units: {shown}{', …' if len(own) > 6 else ''})"


def _open_sets(task: Task, outcome: Outcome) -> str:
    names = task.operator.node_ids
    sets = " or ".join(f"{{{', '.join(names[i] for i in part)}}}" for part in outcome.undecided[:6])
    return f"{sets} may explain the data too: the residual is ε to within what floats can tell."


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"
