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
        return self.with_decoder(task, SupportDecoder(task.operator.matrix, parts.groups, known=parts.known), parts)

    def with_decoder(self, task: Task, decoder: SupportDecoder, parts: Parts) -> DecoderOutcome:
        """Every minimal explanation by at most k units and a checks, the one with fewest of both
        first; `decoder` is prepared for this design and pattern of erasures.
        """
        found: list[Candidate] = []
        minimal: list[tuple[set[int], set[int]]] = []  # parts and blocks of those found
        nearest: Candidate | None = None
        results: list[SyndromeDecoding] = []
        for aside in check_sets(task.operator):
            blocks = set(aside)
            if any(not units and others <= blocks for units, others in minimal):
                continue  # these checks alone explain everything
            result = _decode(task, decoder, parts, aside)
            results.append(result)
            for item in result.explanations:
                if not any(units <= set(item.support) and others <= blocks for units, others in minimal):
                    minimal.append((set(item.support), blocks))
                    nodes = named(task, parts, item.support, item.error)
                    found.append(Candidate(nodes, item.residual, item.error, item.edge, aside))
            if not result.explanations and (nearest is None or result.residual < nearest.residual):
                nodes = named(task, parts, result.support, result.error)
                nearest = Candidate(nodes, result.residual, result.error, False, aside)
        # Misfits that differ by rounding alone tie, whatever processor computed them.
        step = 2.0 * task.tolerance or 1.0
        found.sort(key=lambda one: (_size(task, one), len(one.checks), round(one.residual / step), one.support))
        chosen = found[0] if found else nearest
        assert chosen is not None  # the empty set of checks is always tried
        complete, zero_rule = all(one.complete for one in results), any(one.zero_rule for one in results)
        undecided = (support for one in results for support in one.undecided)
        return DecoderOutcome(
            error=chosen.error,
            method="exact",
            explanations=tuple(found),
            proved=True,
            edge=bool(found) and chosen.edge,
            complete=complete,
            undecided=tuple(tuple(i for part in support for i in parts.members[part]) for support in undecided),
            zero_rule=zero_rule,
            gap=0.0 if complete else None,
            objective=float(_size(task, chosen)) if found else chosen.residual,
            best_smaller=None if task.operator.premise.wrong_checks else results[0].best_smaller,
            notes=(*(() if complete else (CUT_SHORT,)), *((ZERO_RULE,) if zero_rule else ())),
            details={
                "supports_tested": sum(one.tested for one in results),
                "verified": all(one.verified for one in results),
            },
            checks=chosen.checks,
        )


def _tell(task: Task, parts: Parts, share: float, support: tuple[int, ...], residual: float, explained: bool) -> None:
    assert task.work.progress is not None
    names = ", ".join(task.operator.node_ids[i] for part in support for i in parts.members[part]) or "no answer wrong"
    fit = "explains the data" if explained else f"leaves a residual of {residual:.4g}, above ε = {task.epsilon:g}"
    task.work.progress(share, None, f"best so far, not proven: {names}; it {fit}")


def named(task: Task, parts: Parts, support: tuple[int, ...], error: Array) -> tuple[int, ...]:
    """The nodes of a support of parts that an error really changes."""
    return parts.moved(support, error, task.operator, task.slack)


MOST = 20_000
"""Sets of blocks that are set aside in turn."""


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


def _decode(task: Task, decoder: SupportDecoder, parts: Parts, aside: tuple[int, ...]) -> SyndromeDecoding:
    """The exact decoder's answer when these blocks are set aside."""
    operator, syndrome, told = task.operator, task.syndrome, None
    if aside:
        kept = np.flatnonzero(~rows_of(task, aside))
        decoder, syndrome = SupportDecoder(operator.matrix[kept], parts.groups, known=parts.known), syndrome[kept]
    if task.work.progress is not None and not operator.premise.wrong_checks:
        told = partial(_tell, task, parts)
    return decoder.decode(
        syndrome,
        k=task.k,
        epsilon=task.epsilon,
        tolerance=task.tolerance,
        limit=int(task.work.options.get("limit", 64)),
        time_limit=task.work.time_limit,
        progress=told,
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
