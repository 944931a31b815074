"""The paper's probabilistic appendix on one field: radii of random noise, whitening, shrinkage,
approximate sparsity, the Gaussian lower bound.

The field is complete over five scalar answers with two checks; as one block of rows it may have any
covariance, so that margins, radii and bounds come from the machinery (`certify`, `Problem.margin`)
and only the noise is drawn here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design import Noise, certify
from rrf_design.certificates import Tail
from rrf_design.problem import Problem
from scenarios.kit import Context, Done, Part, Report, Row, Rows, Scenario
from scenarios.kit.rows import batches, column, curve, seeds_of, totals, values, where
from scenarios.noise_laws import shared
from solvers import margin
from solvers.decoding import SupportDecoder

if TYPE_CHECKING:
    Array = NDArray[np.float64]

NODES = 5
CHECKED = (0, 3)
LAWS = ("gaussian", "uniform", "signs", "student", "student, median of nine")
LEVELS = (0.1, 0.01, 0.001)
TAUS = (0.001, 0.01, 0.05, 0.2, 0.5, 1.0)
CORRELATIONS = (0.0, 0.5, 0.9, 0.99, 0.9999)
SIGMA = 0.1
BATCH = 100


@cache
def rows() -> Array:
    matrix = np.zeros((NODES * (NODES - 1) // 2 + len(CHECKED), NODES))
    for row, (tail, head) in enumerate(combinations(range(NODES), 2)):
        matrix[row, tail], matrix[row, head] = -1.0, 1.0
    for row, node in enumerate(CHECKED, start=len(matrix) - len(CHECKED)):
        matrix[row, node] = 1.0
    return matrix


def field(matrix: Array, covariance: Array | None = None, *, shrinkage: float = 0.0) -> Problem:
    """The rows as one block over all nodes."""
    noise = {} if covariance is None else {"covariance": covariance.tolist()}
    nodes = [str(n) for n in range(matrix.shape[1])]
    block = {"id": "rows", "nodes": nodes, "rows": matrix.tolist(), "value": [0.0] * len(matrix), **noise}
    return Problem(name="noise", k=1, shrinkage=shrinkage, nodes=[{"id": n, "dim": 1} for n in nodes], anchors=[block])


def draw(law: str, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Centred noise of variance 1 a coordinate; `student` has three degrees of freedom, hence no
    fourth moment.
    """
    if law == "gaussian":
        return rng.normal(size=shape)
    if law == "uniform":
        return rng.uniform(-(3**0.5), 3**0.5, size=shape)
    if law == "signs":
        return rng.choice([-1.0, 1.0], size=shape)
    if law == "student":
        return np.asarray(rng.standard_t(3, size=shape) / 3**0.5)
    return np.asarray(np.median(rng.standard_t(3, size=(9, *shape)), axis=0) / 3**0.5)


def parts(context: Context) -> list[Part]:
    return [
        *({"law": law, "delta": delta} for law in LAWS for delta in LEVELS),
        *({"correlation": value} for value in CORRELATIONS),
        *({"tau": tau} for tau in TAUS),
        {"what": "tail"},
        *batches(context["fields"], BATCH, what="shared"),
        *({"common": value} for value in CORRELATIONS),
        *({"ratio": ratio} for ratio in (0.05, 0.3, 1.0, 3.0)),
    ]


def run(context: Context, part: Part) -> Row:
    options = {"trials": context["trials"], "seed": context["seed"]}
    if "law" in part:
        return coverage(part["law"], part["delta"], **options)
    if part.get("what") == "shared":
        return shared.batch(seeds_of(part))
    if part.get("what") == "tail":
        return tail(trials=context["trials"] // 10, seed=context["seed"])
    (kind, value), *_ = part.items()
    study = {"correlation": whitening, "tau": shrinking, "common": shared.coverage, "ratio": lower_bound}
    return study[kind](value, **options)


def _errors(matrix: Array, noise: Array, rng: np.random.Generator) -> list[float]:
    """What least-residual repair of one wrong answer leaves, for each draw of the noise."""
    decoder = SupportDecoder(matrix, [1] * matrix.shape[1])
    left = []
    for xi in noise:
        error = np.zeros(matrix.shape[1])
        error[int(rng.integers(len(error)))] = rng.normal() * 3
        found = decoder.decode(matrix @ error + xi, k=1, epsilon=0.0)
        left.append(float(np.linalg.norm(np.asarray(found.error) - error)))
    return left


def coverage(law: str, delta: float, *, trials: int, seed: int) -> dict[str, Any]:
    """How often the noise leaves the radius ε_δ, and repair the bound 2ε_δ/γ; the radius is the
    paper's, for Gaussian noise.
    """
    rng = np.random.default_rng([seed, LAWS.index(law)])
    issued = certify(field(rows()), noise=Noise(None, SIGMA, 1 - delta, "gaussian"), budgets=())
    radius = float(issued.document["noise"]["epsilon"])
    noise = SIGMA * draw(law, (trials, len(rows())), rng)
    outside = np.linalg.norm(noise, axis=1) > radius
    left = _errors(rows(), noise[: trials // 10], rng)
    assert issued.error_bound is not None
    return {
        "law": law,
        "delta": delta,
        "radius": radius,
        "trials": trials,
        "outside": int(outside.sum()),
        "share_outside": float(outside.mean()),
        "repairs": len(left),
        "bound": issued.error_bound,
        "largest_error": max(left),
        "bound_broken": sum(error > issued.error_bound for error in left),
    }


def whitening(correlation: float, *, trials: int, seed: int) -> dict[str, Any]:
    """Two checks of one answer with correlated noise: the covariance-aware margin, and how often
    the radius for independent rows is left.
    """
    pair = np.array([[-1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    sigma = np.eye(3)
    sigma[1, 2] = sigma[2, 1] = correlation
    noise = np.random.default_rng([seed, 7]).multivariate_normal(np.zeros(3), sigma, size=trials)
    aware = field(pair, sigma)
    alone = field(pair[:2], np.eye(2))
    radius = float(certify(field(pair), noise=Noise(None, 1.0, 0.99, "chi"), budgets=()).document["noise"]["epsilon"])
    return {
        "correlation": correlation,
        "margin": float(aware.margin().value),
        "margin_if_independent": float(field(pair, np.eye(3)).margin().value),
        "margin_of_one_check": float(alone.margin().value),
        "outside_radius_for_independent": float((np.linalg.norm(noise, axis=1) > radius).mean()),
    }


def shrinking(tau: float, *, trials: int, seed: int) -> dict[str, Any]:
    """A covariance from few calibration repeats, shrunk by τ: the margin that it claims, and how
    often its whitened radius is left.
    """
    count = len(rows())
    rng = np.random.default_rng([seed, 11])
    scale = np.exp(rng.normal(scale=0.7, size=count))
    common = np.outer(scale, scale) * (0.6 + 0.4 * np.eye(count))
    repeats = rng.multivariate_normal(np.zeros(count), common, size=2 * count)
    estimate = np.asarray(np.cov(repeats.T))
    estimate = (estimate + estimate.T) / 2
    shrunk = (1 - tau) * estimate + tau * np.trace(estimate) / count * np.eye(count)
    radius = float(certify(field(rows()), noise=Noise(None, 1.0, 0.95, "chi"), budgets=()).document["noise"]["epsilon"])
    noise = rng.multivariate_normal(np.zeros(count), common, size=trials)
    whitened = np.sqrt(np.einsum("ti,ij,tj->t", noise, np.linalg.inv(shrunk), noise))
    claimed = float(field(rows(), estimate, shrinkage=tau).margin().value)
    true = float(field(rows(), common).margin().value)
    return {
        "tau": tau,
        "repeats": len(repeats),
        "claimed_margin": claimed,
        "true_margin": true,
        "claimed_over_true": claimed / true,
        "outside_radius": float((whitened > radius).mean()),
        "allowed": 0.05,
    }


def tail(*, trials: int, seed: int) -> dict[str, Any]:
    """One dominant error and small ones everywhere: ‖ê − e*‖ ≤ ‖r‖ + 2(ε + ‖Br‖)/γ, as `certify`
    states it.
    """
    rng = np.random.default_rng([seed, 13])
    decoder = SupportDecoder(rows(), [1] * NODES)
    closest, broken = 0.0, 0
    for _ in range(trials):
        main, rest = int(rng.integers(NODES)), rng.normal(size=NODES) * 10 ** rng.uniform(-3, 0)
        rest[main] = 0.0
        error = rest.copy()
        error[main] = rng.normal() * 3
        xi = rng.normal(size=len(rows()))
        xi *= SIGMA / np.linalg.norm(xi)
        found = decoder.decode(rows() @ error + xi, k=1, epsilon=0.0)
        # The dominant node is the largest one: the best approximation with one node.
        r = error.copy()
        r[int(np.argmax(np.abs(error)))] = 0.0
        seen = Tail(norm=float(np.linalg.norm(r)), image=float(np.linalg.norm(rows() @ r)))
        bound = float(
            certify(field(rows()), noise=Noise(SIGMA), tail=seen, budgets=()).document["error"]["tail"]["bound"]
        )
        left = float(np.linalg.norm(np.asarray(found.error) - error))
        closest, broken = max(closest, left / bound), broken + (left > bound)
    return {"trials": trials, "broken": broken, "largest_share_of_bound": closest}


def lower_bound(ratio: float, *, trials: int, seed: int) -> dict[str, Any]:
    """The paper's two points at σ/γ = ratio, R = 1: the larger of the two risks of several
    estimators, beside min(R, σ/γ)/8.
    """
    matrix = rows()
    found = margin(matrix, k=1)
    sigma = ratio * float(found.value)
    reach = min(1.0, ratio)
    witness = np.asarray(found.direction)
    first, second = np.flatnonzero(np.abs(witness) > 1e-12)[:2]
    points = [np.zeros(NODES), np.zeros(NODES)]
    points[0][first], points[1][second] = reach * witness[first], -reach * witness[second]
    rng = np.random.default_rng([seed, 17])
    noise = sigma * rng.normal(size=(trials // 10, len(matrix)))
    decoder = SupportDecoder(matrix, [1] * NODES)

    def repaired(s: Array) -> Array:
        return np.asarray(decoder.decode(s, k=1, epsilon=0.0).error)

    def nearer(s: Array) -> Array:
        return min(points, key=lambda e: float(np.linalg.norm(s - matrix @ e)))

    estimators: dict[str, Callable[[Array], Array]] = {
        "repair": repaired,
        "zero": lambda s: np.zeros(NODES),
        "nearer point": nearer,
        "midpoint": lambda s: (points[0] + points[1]) / 2,
    }
    risks = {
        name: max(float(np.mean([np.linalg.norm(guess(matrix @ e + xi) - e) for xi in noise])) for e in points)
        for name, guess in estimators.items()
    }
    return {"ratio": ratio, "lower_bound": reach / 8, **risks, "least_over_bound": min(risks.values()) / (reach / 8)}


def report(context: Context, done: Sequence[Done]) -> Report:
    covered, white, shrunk, lower = (values(done, key) for key in ("law", "correlation", "tau", "ratio"))
    (tails,), common = values(done, what="tail"), values(done, "common")
    fields = totals(values(done, what="shared"), "fields singular held uncovered wrong above")
    bounded = [row for row in covered if not row["law"].startswith("student")]
    (heavy,) = where(covered, law="student", delta=LEVELS[-1])
    best = min(shrunk, key=lambda row: row["outside_radius"])
    worst = max(shrunk, key=lambda row: row["claimed_over_true"])
    page = context.page()
    page.answer = (
        "They hold where their assumptions do, and two of these matter: promised radii are kept under Gaussian and"
        f" bounded noise and broken by heavy tails ({heavy['share_outside']:.1%} outside where {heavy['delta']:.1%}"
        f" is allowed) unless repeats are combined by a median; and a covariance estimated from {worst['repeats']}"
        f" repeats without enough shrinkage claims {worst['claimed_over_true']:.1f} times the true margin, and its"
        f" 95 % radius is left in {worst['outside_radius']:.0%} of draws."
    )
    _judge_radii(page, covered, bounded, heavy)
    falling = all(a["margin"] > b["margin"] for a, b in pairwise(white))
    last, one = white[-1]["margin"], white[-1]["margin_of_one_check"]
    told = f"from {white[0]['margin']:.4f} to {last:.4f}, one check {one:.4f}"
    page.check("whitening", falling and abs(last - one) < 0.01, told)
    first = shrunk[0]
    page.check(
        "shrinkage",
        first["claimed_over_true"] > 1 and first["outside_radius"] > first["allowed"],
        f"at τ = {first['tau']:g} {first['claimed_over_true']:.2f} times the true margin,"
        f" {first['outside_radius']:.1%} outside",
    )
    rest = f"of {tails['trials']} outside; at most {tails['largest_share_of_bound']:.0%} of the bound"
    page.none("tail", tails["broken"], rest)
    least = min(column(lower, "least_over_bound"))
    page.check("lower", least >= 1, f"the best estimator has {least:.2f} times the bound")
    bad = fields["uncovered"] + fields["wrong"] + fields["above"]
    page.none("shared", bad, f"of {fields['held']} parts of {fields['fields']} fields ({fields['singular']} singular)")
    most = max(row["outside"] - 4 * (0.05 * 0.95 / row["draws"]) ** 0.5 for row in common)
    naive = max(column(common, "outside_if_taken_for_independent"))
    told = f"largest share outside {max(column(common, 'outside')):.4f}; {naive:.4f} if taken for independent"
    page.check("common", most <= 0.05 < naive, told)
    page.table("coverage", covered)
    page.table("whitening", white)
    page.table(
        "shrinkage",
        shrunk,
        "Covariance from calibration repeats, shrunk towards its mean variance by τ: claimed margin, and"
        " how often the whitened 95 % radius is left.",
    )
    page.table("shared-fields", [fields])
    page.table("shared", common)
    page.table("tail", [tails])
    page.table("lower-bound", lower)
    page.lines(
        "shrinkage",
        {
            "claimed over true margin": curve(shrunk, "tau", "claimed_over_true"),
            "share of draws outside the 95 % radius": curve(shrunk, "tau", "outside_radius"),
        },
        x="shrinkage τ",
        y="ratio, share",
        log_x=True,
        caption="A covariance from few repeats: without shrinkage it claims too much and covers too little.",
    )
    page.notes.append(
        f"Least exceedance of the estimated radius: {best['outside_radius']:.1%} at τ = {best['tau']:g}. More"
        " shrinkage treats correlated rows as independent, less trusts an estimate with more unknowns than"
        " repeats; a pilot's radius is an estimate either way."
    )
    return page


def _judge_radii(page: Report, covered: Rows, bounded: Rows, heavy: Any) -> None:
    def most(row: Any) -> float:
        """The allowed share and four standard errors."""
        return float(row["delta"] + 4 * (row["delta"] * (1 - row["delta"]) / row["trials"]) ** 0.5)

    off = [f"{row['law']}, δ = {row['delta']:g}" for row in bounded if row["share_outside"] > most(row)]
    page.check(
        "gaussian", not off, "; ".join(off) or f"largest share outside {max(column(bounded, 'share_outside')):.4f}"
    )
    broken, repairs = totals(bounded, "bound_broken repairs").values()
    page.none("bound", broken, f"of {repairs} repairs outside 2ε_δ/γ")
    share = heavy["share_outside"]
    page.check("heavy", share > most(heavy), f"{share:.2%} outside at δ = {heavy['delta']:g}")
    middle = where(covered, law=LAWS[-1])
    within = all(row["share_outside"] <= most(row) for row in middle)
    page.check("median", within, f"largest share outside {max(column(middle, 'share_outside')):.4f}")


SCENARIO = Scenario.declared("noise-laws", parts, run, report)
