"""How sure a repair is, and its values in the user's names: one place that compares what a decoder
proved with the margin, ε and k.

The stability theorem speaks of any estimate, whatever found it: if the truth has at most k wrong
nodes and residual at most ε, every ê with at most k wrong nodes and residual at most ε is within
2ε/γ_k of it. With erased nodes R the margin is γ(k | R) (`solvers.decoding._erasures`). At γ = 0
nothing is promised uniformly, but these data may still have one explanation only: when one minimal
support S explains them and no error that contains S can move unseen.

A value is given only where something vouches for it. Outside of what is delivered, and where checks
may be wrong, that is the node's own margin; at margin zero it is that every explanation has the
same value; and an exact check speaks for itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from rrf_design.blocks import Anchor
from rrf_design.checks import decided_premise, decided_verdict
from rrf_design.noise import recovery_bound, stated_within
from rrf_design.repairing._decoding import Decoding, error_bound
from rrf_design.repairing._exact import rows_of, surely_wrong
from rrf_design.repairing._failures import with_truth
from rrf_design.repairing.contract import (
    SAME,
    Alternative,
    Array,
    Candidate,
    Certainty,
    DecoderOutcome,
    Diagnostics,
    Prepared,
    Repair,
    Task,
    Values,
)
from rrf_design.rows import alone
from rrf_design.texts import rounded_up
from rrf_design.transforms import not_counted
from rrf_design.verdict import Evidence, Explained, Verdict, decide


@dataclass(frozen=True, slots=True)
class _Assessment:
    certainty: Certainty
    reason: str
    error_bound: float | None
    hidden: tuple[Candidate, ...] = ()
    """Errors that change nothing measured and could be added to the answer within the budget."""


def judge(
    task: Task, outcome: DecoderOutcome, design: Decoding, *, support: tuple[int, ...], residual: float
) -> _Assessment:
    """Certainty, its reason, and the error bound that holds."""
    facts = design.facts
    # A support that was proved to explain is not refused because its residual was rounded once
    # more.
    radius = (task.epsilon + task.tolerance) * (1.0 + 1e-9 * bool(outcome.proved and outcome.explanations))
    unexplained = residual > radius
    k = task.k
    if outcome.heuristic:
        return _Assessment(Certainty.HEURISTIC, f"{outcome.method} promises nothing about wrong answers.", None)
    if outcome.boundless:
        return _Assessment(Certainty.UNDECIDED, f"{outcome.notes[-1]}.", None)
    if outcome.edge:
        reason = f"the residual {residual:.6g} is ε = {task.epsilon:g} to within rounding, so floats can't decide."
        return _Assessment(Certainty.UNDECIDED, reason, None)
    if unexplained and outcome.undecided:
        return _Assessment(Certainty.UNDECIDED, _open_sets(task, outcome), None)
    if unexplained and not outcome.complete:
        return _Assessment(Certainty.UNDECIDED, "a limit ended the search before an explanation was found.", None)
    if unexplained:
        also = "an anchor or relation is" if not task.operator.premise.wrong_checks else "more checks are"
        reason = (
            f"more {task.operator.premise.called} are wrong than k = {k}, {also}, or the noise is larger: no error on"
            f" at most {_among(task)} explains the data (the least residual is {residual:.4g}, above ε ="
            f" {task.epsilon:g})."
            if outcome.proved and not outcome.explanations
            else "the answer found does not explain the data: it leaves a residual of"
            f" {residual:.4g}, above ε = {task.epsilon:g}."
        )
        return _Assessment(Certainty.UNEXPLAINED, reason, None)
    if task.count(support) > k:
        many = f"{task.count(support)} {_unit(task, task.count(support))}"
        reason = f"the answer edits {many}, more than k = {k}, so the stability theorem does not apply."
        return _Assessment(Certainty.HEURISTIC, reason, None)
    if facts.lower > 0.0:
        who = "every repaired value" if task.operator.premise.deliver is None else "every delivered value"
        return _with_margin(task, outcome, design, facts.lower, facts.gamma, who=who)
    if facts.bound:
        gone = ", ".join(task.operator.node_ids[i] for i in task.erased)
        reason = f"nothing is proven about the delivered values without the answers of {gone}, which could not be read."
        return _Assessment(Certainty.UNDECIDED, reason, None)
    if task.erased and facts.others > 0.0:
        found = _with_margin(task, outcome, design, facts.others, facts.others, who="every answered node's value")
        return replace(found, error_bound=None)
    if facts.gamma > 0.0:
        reason = f"the margin was not proved positive (between 0 and {facts.gamma:.4g} when the search ended)."
        return _Assessment(Certainty.UNDECIDED, reason, None)
    return _at_zero_margin(task, outcome, design, support)


def _with_margin(
    task: Task,
    outcome: DecoderOutcome,
    design: Decoding,
    lower: float,
    gamma: float,
    *,
    who: str = "every repaired value",
) -> _Assessment:
    bound = error_bound(task, outcome, design, lower)
    rounding = recovery_bound(task.tolerance, lower)
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
        return _Assessment(Certainty.BOUNDED, f"{_open_sets(task, outcome)} But {limits}", bound)
    if outcome.proved and outcome.complete and many == 1:
        only = outcome.explanations[0]
        found, most = task.count(only.support), task.operator.premise.wrong_checks
        lead = "the answers agree with everything that is measured, and "
        if found == task.k and len(only.checks) == most:
            lead = f"no other set of at most {_among(task)} explains the data, and "
        elif found or only.checks:
            lead = f"every set of at most {_among(task)} that explains the data includes this one, and "
        return _Assessment(Certainty.UNIQUE, lead + limits, bound)
    if outcome.proved and many > 1:
        what = "nodes and checks" if task.operator.premise.wrong_checks else "nodes"
        edge = " or on its edge" if any(item.edge for item in outcome.explanations) else ""
        lead = f"{many} different sets of {what} explain the data within ε{edge}, so who is wrong is open, but "
        return _Assessment(Certainty.BOUNDED, lead + limits, bound)
    return _Assessment(Certainty.BOUNDED, limits, bound)


def _at_zero_margin(task: Task, outcome: DecoderOutcome, design: Decoding, support: tuple[int, ...]) -> _Assessment:
    names = task.operator.node_ids
    witness = ", ".join(names[i] for i in design.unseen_nodes)
    promise = f"the margin is zero: an error along the witness on {witness} changes nothing that is measured"
    if task.operator.premise.wrong_checks:
        reason = f"{promise} by checks that can't be wrong together; values are given where all explanations agree."
        return _Assessment(Certainty.AMBIGUOUS, reason, None)
    if outcome.proved and len(outcome.explanations) > 1:
        first = sorted(item.support for item in outcome.explanations)[:6]  # their misfits tie but for rounding
        sets = " or ".join(f"{{{', '.join(names[i] for i in support)}}}" for support in first)
        reason = f"{promise}, and {len(outcome.explanations)} sets of nodes explain the data equally well: {sets}."
        return _Assessment(Certainty.AMBIGUOUS, reason, None)
    hidden = design.unseen(support)
    if hidden:
        where = ", ".join(names[i] for i in hidden[0].support)
        reason = f"{promise}, and in these data {where} could be wrong as well without any trace."
        return _Assessment(Certainty.AMBIGUOUS, reason, None, hidden)
    if outcome.undecided:
        return _Assessment(Certainty.UNDECIDED, f"{promise}. {_open_sets(task, outcome)}", None)
    if outcome.proved and outcome.complete:
        reason = f"{promise}; these data have one explanation only, but this design can't promise that."
        return _Assessment(Certainty.UNIQUE_HERE, reason, None)
    return _Assessment(Certainty.AMBIGUOUS, promise + ".", None)


def _own_units(task: Task, bound: float) -> dict[str, float]:
    """A bound on the length of the whole error, for each node in the units of its answers: h =
    L⁻ᵀh̃ in a metric LLᵀ.
    """
    longest = task.operator.longest_units
    return {name: bound * longest.get(name, 1.0) for name in task.operator.node_ids}


def _in_metrics(task: Task, bound: float) -> str:
    """Where nodes have metrics, a length in them is not a length in the units of the answers: say
    both.
    """
    if not task.operator.fiber_factors:
        return ""
    own = _own_units(task, bound)
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


def _edited_nodes(task: Task, outcome: DecoderOutcome) -> tuple[int, ...]:
    """Nodes whose answer is changed.

    A unit is solved for as a whole: what rounding alone moves there is not edited.
    """
    if not outcome.error.any():
        return ()
    slack = task.slack if task.operator.premise.units else 0.0
    sizes = np.maximum.reduceat(np.abs(outcome.error), task.operator.node_offsets[:-1])  # every node has a column
    return tuple(i for i in np.flatnonzero(sizes > slack).tolist() if i not in task.erased)


def _repaired_values(
    task: Task, design: Decoding, outcome: DecoderOutcome, edited: tuple[int, ...]
) -> dict[str, Values | None]:
    """ẑ = y − ê; untouched responses stay as they were given, values that nothing determines are
    None.
    """
    changed = (*task.erased, *edited)
    moved = task.operator.unstack(task.response - outcome.error, only=changed)
    result: dict[str, Values | None] = {**task.values, **moved}
    claimed = task.erased if outcome.heuristic or task.count(edited) > task.k else changed
    for i in {*outcome.unknown, *(design.undetermined(claimed) if claimed else ())}:
        result[task.operator.node_ids[i]] = None
    return {name: result[name] for name in task.operator.node_ids}


def _agreed_values(
    task: Task,
    outcome: DecoderOutcome,
    design: Decoding,
    found: _Assessment,
    estimate: dict[str, Values | None],
    *,
    fixed: Mapping[str, Values],
) -> dict[str, Values | None]:
    """Values only where every explanation that is known has the same: at margin zero, and for what
    is not delivered.

    `fixed` are those that trusted checks state (`fixed_values`): they go before all others.
    """
    lone = found.certainty in (Certainty.UNIQUE, Certainty.BOUNDED) or design.facts.bound
    lone |= found.certainty is Certainty.AMBIGUOUS and bool(task.operator.premise.wrong_checks)
    open_ = {task.operator.node_ids[i] for i in design.open_nodes} if lone else set()
    estimate = {name: fixed.get(name, None if name in open_ else value) for name, value in estimate.items()}
    if found.certainty is not Certainty.AMBIGUOUS:
        return estimate
    slack = task.slack
    open_nodes = {i for other in found.hidden for i in other.support}
    if not (
        outcome.proved and outcome.complete
    ):  # explanations may be missing: only a node's own margin vouches for it then
        open_nodes |= design.unprotected
    for other in outcome.explanations:
        apart = np.abs(other.error - outcome.error) > slack
        open_nodes |= {i for i, part in enumerate(task.operator.groups) if apart[part].any()}
        open_nodes |= design.moving(other.support)
    gone = {task.operator.node_ids[i] for i in open_nodes}.difference(fixed)
    return {name: None if name in gone else value for name, value in estimate.items()}


def _fixed_values(task: Task, anchors: Iterable[Anchor]) -> dict[str, Values]:
    """Values of nodes that trusted checks state as they are."""
    stated = ((anchor.nodes[0], _stated(task, anchor)) for anchor in anchors)
    return {name: value for name, value in stated if value is not None}


def _stated(task: Task, anchor: Anchor) -> Values | None:
    """What a held check states of the node it is about; None where it has no value."""
    operator = task.operator
    j = operator.block_index[anchor.id]
    target = operator.target[int(operator.block_offsets[j]) : int(operator.block_offsets[j + 1])]
    if np.isnan(target).any():
        return None
    factor = alone(task.problem, anchor, len(target))
    assert isinstance(factor, float), "what has no noise of its own has one number for all its rows"
    value = target / (factor * operator.held.factor(anchor.id))
    given = None if anchor.value is None else np.atleast_1d(np.asarray(anchor.value, dtype=np.float64))
    same = given is not None and np.allclose(given, value, rtol=1e-12, atol=0.0)
    return tuple(float(x) for x in (given if same and given is not None else value))


def _deciding_check(task: Task, anchors: Iterable[Anchor]) -> tuple[Anchor, Values] | None:
    """The check that decides the only delivered value, and what it states; None where there is
    none, or where several disagree.
    """
    found = [(anchor, value) for anchor in anchors if (value := _stated(task, anchor)) is not None]
    agree = bool(found) and all(np.allclose(value, found[0][1], rtol=1e-9, atol=0.0) for _, value in found)
    executed = [one for one in found if decided_verdict(one[0]) is Verdict.CHECKED]
    return (executed or found)[0] if agree else None


def _decided(result: Repair, answered: Values | None, anchor: Anchor, value: Values, *, within: float) -> Repair:
    """The repair where a check states the only delivered value: that is the value, whatever was
    answered.
    """
    node = anchor.nodes[0]
    changes: dict[str, Any] = {"verdict": decided_verdict(anchor), "assumes": decided_premise(anchor, within)}
    changes |= {"error_bound": within, "bounds": {node: within}, "decided_by": anchor.id}
    if result.verdict.passes:
        return replace(result, repaired={**result.repaired, node: value}, **changes)
    why = f"{anchor.id} states the value; what was answered is {result.verdict}: {result.reason}"
    wrong = (node,) if answered is not None and not np.allclose(answered, value, rtol=1e-9, atol=1e-12) else ()
    alone = {**dict.fromkeys(result.repaired), node: value}
    return replace(result, repaired=alone, support=wrong, error={}, alternatives=(), reason=why, **changes)


def _bounds(task: Task, bound: float, wanted: Iterable[str], *, fixed: Container[str]) -> dict[str, float]:
    """By node, of what is delivered; a trusted check that fixes a node leaves no error there."""
    longest = task.operator.longest_units
    return {name: 0.0 if name in fixed else bound * longest.get(name, 1.0) for name in wanted}


def _posterior(task: Task, residual: float, lower: float) -> float:
    return (task.epsilon + residual) / lower + (0.0 if task.radius is None else task.radius.tail)


def finish(
    one: Prepared, task: Task, outcome: DecoderOutcome, design: Decoding, *, seconds: float, why: str = ""
) -> Repair:
    """An outcome in the user's names, with verdict and diagnostics.

    `task` is that of `one`, perhaps with a wider radius; `why` says why its method was chosen.
    """
    operator, facts, grounds = task.operator, design.facts, design.grounds(task)
    misfit = operator.matrix @ outcome.error - task.syndrome
    if outcome.checks:
        misfit[rows_of(task, outcome.checks)] = 0.0  # what is set aside is not explained
    residual = float(np.linalg.norm(misfit))
    edited = _edited_nodes(task, outcome)
    found = judge(task, outcome, design, support=edited, residual=residual)
    estimate = _repaired_values(task, design, outcome, edited)
    blank = tuple(name for name in grounds.delivered if estimate[name] is None)
    fixed = _fixed_values(task, grounds.fixing)
    bounds = {} if found.error_bound is None else _bounds(task, found.error_bound, grounds.delivered, fixed=fixed)
    broken = _broken_bounds(task, found, {**estimate, **fixed}, bounds)
    verdict = decide(replace(_evidence(task, outcome, design, found, blank), broken=bool(broken)))
    if broken:
        found = _Assessment(Certainty.UNEXPLAINED, f"{broken}: both can't be true.", None)
    reason = found.reason
    if blank and found.error_bound is not None:
        reason = f"{reason} But nothing determines the value of {', '.join(blank)}."
    if verdict is Verdict.INCOMPLETE and one.field.invalid:
        reason = f"There is no readable answer of {_some(tuple(one.field.invalid))}; {reason}"
    unfit = found.certainty is Certainty.UNEXPLAINED  # what fits nothing is no repair, whoever found it
    if unfit:
        step = "look at the answers, or correct what is declared." if broken else _next_step(task)
        reason = f"{reason} No values are given: {step}"
    relation, anchor = _by_kind(task, misfit)
    values: dict[str, Values | None] = (
        dict.fromkeys(estimate) if unfit else _agreed_values(task, outcome, design, found, estimate, fixed=fixed)
    )
    withheld = {"nearest": estimate, "blamed": [operator.node_ids[i] for i in edited]} if values != estimate else {}
    result = Repair(
        repaired=values,
        support=() if unfit else tuple(operator.node_ids[i] for i in edited),
        residual=residual,
        gamma=facts.gamma,
        error_bound=found.error_bound,
        bounds={} if found.error_bound is None else bounds,
        method=outcome.method,
        certainty=found.certainty,
        verdict=verdict,
        assumes=grounds.assumes + not_counted(one.field.invalid),
        reason=reason,
        error={} if unfit else operator.unstack(outcome.error, only=edited),
        alternatives=() if unfit else _alternatives(task, outcome, found, edited),
        indistinguishable=tuple(operator.node_ids[i] for i in design.unseen_nodes),
        erased=dict(one.field.invalid),
        k=task.k,
        epsilon=task.epsilon,
        tolerance=task.tolerance,
        gamma_lower=facts.lower,
        witness=dict(design.witness),
        diagnostics=Diagnostics(
            objective=outcome.objective,
            relation_residual=relation,
            anchor_residual=anchor,
            active_groups=len(edited),
            gap=outcome.gap,
            best_smaller=outcome.best_smaller,
            posterior_bound=_posterior(task, residual, facts.lower) if found.error_bound is not None else None,
            complete=outcome.complete,
            iterations=outcome.iterations,
            seconds=seconds,
            seed=task.work.seed,
            details={
                "margin_method": facts.method,
                **withheld,
                **outcome.details,
            },
        ),
        selected=one.selected,
        problem_digest=one.digest,
        notes=(*((why,) if why else ()), *outcome.notes),
        wanted=grounds.wanted,
        robust_lower=design.robust_lower,
        wrong_checks=()
        if unfit
        else tuple(operator.block_ids[j] for j in surely_wrong(item.checks for item in outcome.explanations)),
    )
    check = _deciding_check(task, grounds.deciding)
    if check is not None:
        node, radius = check[0].nodes[0], task.radius
        rows, held = None if radius is None else radius.rows, task.operator.block_ids
        within = stated_within(task.problem, check[0], rows, held=held)
        answered = None if node in one.field.invalid else task.values.get(node)
        if task.problem.delta is None or within <= task.problem.delta:
            result = _decided(result, answered, *check, within=within)
    if task.named and "candidates" in outcome.details:
        result = _among_candidates(result, task, estimate)
    return result if one.truth is None else with_truth(one, task, result, estimate)


def _among_candidates(result: Repair, task: Task, estimate: Mapping[str, Values | None]) -> Repair:
    """Where the caller named the values that a node may have, that is assumed, too; where none of
    them fits, it is the one assumption that may be wrong, and nothing is decided (fact 38).
    """
    if result.verdict is Verdict.CHECKED:
        return result
    near = SAME if task.problem.delta is None else task.problem.delta
    listed = {name: f"{name} is one of {len(values)} named values" for name, values in task.named.items()}

    def fits(name: str) -> bool:
        value = estimate[name]
        return value is not None and any(
            np.allclose(value, one, rtol=SAME, atol=near, equal_nan=False) for one in task.named[name]
        )

    missed = [name for name in task.named if result.certainty is Certainty.UNEXPLAINED or not fits(name)]
    assumes = f"{result.assumes}, and {', '.join(listed.values())}"
    if not missed:
        return replace(result, assumes=assumes)
    reason = f"none of the named values of {', '.join(missed)} fits what was answered: the value may be none"
    return replace(
        result,
        assumes=assumes,
        verdict=Verdict.AMBIGUOUS,
        certainty=Certainty.AMBIGUOUS,
        repaired={**result.repaired, **dict.fromkeys(missed)},
        reason=f"{reason} of them, or more is wrong than assumed. Without them: {result.reason}",
    )


_EXPLAINED = {
    Certainty.UNIQUE: Explained.UNIQUELY,
    Certainty.UNIQUE_HERE: Explained.UNIQUELY,
    Certainty.BOUNDED: Explained.OTHERWISE,
    Certainty.AMBIGUOUS: Explained.OTHERWISE,
    Certainty.UNEXPLAINED: Explained.NOT,
    Certainty.UNDECIDED: Explained.OPEN,
    Certainty.HEURISTIC: Explained.OPEN,
}


def _evidence(
    task: Task, outcome: DecoderOutcome, design: Decoding, found: _Assessment, blank: tuple[str, ...]
) -> Evidence:
    explained = _EXPLAINED[found.certainty]
    if explained is Explained.NOT and not (outcome.proved and not outcome.explanations):
        explained = Explained.OPEN  # this method found nothing that fits; that is no proof that nothing does
    return Evidence(
        explained=explained,
        goal=design.grounds(task).goal,
        lower=design.facts.lower,
        robust_lower=design.robust_lower,
        bound=found.error_bound,
        exact=found.error_bound is not None and found.error_bound <= task.rounding,
        blank=blank,
    )


def _broken_bounds(
    task: Task, found: _Assessment, estimate: Mapping[str, Values | None], bounds: Mapping[str, float]
) -> str:
    """What is declared of the true field, and no field within the error bound keeps to; "" where
    nothing is, or nothing is bounded.
    """
    if found.error_bound is None or task.radius is None or task.radius.field is None:
        return ""
    known = {name: value for name, value in estimate.items() if value is not None and name in bounds}
    return task.radius.field.broken(task.operator, known, bound=found.error_bound, bounds=bounds, slack=task.slack)


def _some(names: tuple[str, ...], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _next_step(task: Task) -> str:
    """What whoever reads a contradiction can do: look at the rows that the answers break most."""
    operator = task.operator
    count = len(operator.block_ids)
    owner = np.repeat(np.arange(count), np.diff(operator.block_offsets))
    silent = np.zeros(operator.shape[1], dtype=bool)
    for i in task.erased:
        silent[operator.groups[i]] = True
    told = sparse.csr_array(abs(operator.matrix)) @ silent.astype(np.float64) == 0
    energy = np.bincount(owner, weights=np.square(task.syndrome) * told, minlength=count)
    worst = [operator.block_ids[j] for j in np.argsort(-energy, kind="stable")[:3] if energy[j] > task.tolerance**2]
    look = f"look at {', '.join(worst)}, which the answers break most; " if worst else ""
    return f"{look}ask again, buy a check, or allow for more wrong answers than k = {task.k}."


def _alternatives(
    task: Task, outcome: DecoderOutcome, found: _Assessment, edited: tuple[int, ...]
) -> tuple[Alternative, ...]:
    others = [item for item in outcome.explanations if (item.support, item.checks) != (edited, outcome.checks)]
    listed = [_alternative(task, item.error, item, free=0) for item in others]
    listed += [_alternative(task, outcome.error + item.error, item, free=1) for item in found.hidden]
    return tuple(listed)


def _alternative(task: Task, error: Array, item: Candidate, *, free: int) -> Alternative:
    names = tuple(task.operator.node_ids[i] for i in item.support)
    values = task.operator.unstack(task.response - error, only=item.support)
    repaired = {name: None if free else values[name] for name in names}
    checks = tuple(task.operator.block_ids[j] for j in item.checks)
    return Alternative(names, repaired, item.residual, item.edge, free, checks)


def _by_kind(task: Task, misfit: Array) -> tuple[float, float]:
    anchors = task.operator.of_anchors
    return float(np.linalg.norm(misfit[~anchors])), float(np.linalg.norm(misfit[anchors]))
