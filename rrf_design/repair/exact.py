"""Exact repair: the smallest set of wrong nodes that explains the data, and every other one (ideal residual decoder)."""

from __future__ import annotations

from rrf_design.repair.contract import Candidate, Decoder, Outcome, Task
from solvers.decoding import Decoding, SupportDecoder


class Exact(Decoder):
    """Support search with a proof; see `solvers.decoding.search`."""

    name = "exact"

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
        )
        return exact_outcome(found)


def exact_outcome(found: Decoding) -> Outcome:
    notes: tuple[str, ...] = ()
    if not found.complete:
        notes = ("the search was cut short: there may be explanations that are not listed",)
    return Outcome(
        error=found.error,
        method="exact",
        explanations=tuple(Candidate(item.support, item.residual, item.error) for item in found.explanations),
        proved=True,
        edge=bool(found.explanations) and found.explanations[0].edge,
        complete=found.complete,
        gap=0.0 if found.complete else None,
        objective=float(len(found.support)) if found.explained else found.residual,
        best_smaller=found.best_smaller,
        notes=notes,
        details={"supports_tested": found.tested},
    )
