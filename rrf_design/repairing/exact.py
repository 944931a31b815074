"""Exact repair: the smallest set of wrong nodes that explains the data, and every other one (ideal residual decoder)."""

from __future__ import annotations

from functools import partial

from rrf_design.repairing.contract import Array, Candidate, Decoder, DecoderOutcome, Task
from rrf_design.repairing.parts import Parts
from rrf_design.repairing.suspects import decode_with_suspects
from solvers.decoding import SupportDecoder, SyndromeDecoding

CUT_SHORT = "the search was cut short: there may be explanations that are not listed"
ZERO_RULE = "directions below 1e-10 of their node's length were taken for zero; the proof holds up to that rule"


class Exact(Decoder):
    """Support search with a proof; see `solvers.decoding.search`."""

    name = "exact"
    options = ("limit",)
    counts_units = True

    def decode(self, task: Task) -> DecoderOutcome:
        parts = Parts.of(task.operator, task.erased)
        if task.operator.premise.wrong_checks:
            return decode_with_suspects(task, parts, limit=int(task.options.get("limit", 64)))
        return self.with_decoder(task, SupportDecoder(task.operator.matrix, parts.groups, known=parts.known), parts)

    def with_decoder(self, task: Task, decoder: SupportDecoder, parts: Parts) -> DecoderOutcome:
        """The same with a decoder prepared for this design and pattern of erasures."""
        found = decoder.decode(
            task.syndrome,
            k=task.k,
            epsilon=task.epsilon,
            tolerance=task.tolerance,
            limit=int(task.options.get("limit", 64)),
            time_limit=task.time_limit,
            progress=None if task.progress is None else partial(_tell, task, parts),
        )
        return exact_outcome(task, parts, found)


def _tell(task: Task, parts: Parts, share: float, support: tuple[int, ...], residual: float, explained: bool) -> None:
    assert task.progress is not None
    names = ", ".join(task.operator.node_ids[i] for part in support for i in parts.members[part]) or "no answer wrong"
    fit = "explains the data" if explained else f"leaves a residual of {residual:.4g}, above ε = {task.epsilon:g}"
    task.progress(share, None, f"best so far, not proven: {names}; it {fit}")


def named(task: Task, parts: Parts, support: tuple[int, ...], error: Array) -> tuple[int, ...]:
    """The nodes of a support of parts that an error really changes."""
    return parts.moved(support, error, task.operator, task.slack)


def exact_outcome(task: Task, parts: Parts, found: SyndromeDecoding) -> DecoderOutcome:
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
