"""Does the margin order repair error on natural answers?

The paper's ten designs and statistics on the first four nodes of a panel.

Answers are one-hot vectors (the gold value first), anchors say the gold value, as the paper's do.
The error of a row is ‖ẑ − z*‖/‖e*‖. Items with one wrong answer keep to the premise k = 1, items
with more do not; both are reported, and each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.data_set_promises.panels import Codes
from scenarios.kit.association import cluster_bootstrap, grouped_prediction, spearman, within_item_permutation
from scenarios.kit.designs import DESIGNS, NODES, prepared
from scenarios.premise_on_real_answers.cells import GOLD, SILENT, Pattern, patterns

Array = NDArray[np.float64]
DIM = NODES + 1
"""Four answers can be four different wrong ones, beside the gold value."""
SUBSETS = ("one wrong", "more wrong", "any wrong")
FOLDS = 5


def one_hot(pattern: Pattern) -> Array:
    return np.eye(DIM)[list(pattern)]


@cache
def repair_error(design: str, pattern: Pattern) -> float:
    """‖ẑ − z*‖/‖e*‖ after repair with k = 1 under a design."""
    truth = one_hot((GOLD,) * NODES)
    field = one_hot(pattern)
    repaired = prepared(design, DIM).repair(field, truth[0])
    return round(float(np.linalg.norm(repaired.field - truth) / np.linalg.norm(field - truth)), 9)


def association(gamma: Array, error: Array, rows: NDArray[np.int64]) -> float:
    """Spearman's ρ of margin and negative error over some rows."""
    return spearman(gamma[rows], -error[rows])


@dataclass(frozen=True, slots=True)
class Played:
    """Items of one subset under all ten designs, as columns: a row per item and design, designs
    within items.
    """

    gamma: Array
    error: Array
    items: list[int]
    controls: Array
    """Numbers of relations and anchors, and how much the four answers disagree."""

    @classmethod
    def of(cls, own: Sequence[Pattern]) -> Played:
        shape = np.array([[len(design.edges), len(design.anchors)] for design in DESIGNS], dtype=np.float64)
        apart = np.array([sum(a != b for a, b in combinations(p, 2)) for p in own], dtype=np.float64)
        return cls(
            np.tile([prepared(design.name, DIM).gamma for design in DESIGNS], len(own)),
            np.array([repair_error(design.name, p) for p in own for design in DESIGNS]),
            np.repeat(np.arange(len(own)), len(DESIGNS)).tolist(),
            np.column_stack([np.tile(shape, (len(own), 1)), np.repeat(apart, len(DESIGNS))]),
        )

    @classmethod
    def together(cls, parts: Sequence[Played]) -> Played:
        """Several panels in one, with a control for each but the first."""
        starts = np.cumsum([0, *(len(set(part.items)) for part in parts)])
        owner = np.repeat(np.arange(len(parts)), [len(part.items) for part in parts])
        return cls(
            np.concatenate([part.gamma for part in parts]),
            np.concatenate([part.error for part in parts]),
            [int(start) + item for start, part in zip(starts, parts, strict=False) for item in part.items],
            np.column_stack(
                [np.concatenate([part.controls for part in parts]), *((owner == n) for n in range(1, len(parts)))]
            ),
        )


def subset_of(answers: Codes, gold: Codes, subset: str) -> tuple[list[Pattern], int]:
    """Items with as many wrong answers among the first four as the subset has, and how many were
    left out as unreadable.
    """
    wrong = {"one wrong": (1,), "more wrong": tuple(range(2, NODES + 1)), "any wrong": tuple(range(1, NODES + 1))}
    found = patterns(answers[:, :NODES], gold)
    kept = [p for p in found if SILENT not in p]
    return [p for p in kept if sum(code > GOLD for code in p) in wrong[subset]], len(found) - len(kept)


def predicted(
    panels: Sequence[tuple[Codes, Codes]], *, permutations: int, bootstrap: int, seed: int
) -> list[dict[str, Any]]:
    """One row per subset of one panel, or of several taken together (strata of the resampling,
    controls of the regression).
    """
    rows = []
    for subset in SUBSETS:
        chosen = [subset_of(answers, gold, subset) for answers, gold in panels]
        own = [patterns_ for patterns_, _ in chosen if len(patterns_) > 1]
        if not own:
            continue
        played = [Played.of(part) for part in own]
        strata = np.repeat(np.arange(len(own)), [len(part) * len(DESIGNS) for part in own]).tolist()
        rows.append(
            {
                "subset": subset,
                "items": sum(map(len, own)),
                "unreadable": sum(left for _, left in chosen),
                **_statistics(
                    Played.together(played), strata, permutations=permutations, bootstrap=bootstrap, seed=seed
                ),
            }
        )
    return rows


def _statistics(
    played: Played, strata: Sequence[int], *, permutations: int, bootstrap: int, seed: int
) -> dict[str, Any]:
    """The paper's: rank association with an interval over items, shuffles within items, held-out
    gain of γ₁ beyond the controls.
    """
    gamma, error, items = played.gamma, played.error, played.items
    shuffled = within_item_permutation(gamma, error, items, draws=permutations, seed=seed)
    interval = cluster_bootstrap(partial(association, gamma, error), items, strata, draws=bootstrap, seed=seed)
    positive, exact = gamma > 0, error == 0
    enough = len(set(items)) >= FOLDS and bool(exact.any()) and not bool(exact.all())
    fitted = grouped_prediction(played.controls, gamma, exact, items, folds=FOLDS) if enough else None
    return {
        "spearman": shuffled.observed,
        "low": interval.low,
        "high": interval.high,
        "p": shuffled.p,
        "spearman_of_its_sign": spearman(positive, -error),
        "auc_controls": None if fitted is None else fitted.auc_controls,
        "auc_gain": None if fitted is None else fitted.gain,
        "coefficient": None if fitted is None else fitted.coefficient,
        "error_at_zero_margin": float(error[~positive].mean()),
        "error_at_positive_margin": float(error[positive].mean()),
        "worse_than_no_repair": float((error[positive] > 1 + 1e-9).mean()),
        "recovered_at_positive_margin": float(exact[positive].mean()),
    }
