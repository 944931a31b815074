"""Tables that an adversary made for one pass: errors hide where answers agree, scores mislead,
labels lure. The promise should be false in at most 5 % of them all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scenarios.data_set_promises.panels import Codes
from scenarios.one_pass.looks import left_wrong, walked

Generator = np.random.Generator
Made = tuple[Codes, Codes]
ALLOWED = 0.05


def crowd(rng: Generator, rows: int, right: float = 0.9, nodes: int = 4) -> Made:
    """Independent nodes whose wrong answers scatter over three values; gold is 0."""
    wrong = rng.random((rows, nodes)) >= right
    return np.where(wrong, rng.integers(1, 4, (rows, nodes)), 0), np.zeros(rows, dtype=np.int64)


def alike(rng: Generator, rows: int, wrong: int) -> Made:
    """Rows that nothing tells apart."""
    gold = np.zeros(rows, dtype=np.int64)
    gold[rng.permutation(rows)[:wrong]] = 7
    return np.zeros((rows, 2), dtype=np.int64), gold


def unanimous(rng: Generator, rows: int, wrong: int, right: float = 0.9) -> Made:
    """All nodes agree on so many rows, and are wrong."""
    answers, gold = crowd(rng, rows, right)
    places = rng.permutation(rows)[:wrong]
    answers[places], gold[places] = 0, 7
    return answers, gold


def copies(rng: Generator, rows: int, wrong: int) -> Made:
    """Five copies of one node beside two others."""
    answers, gold = unanimous(rng, rows, wrong)
    return np.concatenate([np.repeat(answers[:, :1], 4, axis=1), answers], axis=1), gold


def shared(rng: Generator, rows: int, share: float) -> Made:
    """On a share of the rows all nodes fail in the same way; chance says on how many."""
    answers, gold = crowd(rng, rows, 0.95)
    answers[rng.random(rows) < share] = 2
    return answers, gold


def cluster(rng: Generator, rows: int, part: float, wrong: int) -> Made:
    """Rows of one kind, which only one node tells from the others, hold all errors of agreement."""
    answers, gold = crowd(rng, rows, 0.95)
    kind = rng.permutation(rows)[: int(part * rows)]
    answers[kind] = 0
    answers[kind, 3] = 5
    gold[kind[:wrong]] = 7
    return answers, gold


def reversed_scores(rng: Generator, rows: int, wrong: int) -> Made:
    """Disputed rows are right where most say so; the wrong ones are those on which all agree."""
    answers, gold = np.zeros((rows, 4), dtype=np.int64), np.zeros(rows, dtype=np.int64)
    order = rng.permutation(rows)
    answers[order[: rows // 2], 3] = 1
    gold[order[rows // 2 : rows // 2 + wrong]] = 7
    return answers, gold


def lure(rng: Generator, rows: int, wrong: int) -> Made:
    """One node is right wherever all differ, so labels teach to believe it; of the rows where two
    agree against it, it is wrong on some.
    """
    answers, gold = np.zeros((rows, 3), dtype=np.int64), np.zeros(rows, dtype=np.int64)
    order = rng.permutation(rows)
    doubtful, rest = order[: rows // 4], order[rows // 4 :]
    answers[doubtful, 1], answers[doubtful, 2] = 1, 2
    answers[rest[: 3 * wrong], 0] = 3
    gold[rest[wrong : 3 * wrong]] = 3
    return answers, gold


def two_choices(rng: Generator, rows: int, wrong: int) -> Made:
    """Eight judges, two choices, seven of them wrong together on some rows."""
    answers = (rng.random((rows, 8)) > 0.85).astype(np.int64)
    gold = np.zeros(rows, dtype=np.int64)
    places = rng.permutation(rows)[:wrong]
    answers[places, :7], answers[places, 7] = 1, 0
    return answers, gold


Table = tuple[Callable[..., Made], int, float, dict[str, Any]]
NASTY: dict[str, Table] = {
    "all rows alike, M + 1 of 300 wrong, r = 5%": (alike, 300, 0.05, {"wrong": 16}),
    "all rows alike, a third of 300 wrong, r = 5%": (alike, 300, 0.05, {"wrong": 100}),
    "all rows alike, M + 1 of 1,000 wrong, r = 2%": (alike, 1000, 0.02, {"wrong": 21}),
    "M = 0, one of 50 unanimous and wrong, r = 1%": (unanimous, 50, 0.01, {"wrong": 1}),
    "M = 1, two of 50 unanimous and wrong, r = 2%": (unanimous, 50, 0.02, {"wrong": 2}),
    "M + 1 of 100 unanimous and wrong, r = 5%": (unanimous, 100, 0.05, {"wrong": 6}),
    "the same, all else agreed and right": (unanimous, 100, 0.05, {"wrong": 6, "right": 1.0}),
    "2M + 1 of 100 unanimous and wrong, r = 2%": (unanimous, 100, 0.02, {"wrong": 5}),
    "five copies of one node, M + 2 of 100 wrong, r = 5%": (copies, 100, 0.05, {"wrong": 7}),
    "shared errors on a tenth of 100, r = 5%": (shared, 100, 0.05, {"share": 0.1}),
    "one bad cluster of 120, r = 5%": (cluster, 120, 0.05, {"part": 0.25, "wrong": 9}),
    "scores reversed, M + 1 of 100, r = 10%": (reversed_scores, 100, 0.1, {"wrong": 11}),
    "labels lure, 80 rows, r = 5%": (lure, 80, 0.05, {"wrong": 6}),
    "two choices, seven judges wrong on M + 3 of 100, r = 10%": (two_choices, 100, 0.1, {"wrong": 13}),
}


def simulate_passes(name: str, *, times: int, seed: int) -> dict[str, Any]:
    """In how many of so many tables the promise was false."""
    make, rows, risk, settings = NASTY[name]
    false = 0
    for number in range(times):
        rng = np.random.default_rng([seed, number, *map(ord, f"one pass: {name}")])
        answers, gold = make(rng, rows, **settings)
        made = walked(answers, gold, risk=risk, seed=number)
        false += left_wrong(made, gold) > made.allowed
    return {"simulation": name, "times": times, "false": false, "rate": false / times, "allowed": ALLOWED}
