"""Judges that were asked in several ways: nodes called JUDGE/PROMPT/ORDER, where "ba" shows the
second output first.

Position bias (how often the output shown first wins), accuracy against people's labels, which asks
are wrong together, and the premise "at most k units are wrong" by unit. A unit of asks is wrong
when any of its asks is; a value is explained when at most k units have an ask that says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.data_set_promises.panels import Codes
from scenarios.premise_on_real_answers.cells import GOLD, SILENT, Pattern, certified, patterns, ratio_interval

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ask:
    judge: str
    prompt: str
    order: str

    @classmethod
    def of(cls, node: str) -> Ask | None:
        parts = node.split("/")
        return cls(*parts) if len(parts) == 3 and parts[2] in ("ab", "ba") else None


@dataclass(frozen=True, slots=True)
class JudgeBench:
    """Verdicts (items, asks) as patterns against gold, and which output was shown first and won
    (NaN where unreadable).
    """

    asks: tuple[Ask, ...]
    found: list[Pattern]
    first: Array

    @classmethod
    def of(cls, nodes: Sequence[str], answers: Codes, gold: Codes, first_is_gold: NDArray[np.bool_]) -> JudgeBench:
        """`first_is_gold`: whether the gold output is the one that order "ab" shows first."""
        asks = tuple(ask for ask in map(Ask.of, nodes) if ask is not None)
        found = patterns(answers, gold)
        codes = np.array(found)
        gold_first = np.array([ask.order == "ab" for ask in asks])[None, :] == first_is_gold[:, None]
        first = np.where(codes == SILENT, np.nan, (codes == GOLD) == gold_first)
        return cls(asks, found, first.astype(np.float64))

    def wrong(self) -> Array:
        codes = np.array(self.found, dtype=np.float64)
        return np.where(codes == SILENT, np.nan, codes > GOLD).astype(np.float64)


def bias(bench: JudgeBench, *, draws: int, seed: int) -> list[dict[str, Any]]:
    """By judge and prompt: accuracy in either order, how often the output shown first wins, and how
    often the order changes the verdict.
    """
    wrong = bench.wrong()
    place = {ask: n for n, ask in enumerate(bench.asks)}
    rows = []
    for judge, prompt in dict.fromkeys((ask.judge, ask.prompt) for ask in bench.asks):
        pair = [place.get(Ask(judge, prompt, order)) for order in ("ab", "ba")]
        if None in pair:
            continue
        both = [int(n) for n in pair if n is not None]
        seen = ~np.isnan(wrong[:, both])
        shown = np.where(seen, np.nan_to_num(bench.first[:, both]), 0.0).sum(axis=1)
        value, low, high = ratio_interval(shown, seen.sum(axis=1).astype(np.float64), draws=draws, seed=seed)
        whole = seen.all(axis=1)
        rows.append(
            {
                "judge": judge,
                "prompt": prompt,
                "accuracy_ab": 1 - float(np.nanmean(wrong[:, both[0]])),
                "accuracy_ba": 1 - float(np.nanmean(wrong[:, both[1]])),
                "first_shown_wins": value,
                "low": low,
                "high": high,
                "order_changes_verdict": float((wrong[whole, both[0]] != wrong[whole, both[1]]).mean()),
            }
        )
    return rows


KINDS = (
    "same judge and prompt, other order",
    "same judge, other prompt",
    "other judge, same prompt",
    "other judge and prompt",
)


def _kind(a: Ask, b: Ask) -> str | None:
    if (a.judge, a.prompt) == (b.judge, b.prompt):
        return KINDS[0]
    if a.order != b.order:
        return None
    if a.judge == b.judge:
        return KINDS[1]
    return KINDS[2] if a.prompt == b.prompt else KINDS[3]


def together(bench: JudgeBench, *, draws: int, seed: int) -> list[dict[str, Any]]:
    """Two asks wrong together, relative to independence: Σ P(both wrong) / Σ P(a wrong) P(b wrong)
    over pairs of a kind.

    An unreadable verdict counts as not wrong here, for all kinds alike.
    """
    wrong = np.nan_to_num(bench.wrong())
    rows = []
    for kind in KINDS:
        pairs = [
            (a, b) for a, b in combinations(range(len(bench.asks)), 2) if _kind(bench.asks[a], bench.asks[b]) == kind
        ]
        if not pairs:
            continue
        value, low, high = _together(wrong, pairs, draws=draws, seed=seed)
        rows.append({"kind": kind, "pairs": len(pairs), "together_over_independent": value, "low": low, "high": high})
    return rows


def _together(wrong: Array, pairs: Sequence[tuple[int, int]], *, draws: int, seed: int) -> tuple[float, float, float]:
    """Σ P(both wrong) / Σ P(a wrong) P(b wrong) over pairs of asks, and its 95 % interval from
    resampling items.
    """
    left, right = np.array(pairs).T
    joint = wrong[:, left] * wrong[:, right]

    def ratio(weight: Array) -> float:
        rates = weight @ wrong
        return float((weight @ joint).sum() / (rates[left] * rates[right]).sum())

    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(wrong), np.full(len(wrong), 1 / len(wrong)), size=draws) / len(wrong)
    low, high = np.percentile([ratio(weight) for weight in weights], [2.5, 97.5])
    return ratio(np.full(len(wrong), 1 / len(wrong))), float(low), float(high)


def _explained(pattern: Pattern, units: Sequence[Sequence[int]], k: int) -> int | None:
    """The value that all but k units support, where readable units are more than 2k; None
    otherwise.
    """
    read = [[pattern[n] for n in unit if pattern[n] != SILENT] for unit in units]
    read = [unit for unit in read if unit]
    if len(read) <= 2 * k:
        return None
    for value in dict.fromkeys(code for unit in read for code in unit):
        if sum(any(code != value for code in unit) for unit in read) <= k:
            return value
    return None


def _fields(bench: JudgeBench) -> list[tuple[str, str, list[list[list[int]]]]]:
    """Fields to compare: words, unit, and one list of units per field."""
    judges = list(dict.fromkeys(ask.judge for ask in bench.asks))
    prompts = list(dict.fromkeys(ask.prompt for ask in bench.asks))

    def at(judge: str | None = None, prompt: str | None = None, order: str | None = None) -> list[int]:
        wanted = (judge, prompt, order)
        return [
            n
            for n, ask in enumerate(bench.asks)
            if all(w is None or w == has for w, has in zip(wanted, (ask.judge, ask.prompt, ask.order), strict=True))
        ]

    every = [[[n] for n in at(prompt=p)] for p in prompts]
    by_judge = [[at(j, p) for j in judges] for p in prompts]
    own = [[[n] for n in at(judge=j)] for j in judges]
    by_prompt = [[at(j, p) for p in prompts] for j in judges]
    return [
        (
            "prompts of one judge, one order",
            "ask",
            [[[n] for n in at(j, None, o)] for j in judges for o in ("ab", "ba")],
        ),
        (
            "judges with one prompt, one order",
            "ask",
            [[[n] for n in at(None, p, o)] for p in prompts for o in ("ab", "ba")],
        ),
        ("judges with one prompt, both orders", "ask", every),
        ("judges with one prompt, both orders", "judge", by_judge),
        ("prompts of one judge, both orders", "ask", own),
        ("prompts of one judge, both orders", "prompt", by_prompt),
    ]


def units(bench: JudgeBench, *, k: int, draws: int, seed: int) -> list[dict[str, Any]]:
    """How often "at most k units are wrong" is false, and what is wrong among what repair certifies
    under it, averaged over the fields of a kind.

    `disagree_with_counting`: patterns on which repair with declared units and plain counting of
    units differ.
    """
    rows = []
    for words, unit, fields in _fields(bench):
        fields = [field for field in fields if len(field) > 2 * k]
        if not fields:
            continue
        false, told, bad = (np.zeros((len(bench.found), len(fields))) for _ in range(3))
        differ = tried = 0
        for number, field in enumerate(fields):
            places = [n for each in field for n in each]
            owner = [place for place, each in enumerate(field) for _ in each]
            seen = [tuple(pattern[n] for n in places) for pattern in bench.found]
            decided = certified(seen, k, owner)
            differ += sum(found[1] != _explained(own, _grouped(owner), k) for own, found in decided.items())
            tried += len(decided)
            for item, pattern in enumerate(bench.found):
                value = decided[seen[item]][1]
                false[item, number] = sum(any(pattern[n] > GOLD for n in each) for each in field) > k
                told[item, number] = value is not None
                bad[item, number] = value is not None and value != GOLD
        per_item = [part.sum(axis=1) for part in (false, told, bad)]
        tries = np.full(len(bench.found), float(len(fields)))
        premise, delivered, wrong = (
            ratio_interval(hits, base, draws=draws, seed=seed)
            for hits, base in ((per_item[0], tries), (per_item[1], tries), (per_item[2], per_item[1]))
        )
        rows.append(
            {
                "field": words,
                "unit": unit,
                "units": len(fields[0]),
                "k": k,
                "fields": len(fields),
                "premise_false": premise[0],
                "premise_low": premise[1],
                "premise_high": premise[2],
                "certified": delivered[0],
                "wrong_if_certified": wrong[0],
                "wrong_low": wrong[1],
                "wrong_high": wrong[2],
                "patterns": tried,
                "disagree_with_counting": differ,
            }
        )
    return rows


def _grouped(owner: Sequence[int]) -> list[list[int]]:
    """Places by the unit that owns them."""
    return [[place for place, unit in enumerate(owner) if unit == each] for each in dict.fromkeys(owner)]


def together_by_unit(bench: JudgeBench, *, draws: int, seed: int) -> list[dict[str, Any]]:
    """Which judges, and which prompts, are wrong together: two units over all asks that differ in
    nothing else, relative to independence.
    """
    wrong = np.nan_to_num(bench.wrong())
    place = {ask: n for n, ask in enumerate(bench.asks)}
    rows = []
    for kind in ("judge", "prompt"):
        names = list(dict.fromkeys(getattr(ask, kind) for ask in bench.asks))
        for a, b in combinations(names, 2):
            pairs = [
                (n, place[other])
                for ask, n in place.items()
                if getattr(ask, kind) == a and (other := replace(ask, **{kind: b})) in place
            ]
            if not pairs:
                continue
            value, low, high = _together(wrong, pairs, draws=draws, seed=seed)
            left, right = np.array(pairs).T
            rows.append(
                {
                    "unit": kind,
                    "first": a,
                    "second": b,
                    "first_wrong": float(wrong[:, left].mean()),
                    "second_wrong": float(wrong[:, right].mean()),
                    "both_wrong": float((wrong[:, left] * wrong[:, right]).mean()),
                    "together_over_independent": value,
                    "low": low,
                    "high": high,
                }
            )
    return rows
