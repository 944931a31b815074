"""Judges measured: how often each is right, or how far off it is, whether it favours a place, and
how often two of them agree.

From judgements whose truth is known. Every share has an exact two-sided interval (Clopper and
Pearson), every σ an upper limit; each holds for itself at the stated confidence. They are proposals
for the recipe's author, and nothing takes them silently.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rrf_design.blocks import Anchor
from rrf_design.checker.promise_words import number_above, percent_about, percent_above, percent_below, plain_percent
from rrf_design.errors import InputError
from rrf_design.promises._truths import Said, Truth, place_of, same
from rrf_design.questions.templates import strict_number
from rrf_design.risk import best_risk, rate_bound

if TYPE_CHECKING:
    from rrf_design.acquisition.result import Acquisition, Bought
    from rrf_design.questions.datasets import Dataset

KEYS = ("id", "judge", "value", "truth", "position")
FEWEST = 2


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said of an item, and what is true.

    `position`: where the right answer stood among those it was shown.
    """

    item: str
    judge: str
    value: Said | None
    truth: Said
    position: str | None = None
    tolerance: float | None = None
    """How far off it may be and still count as right."""

    @classmethod
    def against(cls, truth: Truth, item: str, judge: str, value: Said | None) -> Judgement:
        """Where several values are true, it is held against the one that it said, else the
        first.
        """
        own = (one for one in truth.values if value is not None and same(value, one, truth.tolerance))
        return cls(item, judge, value, next(own, truth.values[0]), tolerance=truth.tolerance)


def read_judgements(path: str | os.PathLike[str]) -> list[Judgement]:
    """Rows `id judge value truth [position]` of a table; an empty value is one that could not be
    read.
    """
    from rrf_design.questions.tables import RowFaults, open_table

    table = open_table(path)
    faults = RowFaults(table.name)
    found = []
    for row in table.rows(faults):
        missing = [key for key in KEYS[:4] if key not in row.cells]
        if missing:
            words = f"{', '.join(KEYS[:4])} and perhaps position"
            raise InputError(f"{path}: row {row.number} has no column {missing[0]!r}; judgements have {words}")
        truth, place = _said(row.cells["truth"]), row.cells.get("position")
        if truth is None:
            faults.add(row.number, "it has no truth; leave rows without labels out")
            continue
        shown = None if place is None or not str(place).strip() else str(place).strip()
        value = _said(row.cells["value"])
        found.append(Judgement(str(row.cells["id"]), str(row.cells["judge"]), value, truth, shown))
    faults.refuse(len(found) + faults.count)
    return found


def judgements_of(run: Acquisition, dataset: Dataset) -> list[Judgement]:
    """What the verifiers of a run said of delivered values whose truth is known; a judge is called
    as its check is.
    """
    from rrf_design.checks import delivered_node
    from rrf_design.promises._truths import GoldRule, read_truth

    said: dict[str, list[Bought]] = {}
    for entry in run.purchases:
        if entry.source == "verifier":
            said.setdefault(entry.item, []).append(entry)
    found = []
    for item in dataset.items_in_order():
        if item.id not in said:
            continue
        node = delivered_node(item.problem)
        rule = GoldRule.of(dataset.recipe.data, tolerance=item.problem.delta)
        truth = read_truth(item.gold, item.parsers.get(node), rule)
        for entry in said[item.id]:
            block = item.problem.block_by_id.get(entry.name)
            if truth is not None and isinstance(block, Anchor) and block.nodes == (node,) and block.rows is None:
                found.append(Judgement.against(truth, item.id, entry.name, entry.value))
    return found


def _said(cell: Any) -> Said | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        return (strict_number(cell),)
    except ValueError:
        return str(cell).strip()


def measure_judges(judgements: Iterable[Judgement], *, confidence: float = 0.95) -> dict[str, Any]:
    """Every judge by itself, every pair of them, and what that proposes."""
    listed = list(judgements)
    if not listed:
        raise InputError("there are no judgements to measure")
    by_judge: dict[str, dict[str, Judgement]] = {}
    for one in listed:
        own = by_judge.setdefault(one.judge, {})
        if one.item in own:
            raise InputError(f"judge {one.judge!r}: two judgements of item {one.item!r}; each item is judged once")
        own[one.item] = one
    judges = [_judge(name, list(own.values()), confidence) for name, own in by_judge.items()]
    pairs = [_pair(a, b, by_judge, confidence) for a, b in combinations(by_judge, 2)]
    found = {"confidence": confidence, "judges": judges, "agreement": [pair for pair in pairs if pair["items"]]}
    return {**found, "proposals": [words for judge in judges for words in _proposals(judge, confidence)]}


def interval(count: int, hits: int, confidence: float) -> list[float]:
    """The rates that `hits` of `count` do not refute, both sides together (Clopper and Pearson);
    rounded outwards.
    """
    each = (1 + Fraction(str(confidence))) / 2
    low = 1.0 - rate_bound(count, count - hits, each)
    return [max(0.0, math.nextafter(low, 0.0)), rate_bound(count, hits, each)]


def between(limits: Sequence[float]) -> tuple[str, str]:
    """Both ends of an interval in words: the lower rounded downwards, the upper upwards."""
    low, high = limits
    return percent_below(Fraction(low)), percent_above(Fraction(high))


def _judge(name: str, said: Sequence[Judgement], confidence: float) -> dict[str, Any]:
    read = [one for one in said if one.value is not None]
    right = sum(_right(one) for one in read)
    found: dict[str, Any] = {"judge": name, "judged": len(said), "unread": len(said) - len(read), "right": right}
    if read:
        found |= {"rate": right / len(read), "interval": interval(len(read), right, confidence)}
    errors = [
        tuple(a - b for a, b in zip(one.value, one.truth, strict=True))
        for one in read
        if isinstance(one.value, tuple) and isinstance(one.truth, tuple) and len(one.value) == len(one.truth)
    ]
    options = all(place_of(one.truth) is not None for one in read)
    if (
        len(errors) == len(read) >= FEWEST and len({one.truth for one in read}) > FEWEST and not options
    ):  # not two classes called 0 and 1, nor options
        found["sigma"] = _sigma(errors, len(said) - len(read), confidence)
    return found | ({"position": _position(read, confidence)} if any(one.position for one in read) else {})


def _sigma(errors: Sequence[tuple[float, ...]], unread: int, confidence: float) -> dict[str, Any]:
    """Of the coordinate that is worst, each at its part of the confidence: errors of one item are
    no independent ones. `largest` assumes nothing of how errors are distributed, `upper` does.
    """
    coordinates = list(zip(*errors, strict=True))
    each = 1.0 - (1.0 - confidence) / len(coordinates)
    worst = max((_calibrate(own, unread=unread, confidence=each) for own in coordinates), key=lambda one: one.sigma)
    return {
        "upper": worst.sigma,
        "rms": worst.rms,
        "bias": worst.bias,
        "largest": max(abs(number) for error in errors for number in error),
        "share_beyond": best_risk(len(errors), confidence),
    }


def _position(read: Sequence[Judgement], confidence: float) -> dict[str, Any]:
    """How often it is right by where the right answer stood, and how likely such a difference is by
    chance.
    """
    from scipy.stats import fisher_exact

    places = sorted({one.position for one in read if one.position is not None})
    counts = {
        place: (
            sum(_right(one) for one in read if one.position == place),
            sum(one.position == place for one in read),
        )
        for place in places
    }
    table = [[right, total - right] for right, total in counts.values()]
    p = math.nan
    if len(places) > 1:  # each place against the others, exactly, and as many tests as there are (two places make one)
        whole = [sum(column) for column in zip(*table, strict=True)]
        each = [fisher_exact([row, [whole[0] - row[0], whole[1] - row[1]]])[1] for row in table]
        p = min(1.0, float(min(each)) * (1 if len(places) == 2 else len(places)))
    shares = [
        {"place": place, "judged": total, "right": right, "interval": interval(total, right, confidence)}
        for place, (right, total) in counts.items()
    ]
    return {"places": shares, "p": None if math.isnan(p) else p, "biased": not math.isnan(p) and p <= 1.0 - confidence}


def _pair(a: str, b: str, by_judge: Mapping[str, Mapping[str, Judgement]], confidence: float) -> dict[str, Any]:
    first, second = by_judge[a], by_judge[b]
    both = [(first[item], second[item]) for item in first if item in second]
    pairs = [(x, y) for x, y in both if x.value is not None and y.value is not None]
    agree = sum(same(x.value, y.value) for x, y in pairs if x.value is not None and y.value is not None)
    wrong = sum(not _right(x) and not _right(y) for x, y in pairs)
    found: dict[str, Any] = {"judges": [a, b], "items": len(pairs), "agree": agree, "both_wrong": wrong}
    return found | ({"interval": interval(len(pairs), agree, confidence)} if pairs else {})


def _right(one: Judgement) -> bool:
    return one.value is not None and same(one.value, one.truth, one.tolerance)


def _proposals(judge: Mapping[str, Any], confidence: float) -> list[str]:
    name, found = judge["judge"], []
    if "sigma" in judge:
        found.append(
            f"check by {name!r}: sigma = {number_above(judge['sigma']['upper'])} ({plain_percent(confidence)} sure that"
            f" it is no larger if errors are normal around 0, from {judge['judged'] - judge['unread']} labels; bias"
            f" {judge['sigma']['bias']:+.4g}). Whatever they are: none was off by more than"
            f" {number_above(judge['sigma']['largest'])}, and at most"
            f" {percent_above(Fraction(judge['sigma']['share_beyond']))} of all are"
        )
    elif "rate" in judge and judge["right"] < judge["judged"] - judge["unread"]:
        low, high = between(judge["interval"])
        wrong = number_above(math.nextafter(1.0 - judge["interval"][0], 2.0))
        found.append(
            f"check by {name!r}: rate = {wrong} (how often it is wrong, at most; it is right in"
            f" {percent_about(judge['rate'])} of its judgements, between {low} and {high}, {plain_percent(confidence)}"
            " sure)"
        )
    if judge.get("position", {}).get("biased"):
        found.append(
            f"check by {name!r}: how often it is right depends on where the right answer stands; ask it in both orders"
        )
    return found


@dataclass(frozen=True, slots=True)
class _VerifierCalibration:
    """How far a verifier was from known truths: declare `sigma` in its anchors."""

    sigma: float
    """Upper confidence limit of the root mean square error, bias included."""
    rms: float
    bias: float
    count: int
    unread: int


def _calibrate(errors: Sequence[float], *, unread: int = 0, confidence: float = 0.95) -> _VerifierCalibration:
    """Measure a verifier from its errors (verdict minus truth) on items whose truth is known.

    The bound treats the errors as centred Gaussians of unknown variance: sum of squares over a
    chi-square quantile.
    """
    if len(errors) < 2:
        raise InputError("calibration needs at least two verdicts with known truth")
    if not all(map(math.isfinite, errors)):
        raise InputError(
            "an error of the verifier is not a finite number; count verdicts that could not be read as unread"
        )
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence is {confidence:g}; it lies strictly between 0 and 1")
    from scipy.stats import chi2

    squares = math.fsum(error * error for error in errors)
    quantile = float(chi2.ppf(1.0 - confidence, len(errors)))
    return _VerifierCalibration(
        sigma=math.sqrt(squares / quantile),
        rms=math.sqrt(squares / len(errors)),
        bias=math.fsum(errors) / len(errors),
        count=len(errors),
        unread=unread,
    )
