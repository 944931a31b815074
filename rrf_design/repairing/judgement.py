"""How sure a repair is: one place that compares what a decoder proved with the margin, ε and k.

The stability theorem speaks of any estimate, whatever found it: if the truth has at most k wrong nodes and residual
at most ε, every ê with at most k wrong nodes and residual at most ε is within 2ε/γ_k of it. With erased nodes R the
margin is γ(k | R) (`solvers.decoding.erasures`). At γ = 0 nothing is promised uniformly, but these data may still have
one explanation only: when one minimal support S explains them and no error that contains S can move unseen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rrf_design.amounts import rounded_up
from rrf_design.noise import apart
from rrf_design.repairing.contract import Candidate, Certainty, DecoderOutcome, Task
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.uncertain import error_bound


@dataclass(frozen=True, slots=True)
class Assessment:
    certainty: Certainty
    reason: str
    error_bound: float | None
    hidden: tuple[Candidate, ...] = ()
    """Errors that change nothing measured and could be added to the answer within the budget."""


def judge(
    task: Task, outcome: DecoderOutcome, design: Decoding, *, support: tuple[int, ...], residual: float
) -> Assessment:
    """Certainty, its reason, and the error bound that holds."""
    facts = design.facts
    # A support that was proved to explain is not refused because its residual was rounded once more.
    radius = (task.epsilon + task.tolerance) * (1.0 + 1e-9 * bool(outcome.proved and outcome.explanations))
    unexplained = residual > radius
    k = task.k
    if outcome.heuristic:
        return Assessment(Certainty.HEURISTIC, f"{outcome.method} promises nothing about wrong answers.", None)
    if outcome.boundless:
        return Assessment(Certainty.UNDECIDED, f"{outcome.notes[-1]}.", None)
    if outcome.edge:
        reason = f"the residual {residual:.6g} is ε = {task.epsilon:g} to within rounding, so floats can't decide."
        return Assessment(Certainty.UNDECIDED, reason, None)
    if unexplained and outcome.undecided:
        return Assessment(Certainty.UNDECIDED, _open_sets(task, outcome), None)
    if unexplained and not outcome.complete:
        return Assessment(Certainty.UNDECIDED, "a limit ended the search before an explanation was found.", None)
    if unexplained:
        also = "an anchor or relation is" if not task.operator.premise.wrong_checks else "more checks are"
        reason = (
            f"no error on at most {_among(task)} leaves a residual within ε = {task.epsilon:g} (the least is"
            f" {residual:.4g}): more {task.operator.premise.called} are wrong than k = {k}, {also}, or the noise is larger."
            if outcome.proved and not outcome.explanations
            else f"the answer found leaves a residual of {residual:.4g}, above ε = {task.epsilon:g}."
        )
        return Assessment(Certainty.UNEXPLAINED, reason, None)
    if task.count(support) > k:
        many = f"{task.count(support)} {_unit(task, task.count(support))}"
        reason = f"the answer edits {many}, more than k = {k}, so the stability theorem does not apply."
        return Assessment(Certainty.HEURISTIC, reason, None)
    if facts.lower > 0.0:
        who = "every repaired value" if task.operator.premise.deliver is None else "every delivered value"
        return _with_margin(task, outcome, design, facts.lower, facts.gamma, who=who)
    if facts.bound:
        gone = ", ".join(task.operator.node_ids[i] for i in task.erased)
        reason = f"nothing is proven about the delivered values without the answers of {gone}, which could not be read."
        return Assessment(Certainty.UNDECIDED, reason, None)
    if task.erased and facts.others > 0.0:
        found = _with_margin(task, outcome, design, facts.others, facts.others, who="every answered node's value")
        return replace(found, error_bound=None)
    if facts.gamma > 0.0:
        reason = f"the margin was not proved positive (between 0 and {facts.gamma:.4g} when the search ended)."
        return Assessment(Certainty.UNDECIDED, reason, None)
    return _at_zero_margin(task, outcome, design, support)


def _with_margin(
    task: Task,
    outcome: DecoderOutcome,
    design: Decoding,
    lower: float,
    gamma: float,
    *,
    who: str = "every repaired value",
) -> Assessment:
    bound = error_bound(task, outcome, design, lower)
    rounding = apart(task.tolerance, lower)
    if rounding > max(1e-3 * bound, task.rounding):
        bound += rounding  # the margin is so small that rounding alone moves the answer
    wanted, many = task.problem.delta, len(outcome.explanations)
    missed = "" if wanted is None or bound <= wanted else f" That misses the acceptable error δ = {wanted:g}."
    near = (
        f"within {rounded_up(bound, 4):.4g} of the truth{_in_metrics(task, bound)}"
        if bound
        else "the truth, up to rounding,"
    )
    limits = f"{who} is {near} if at most"
    sure = design.grounds(task).sure
    chance = "" if sure is None else f", with probability at least {sure:g}"
    limits += f" {_wrong(task)}{chance} (γ = {gamma:.4g}).{missed}"
    if outcome.proved and outcome.undecided:
        return Assessment(Certainty.BOUNDED, f"{_open_sets(task, outcome)} But {limits}", bound)
    if outcome.proved and outcome.complete and many == 1:
        only = outcome.explanations[0]
        found, most = task.count(only.support), task.operator.premise.wrong_checks
        lead = "the answers agree with everything that is measured, and "
        if found == task.k and len(only.checks) == most:
            lead = f"no other set of at most {_among(task)} explains the data, and "
        elif found or only.checks:
            lead = f"every set of at most {_among(task)} that explains the data includes this one, and "
        return Assessment(Certainty.UNIQUE, lead + limits, bound)
    if outcome.proved and many > 1:
        what = "nodes and checks" if task.operator.premise.wrong_checks else "nodes"
        edge = " or on its edge" if any(item.edge for item in outcome.explanations) else ""
        lead = f"{many} different sets of {what} explain the data within ε{edge}, so who is wrong is open, but "
        return Assessment(Certainty.BOUNDED, lead + limits, bound)
    return Assessment(Certainty.BOUNDED, limits, bound)


def _at_zero_margin(task: Task, outcome: DecoderOutcome, design: Decoding, support: tuple[int, ...]) -> Assessment:
    names = task.operator.node_ids
    witness = ", ".join(names[i] for i in design.unseen_nodes)
    promise = f"the margin is zero: an error along the witness on {witness} changes nothing that is measured"
    if task.operator.premise.wrong_checks:
        reason = f"{promise} by checks that can't be wrong together; values are given where all explanations agree."
        return Assessment(Certainty.AMBIGUOUS, reason, None)
    if outcome.proved and len(outcome.explanations) > 1:
        sets = " or ".join(f"{{{', '.join(names[i] for i in item.support)}}}" for item in outcome.explanations[:6])
        reason = f"{promise}, and {len(outcome.explanations)} sets of nodes explain the data equally well: {sets}."
        return Assessment(Certainty.AMBIGUOUS, reason, None)
    hidden = design.unseen(support)
    if hidden:
        where = ", ".join(names[i] for i in hidden[0].support)
        reason = f"{promise}, and in these data {where} could be wrong as well without any trace."
        return Assessment(Certainty.AMBIGUOUS, reason, None, hidden)
    if outcome.undecided:
        return Assessment(Certainty.UNDECIDED, f"{promise}. {_open_sets(task, outcome)}", None)
    if outcome.proved and outcome.complete:
        reason = f"{promise}; these data have one explanation only, but this design can't promise that."
        return Assessment(Certainty.UNIQUE_HERE, reason, None)
    return Assessment(Certainty.AMBIGUOUS, promise + ".", None)


def own_units(task: Task, bound: float) -> dict[str, float]:
    """A bound on the length of the whole error, for each node in the units of its answers: h = L⁻ᵀh̃ in a metric LLᵀ."""
    longest = task.operator.longest_units
    return {name: bound * longest.get(name, 1.0) for name in task.operator.node_ids}


def _in_metrics(task: Task, bound: float) -> str:
    """Where nodes have metrics, a length in them is not a length in the units of the answers: say both."""
    if not task.operator.fiber_factors:
        return ""
    own = own_units(task, bound)
    shown = ", ".join(f"{name} {own[name]:.4g}" for name in list(own)[:6])
    return f" in the nodes' metrics (in their own units: {shown}{', …' if len(own) > 6 else ''})"


def _open_sets(task: Task, outcome: DecoderOutcome) -> str:
    names = task.operator.node_ids
    sets = " or ".join(f"{{{', '.join(names[i] for i in part)}}}" for part in outcome.undecided[:6])
    return f"{sets} may explain the data too: the residual is ε to within what floats can tell."


def _unit(task: Task, count: int) -> str:
    """What k counts, in the number that goes with a count."""
    called = task.operator.premise.called
    plural = "nodes" if called == "answers" else called
    return plural[:-1] if count == 1 else plural


def _among(task: Task) -> str:
    """The sets that are looked at: 2 nodes; 1 model and 1 check."""
    k, checks = task.k, task.operator.premise.wrong_checks
    units = f"{k} {_unit(task, k)}"
    return f"{units} and {checks} check{'' if checks == 1 else 's'}" if checks else units


def _wrong(task: Task) -> str:
    """The premise: 1 answered node is wrong."""
    k, checks = task.k, task.operator.premise.wrong_checks
    plain = task.operator.premise.called == "answers"
    units = f"{k} {'answered ' if plain else ''}{_unit(task, k)}"
    if checks:
        return f"{units} and at most {checks} check{'' if checks == 1 else 's'} are wrong"
    return f"{units} {'are' if k > 1 else 'is'} wrong"
