"""Why a repair failed, where the truth is known (paper, "Failure-case taxonomy"). Labels are not exclusive.

Only "zero or low margin" is what γ_k captures: the theory predicts neither candidate recall nor parser correctness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rrf_design.repairing.contract import Values


class Failure(StrEnum):
    CANDIDATE_ABSENCE = "candidate absence"
    """No correct answer was there to be found: no response is right, or no candidate is."""
    SHARED_ERROR = "shared error"
    """All valid responses agree with each other, and are wrong."""
    BUDGET_VIOLATION = "budget violation"
    """More than k responses are wrong."""
    REPRESENTATION_COLLISION = "representation collision"
    """The represented answers are right, but what they stand for is not (hidden tests fail)."""
    MARGIN = "zero or low margin"
    """The design admits an error of this size that it can't see, or not above the noise."""
    OPTIMISATION = "optimisation"
    """A correct candidate was there and the information sufficed, but the algorithm chose otherwise."""
    PARSE_FAILURE = "parse failure"
    """Some responses could not be represented."""


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """What the labels are decided from; values and truth in the user's coordinates."""

    truth: Mapping[str, Values]
    values: Mapping[str, Values]
    repaired: Mapping[str, Values | None]
    erased: Mapping[str, str]
    k: int
    gamma_lower: float
    error_bound: float | None
    relation_residual: float
    """Of the responses as given, over relations between valid nodes."""
    tolerance: float
    recall: bool | None = None
    """Whether the candidate closure holds the truth; None when there were no candidates."""
    hidden: Mapping[str, bool] | None = None
    """Whether what each node's answer stands for passes hidden tests."""


def truth_error(evidence: FailureEvidence) -> float:
    """‖ẑ − z‖ over the nodes with a known truth; infinite when a node has no value."""
    total = 0.0
    for node, truth in evidence.truth.items():
        value = evidence.repaired.get(node)
        if value is None:
            return float("inf")
        total += float(np.sum(np.square(np.subtract(value, truth))))
    return float(np.sqrt(total))


def classify(evidence: FailureEvidence) -> tuple[Failure, ...]:
    """Every label that applies; empty when the repair is the truth within its own bound."""
    collided = evidence.hidden is not None and not all(evidence.hidden.values())
    allowed = evidence.tolerance + (evidence.error_bound or 0.0)
    failed = truth_error(evidence) > allowed
    if not failed:
        return (Failure.REPRESENTATION_COLLISION,) if collided else ()
    wrong = [n for n, value in evidence.values.items() if n in evidence.truth and not _equal(value, evidence, n)]
    known = [n for n in evidence.values if n in evidence.truth]
    labels = []
    absent = evidence.recall is False if evidence.recall is not None else bool(known) and len(wrong) == len(known)
    if absent:
        labels.append(Failure.CANDIDATE_ABSENCE)
    if len(known) > 1 and len(wrong) == len(known) and evidence.relation_residual <= evidence.tolerance:
        labels.append(Failure.SHARED_ERROR)
    if len(wrong) > evidence.k:
        labels.append(Failure.BUDGET_VIOLATION)
    if collided:
        labels.append(Failure.REPRESENTATION_COLLISION)
    size = np.sqrt(sum(float(np.sum(np.square(np.subtract(evidence.values[n], evidence.truth[n])))) for n in wrong))
    low = evidence.gamma_lower <= 0.0 or (evidence.error_bound is not None and evidence.error_bound >= size > 0.0)
    if low:
        labels.append(Failure.MARGIN)
    if evidence.erased:
        labels.append(Failure.PARSE_FAILURE)
    if not labels or (not absent and not low and len(wrong) <= evidence.k and not evidence.erased):
        labels.append(Failure.OPTIMISATION)
    return tuple(labels)


def count_failures(failures: Sequence[tuple[Failure, ...]]) -> dict[str, int]:
    """How often each label occurs over a batch."""
    return {str(label): sum(label in labels for labels in failures) for label in Failure}


def _equal(value: Values, evidence: FailureEvidence, node: str) -> bool:
    return float(np.linalg.norm(np.subtract(value, evidence.truth[node]))) <= evidence.tolerance
