"""Sentences of the paper held to the machinery: anchors, the order of errors, correlated copies, a
change of units.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from scenarios.kit.designs import DESIGNS, FieldDesign, PreparedDesign, prepared
from scenarios.noise_laws import field
from scenarios.paper_audit.slips import Rows, Slip
from solvers import margin

DRAWS = 400
NOISE = 0.1


def anchored_designs() -> list[dict[str, Any]]:
    """Margins with and without an anchor, and of the anchored triangle by the node that is
    anchored.
    """
    named = {design.name: design for design in DESIGNS}
    rows = []
    for design, node in (
        *((named[name], 0) for name in ("spanning_tree", "typed_complete")),
        *((named["triangle_plus_isolate"], node) for node in (0, 3)),
    ):
        anchored = FieldDesign("anchored", design.edges, (node,), 0.0)
        rows.append(
            {
                "design": design.name,
                "anchor": node,
                "without": prepared(design.name, 1).gamma,
                "with_anchor": PreparedDesign(anchored, 1).gamma,
            }
        )
    return rows


def _judge_anchors(rows: Rows) -> tuple[bool, str]:
    same = [row["design"] for row in rows if math.isclose(row["with_anchor"], row["without"], abs_tol=1e-9)]
    first, last = (row["with_anchor"] for row in rows[-2:])
    return (
        "typed_complete" in same and first == 0.0 and math.isclose(last, 1.0, abs_tol=1e-9),
        (
            f"unchanged by an anchor: {', '.join(same)}; triangle with the anchor at node 0: {first:.3f}, at the"
            f" isolated node: {last:.3f}"
        ),
    )


def order_of_errors() -> list[dict[str, Any]]:
    """Pairs of designs with positive margins on the same error and equally large noise: how often
    the larger margin has the larger error.
    """
    ready = [prepared(d.name, 1) for d in DESIGNS if prepared(d.name, 1).gamma > 0]
    rng = np.random.default_rng(0)
    left: list[list[float]] = [[] for _ in ready]
    for _ in range(DRAWS):
        error = np.zeros(4)
        error[int(rng.integers(4))] = rng.choice([-1.0, 1.0])
        for found, design in zip(left, ready, strict=True):
            noise = rng.normal(size=design.matrix.shape[0])
            noise *= NOISE / float(np.linalg.norm(noise))
            decoded = design.decoder.decode(design.matrix @ error + noise, k=1, epsilon=0.0)
            found.append(float(np.linalg.norm(np.asarray(decoded.error) - error)))
    rows = []
    for a, b in combinations(range(len(ready)), 2):
        low, high = sorted((a, b), key=lambda i: ready[i].gamma)
        if math.isclose(ready[low].gamma, ready[high].gamma, abs_tol=1e-9):
            continue
        rows.append(
            {
                "smaller_margin": ready[low].design.name,
                "larger_margin": ready[high].design.name,
                "gamma_smaller": ready[low].gamma,
                "gamma_larger": ready[high].gamma,
                "draws": DRAWS,
                "larger_margin_has_larger_error": sum(y > x for x, y in zip(left[low], left[high], strict=True)),
                "mean_error_smaller": float(np.mean(left[low])),
                "mean_error_larger": float(np.mean(left[high])),
                "bound_broken": sum(value > 2 * NOISE / ready[i].gamma for i in (low, high) for value in left[i]),
            }
        )
    return rows


def _judge_order(rows: Rows) -> tuple[bool, str]:
    turned, draws = (sum(row[key] for row in rows) for key in ("larger_margin_has_larger_error", "draws"))
    broken = sum(row["bound_broken"] for row in rows)
    reversed_means = sum(row["mean_error_larger"] > row["mean_error_smaller"] for row in rows)
    return (
        turned > 0 and broken == 0,
        (
            f"the larger margin has the larger error in {turned} of {draws} comparisons, on average in {reversed_means}"
            f" of {len(rows)} pairs of designs; {broken} bounds broken"
        ),
    )


def correlated_copies() -> list[dict[str, Any]]:
    """Two copies of one check with correlated noise: the margin, beside one copy and two
    independent ones.
    """
    pair = np.array([[-1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])

    def margin(spread: float, correlation: float) -> float:
        sigma = np.diag([1.0, 1.0, spread**2])
        sigma[1, 2] = sigma[2, 1] = correlation * spread
        return float(field(pair, sigma).margin().value)

    one = float(field(pair[:2], np.eye(2)).margin().value)
    return [
        {
            "deviation_of_second": spread,
            "correlation": correlation,
            "margin": margin(spread, correlation),
            "one_copy": one,
            "independent": margin(spread, 0.0),
            "between": one - 1e-9 <= margin(spread, correlation) <= margin(spread, 0.0) + 1e-9,
        }
        for spread, correlation in ((1.0, 0.9), (1.0, 0.5), (1.0, -0.5), (1.0, -0.9), (2.0, 0.5), (2.0, 0.95))
    ]


def _judge_copies(rows: Rows) -> tuple[bool, str]:
    above = [row for row in rows if row["margin"] > row["independent"] + 1e-9]
    told = "; ".join(
        f"correlation {row['correlation']:g}, deviations 1 and {row['deviation_of_second']:g}: {row['margin']:.3f}"
        f" above {row['independent']:.3f}"
        for row in above
    )
    kinds = {row["correlation"] > 0 for row in above}
    return kinds == {True, False}, told or "all between"


def change_of_units() -> list[dict[str, Any]]:
    """z₂ = 3z₁ with an anchor at z₁, and the same in canonical coordinates: which metrics have to
    be carried along.
    """
    raw, canonical = np.array([[-3.0, 1.0], [1.0, 0.0]]), np.array([[-1.0, 1.0], [1.0, 0.0]])
    domain, rows = np.diag([1.0, 1 / 3]), np.diag([3.0, 1.0])
    return [
        {"coordinates": words, "gamma_1": float(margin(matrix, k=1).value)}
        for words, matrix in (
            ("as asked", raw),
            ("canonical, nothing carried along", canonical),
            ("canonical, norm of the answers carried along", canonical @ domain),
            ("canonical, norms of answers and rows carried along", rows @ canonical @ domain),
        )
    ]


def _judge_units(rows: Rows) -> tuple[bool, str]:
    asked, _, domain, both = (row["gamma_1"] for row in rows)
    return (
        abs(domain - asked) > 1e-3 and math.isclose(both, asked, rel_tol=1e-9),
        f"γ₁ {asked:.4f} as asked, {domain:.4f} with the domain norm carried along, {both:.4f} with the rows' as well",
    )


SLIPS = (
    Slip(
        "anchors",
        "γ₁ of designs without and with one full-node anchor.",
        anchored_designs,
        _judge_anchors,
        lambda rows: (
            "Anchors. The margin is a minimum over pairs of nodes, and the complete design has pairs that an anchor at"
            " another node does not touch. The text places every anchor at node zero; with that the printed margin"
            " 1.000 of the anchored isolate would be 0."
        ),
    ),
    Slip(
        "order-of-errors",
        "The five designs with positive margin on the same wrong answer of size 1 and noise of norm 0.1 in a random"
        " direction.",
        order_of_errors,
        _judge_order,
        lambda rows: (
            "Order of errors. The margin bounds the worst error and promises nothing about the order of two errors: one"
            " direction of the noise or one wrong node may suit a design with a smaller margin. The paper says as much"
            ' elsewhere ("a small γ_k does not predict that typical errors must be large").'
        ),
    ),
    Slip(
        "correlated-copies",
        "Two copies of a check at one end of a relation, the first with deviation 1: covariance-aware γ₁ beside that of"
        " one copy and of independent ones.",
        correlated_copies,
        _judge_copies,
        lambda rows: (
            "Correlated copies. The sentence holds for copies with equal noise and a correlation from 0 to 1. Errors"
            " that go against each other cancel in the mean, and the noisier of two correlated copies tells the error"
            " of the better one."
        ),
    ),
    Slip(
        "units",
        "The scaling example with an anchor at its first node.",
        change_of_units,
        _judge_units,
        lambda rows: (
            "Units. Dividing z₂ by 3 turns the row [−3, 1] into 3·[−1, 1]: to write [−1, 1] is a second change, of the"
            " row's weight, and the margin follows it."
        ),
    ),
)
