"""Exact repair: the smallest set of wrong nodes that explains the data, and every other one (ideal residual decoder)."""

from __future__ import annotations

from functools import partial

from rrf_design.repair.contract import Candidate, Decoder, Outcome, Task
from solvers.decoding import Decoding, SupportDecoder

ZERO_RULE = "directions below 1e-10 of their node's length were taken for zero; the proof holds up to that rule"


class Exact(Decoder):
    """Support search with a proof; see `solvers.decoding.search`."""

    name = "exact"
    options = ("limit",)

    def decode(self, task: Task) -> Outcome:
        decoder = SupportDecoder(task.operator.matrix, task.operator.groups, known=task.erased)
        return self.with_decoder(task, decoder)

    def with_decoder(self, task: Task, decoder: SupportDecoder) -> Outcome:
        """The same with a decoder prepared for this design and pattern of erasures."""
        found = decoder.decode(
            task.syndrome,
            k=task.k,
            epsilon=task.epsilon,
            tolerance=task.tolerance,
            limit=int(task.options.get("limit", 64)),
            time_limit=task.time_limit,
            progress=None if task.progress is None else partial(_tell, task),
        )
        return exact_outcome(found)


def _tell(task: Task, share: float, support: tuple[int, ...], residual: float, explained: bool) -> None:
    assert task.progress is not None
    names = ", ".join(task.operator.node_ids[i] for i in support) or "no answer wrong"
    fit = "explains the data" if explained else f"leaves a residual of {residual:.4g}, above ε = {task.epsilon:g}"
    task.progress(share, f"best so far, not proven: {names}; it {fit}")


def exact_outcome(found: Decoding) -> Outcome:
    notes: tuple[str, ...] = ()
    if not found.complete:
        notes = ("the search was cut short: there may be explanations that are not listed",)
    if found.zero_rule:
        notes = (*notes, ZERO_RULE)
    return Outcome(
        error=found.error,
        method="exact",
        explanations=tuple(
            Candidate(item.support, item.residual, item.error, item.edge) for item in found.explanations
        ),
        proved=True,
        edge=bool(found.explanations) and found.explanations[0].edge,
        complete=found.complete,
        undecided=found.undecided,
        zero_rule=found.zero_rule,
        gap=0.0 if found.complete else None,
        objective=float(len(found.support)) if found.explained else found.residual,
        best_smaller=found.best_smaller,
        notes=notes,
        details={"supports_tested": found.tested, "verified": found.verified},
    )
