"""One cell: complete identity field over the first j nodes of a panel, at most k wrong.

What repair certifies, and whether it is true.

Items are grouped by their pattern (who says the same as whom, and who says the gold value), so that
`repair_many` decides every item although it is called once per pattern. `counted` is the slow
obvious twin: on such a field a value is certified exactly when more than 2k answers are readable
and all but k of them agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.problem import Problem
from rrf_design.repairing import repair_many
from scenarios.data_set_promises.panels import Codes

Pattern = tuple[int, ...]
GOLD, SILENT = 0, -1


def patterns(answers: Codes, gold: Codes) -> list[Pattern]:
    """Per item: 0 for the gold value, 1, 2, … for wrong ones as they come, -1 for an answer that
    can't be read.
    """
    result = []
    for row, truth in zip(answers.tolist(), gold.tolist(), strict=True):
        wrong: dict[int, int] = {}
        result.append(
            tuple(SILENT if v < 0 else GOLD if v == truth else wrong.setdefault(v, len(wrong) + 1) for v in row)
        )
    return result


def complete_field(nodes: int, k: int, units: Sequence[int] | None = None) -> Problem:
    """Every answer compared with every other; `units` gives each node the number of the unit that
    it fails with.
    """
    relations = [{"id": f"r{a}-{b}", "tail": str(a), "head": str(b)} for a, b in combinations(range(nodes), 2)]
    own = [{} if units is None else {"unit": f"unit {units[n]}"} for n in range(nodes)]
    listed = [{"id": str(n), "dim": 1, **own[n]} for n in range(nodes)]
    return Problem(name="complete", k=k, nodes=listed, relations=relations)


def counted(pattern: Pattern, k: int) -> tuple[bool, int | None]:
    """Whether the margin is positive, and the certified value or None."""
    read = [code for code in pattern if code != SILENT]
    positive = len(read) > 2 * k
    value, votes = Counter(read).most_common(1)[0] if read else (SILENT, 0)
    return positive, value if positive and votes >= len(read) - k else None


def certified(
    found: Sequence[Pattern], k: int, units: Sequence[int] | None = None
) -> dict[Pattern, tuple[bool, int | None]]:
    """The same for each pattern from `repair_many`: margin and verdict decide, nothing is
    counted.
    """
    silent = [pattern for pattern in dict.fromkeys(found) if not any(code != SILENT for code in pattern)]
    distinct = [pattern for pattern in dict.fromkeys(found) if pattern not in silent]
    fields = [{str(n): None if code == SILENT else float(code) for n, code in enumerate(p)} for p in distinct]
    # Without any answer there is nothing to repair, and nothing is certified.
    result: dict[Pattern, tuple[bool, int | None]] = dict.fromkeys(silent, (False, None))
    if not distinct:
        return result
    problem = complete_field(len(distinct[0]), k, units)
    for pattern, item in zip(distinct, repair_many(problem, fields).items, strict=True):
        value = item.repaired["0"] if item.verdict.passes else None
        result[pattern] = item.gamma_lower > 0, None if value is None else round(float(np.ravel(value)[0]))
    return result


def cell(answers: Codes, gold: Codes, *, nodes: int, k: int) -> dict[str, Any]:
    """Counts over items.

    `premise_false`: more than k readable answers are wrong though the margin is certified.
    """
    found = patterns(answers[:, :nodes], gold)
    decided = certified(found, k)
    wrong = np.array([sum(code > GOLD for code in p) for p in found])
    positive = np.array([decided[p][0] for p in found])
    told = np.array([SILENT if decided[p][1] is None else decided[p][1] for p in found])
    false = positive & (wrong > k)
    delivered = positive & (told != SILENT)
    bad = delivered & (told != GOLD)
    return {
        "items": len(found),
        "margin_certified": int(positive.sum()),
        "premise_false": int(false.sum()),
        "value_certified": int(delivered.sum()),
        "value_wrong": int(bad.sum()),
        "wrong_though_premise_true": int((bad & ~false).sum()),
        "premise_false_and_noticed": int((false & ~delivered).sum()),
        "patterns": len(decided),
        "disagree_with_counting": sum(decided[p] != counted(p, k) for p in decided),
    }


def ratio_interval(
    hits: NDArray[np.float64], tries: NDArray[np.float64], *, draws: int, seed: int
) -> tuple[float, float, float]:
    """Σ hits / Σ tries over items, and its 95 % interval from resampling whole items."""
    rng = np.random.default_rng(seed)
    if not tries.sum():
        return float("nan"), float("nan"), float("nan")
    weights = rng.multinomial(len(hits), np.full(len(hits), 1 / len(hits)), size=draws)
    below = weights @ tries
    values = (weights @ hits)[below > 0] / below[below > 0]
    low, high = np.percentile(values, [2.5, 97.5])
    return float(hits.sum() / tries.sum()), float(low), float(high)
