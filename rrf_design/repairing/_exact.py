"""Exact repair: the smallest set of wrong nodes that explains the data, and every other one (ideal
residual decoder).

Where up to a checks may be wrong beside k units, what was measured is Be + u + ν with u on the rows
of at most a suspect blocks R. u is free, so (S, R) explains the data exactly when S explains what
is measured by the other blocks. Every R is tried, the smallest first, each with the plain search;
what contains a smaller explanation is left out (docs/algorithms.md, fact 19).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import combinations
from math import comb

import numpy as np

from rrf_design.errors import InputError
from rrf_design.operators import Operator
from rrf_design.premise import Parts
from rrf_design.repairing.contract import Array, Candidate, Decoder, DecoderOutcome, Task
from solvers.decoding import SupportDecoder, SyndromeDecoding

CUT_SHORT = "the search was cut short: there may be explanations that are not listed"
ZERO_RULE = "directions below 1e-10 of their node's length were taken for zero; the proof holds up to that rule"


class Exact(Decoder):
    """Support search with a proof; see `solvers.decoding._search`."""

    name = "exact"
    options = ("limit",)
    counts_units = True

    def decode(self, task: Task) -> DecoderOutcome:
        parts = Parts.of(task.operator, task.erased)
        if task.operator.premise.wrong_checks:
            return _decode_with_suspects(task, parts, limit=int(task.work.options.get("limit", 64)))
        return self.with_decoder(task, SupportDecoder(task.operator.matrix, parts.groups, known=parts.known), parts)

    def with_decoder(self, task: Task, decoder: SupportDecoder, parts: Parts) -> DecoderOutcome:
        """The same with a decoder prepared for this design and pattern of erasures."""
        found = decoder.decode(
            task.syndrome,
            k=task.k,
            epsilon=task.epsilon,
            tolerance=task.tolerance,
            limit=int(task.work.options.get("limit", 64)),
            time_limit=task.work.time_limit,
            progress=None if task.work.progress is None else partial(_tell, task, parts),
        )
        return _exact_outcome(task, parts, found)


def _tell(task: Task, parts: Parts, share: float, support: tuple[int, ...], residual: float, explained: bool) -> None:
    assert task.work.progress is not None
    names = ", ".join(task.operator.node_ids[i] for part in support for i in parts.members[part]) or "no answer wrong"
    fit = "explains the data" if explained else f"leaves a residual of {residual:.4g}, above ε = {task.epsilon:g}"
    task.work.progress(share, None, f"best so far, not proven: {names}; it {fit}")


def named(task: Task, parts: Parts, support: tuple[int, ...], error: Array) -> tuple[int, ...]:
    """The nodes of a support of parts that an error really changes."""
    return parts.moved(support, error, task.operator, task.slack)


def _exact_outcome(task: Task, parts: Parts, found: SyndromeDecoding) -> DecoderOutcome:
    notes: tuple[str, ...] = ()
    if not found.complete:
        notes = (CUT_SHORT,)
    if found.zero_rule:
        notes = (*notes, ZERO_RULE)
    return DecoderOutcome(
        error=found.error,
        method="exact",
        explanations=tuple(
            Candidate(named(task, parts, item.support, item.error), item.residual, item.error, item.edge)
            for item in found.explanations
        ),
        proved=True,
        edge=bool(found.explanations) and found.explanations[0].edge,
        complete=found.complete,
        undecided=tuple(tuple(i for part in support for i in parts.members[part]) for support in found.undecided),
        zero_rule=found.zero_rule,
        gap=0.0 if found.complete else None,
        objective=float(len(found.support)) if found.explained else found.residual,
        best_smaller=found.best_smaller,
        notes=notes,
        details={"supports_tested": found.tested, "verified": found.verified},
    )


MOST = 20_000
"""Sets of blocks that are set aside in turn."""


def _decode_with_suspects(task: Task, parts: Parts, *, limit: int) -> DecoderOutcome:
    """Every minimal explanation by at most k units and a checks, the one with fewest of both
    first.
    """
    found: list[Candidate] = []
    minimal: list[tuple[set[int], set[int]]] = []  # parts and blocks of those found
    best: tuple[float, Candidate] | None = None
    undecided: list[tuple[int, ...]] = []
    complete, zero_rule, tested = True, False, 0
    for aside in check_sets(task.operator):
        if any(not units and blocks <= set(aside) for units, blocks in minimal):
            continue  # these checks alone explain everything
        result = _decode(task, parts, aside, limit)
        complete, zero_rule, tested = (
            complete and result.complete,
            zero_rule or result.zero_rule,
            tested + result.tested,
        )
        undecided += [tuple(i for p in support for i in parts.members[p]) for support in result.undecided]
        for item in result.explanations:
            if any(units <= set(item.support) and blocks <= set(aside) for units, blocks in minimal):
                continue
            minimal.append((set(item.support), set(aside)))
            nodes = named(task, parts, item.support, item.error)
            found.append(Candidate(nodes, item.residual, item.error, item.edge, aside))
        if not result.explanations and (best is None or result.residual < best[0]):
            nodes = named(task, parts, result.support, result.error)
            best = (result.residual, Candidate(nodes, result.residual, result.error, False, aside))
    ranked = sorted(found, key=lambda item: (_size(task, item), len(item.checks), item.residual))
    chosen = ranked[0] if ranked else best[1] if best is not None else None
    assert chosen is not None  # the empty set of checks is always tried
    notes = () if complete else (CUT_SHORT,)
    return DecoderOutcome(
        error=chosen.error,
        method="exact",
        explanations=tuple(ranked),
        proved=True,
        edge=bool(ranked) and ranked[0].edge,
        complete=complete,
        undecided=tuple(undecided),
        zero_rule=zero_rule,
        gap=0.0 if complete else None,
        objective=float(_size(task, chosen)) if ranked else chosen.residual,
        notes=(*notes, ZERO_RULE) if zero_rule else notes,
        details={"supports_tested": tested},
        checks=chosen.checks,
    )


def check_sets(operator: Operator) -> Iterator[tuple[int, ...]]:
    """Blocks that may be set aside together, fewest first; the empty set always."""
    premise = operator.premise
    blocks = [j for j, name in enumerate(operator.block_ids) if name in premise.suspects]
    most = min(premise.wrong_checks, len(blocks))
    many = sum(comb(len(blocks), size) for size in range(most + 1))
    if many > MOST:
        raise InputError(
            f"wrong_checks = {premise.wrong_checks}: {many} sets of checks would have to be set aside in turn, more"
            f" than {MOST}; mark checks that are exact with trusted = true"
        )
    return (aside for size in range(most + 1) for aside in combinations(blocks, size))


def _decode(task: Task, parts: Parts, aside: tuple[int, ...], limit: int) -> SyndromeDecoding:
    operator = task.operator
    kept = np.flatnonzero(~rows_of(task, aside))
    decoder = SupportDecoder(operator.matrix[kept], parts.groups, known=parts.known)
    return decoder.decode(
        task.syndrome[kept],
        k=task.k,
        epsilon=task.epsilon,
        tolerance=task.tolerance,
        limit=limit,
        time_limit=task.work.time_limit,
    )


def rows_of(task: Task, blocks: tuple[int, ...]) -> np.ndarray:
    """(rows,): which belong to these blocks."""
    chosen = np.zeros(len(task.operator.block_ids), dtype=np.bool_)
    chosen[list(blocks)] = True
    return np.repeat(chosen, task.operator.heights)


def _size(task: Task, item: Candidate) -> int:
    return task.count(item.support) + len(item.checks)


def surely_wrong(checks: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The checks that every explanation sets aside; `checks` are those of each."""
    sets = [set(aside) for aside in checks]
    return tuple(sorted(set.intersection(*sets))) if sets else ()
