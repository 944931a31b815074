"""How far what is measured may be from what is true: one radius, for every verb and for the loop.

With the true operator B + E, (B + E) z* = c + ν and responses y = z* + e, what is computed is s = B
y − c = B e + ν − E z*. So the radius that a decoder meets has two parts (docs/algorithms.md, facts
16 and 17). ‖ν‖ ≤ ε is the noise of the rows: declared for all of them (`epsilon`), or from a
standard deviation, the problem's or that of the blocks that declare one, at a confidence. ‖E z*‖ ≤
√Σ η_b² ‖z*_{T_b}‖² is what uncertain blocks add, each on all the nodes it names: it grows with the
*field*, also where no answer is wrong. Without a bound on the field nothing can be promised about
it beforehand. And where all answers may be off a little (`tail`: e = e_k + r, ‖r‖ ≤ τ), ‖B r‖ ≤
‖B‖τ acts as noise, and τ itself is added to every error bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from math import fsum, hypot, inf, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.checker.noise import AnswerNoise, NoiseKind, NoiseRadius, joint_confidence, radius
from rrf_design.errors import InputError
from rrf_design.rows import LARGEST_ENTRY, NOTHING_SHARED, estimate_confidence

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem, Selection

DENSE = 400
"""Coordinates up to which the norm of B is taken from its eigenvalues."""
ROUND_UP = 1.0 + 1e-12
"""Sums of squares in floats are rounded up by this, so that a bound stays a bound."""
ROUND_UP_STEPS = 1.0 + 1e-9
"""The same where a formula has several steps; the verifier holds it against exact arithmetic."""
SHOWN = 6
"""Estimates that a sentence names."""
ESTIMATED_IN = ("nodes", "relations", "anchors", "noise")


@dataclass(frozen=True, slots=True)
class Noise:
    """What a caller knows better than the problem file; None leaves a matter to the file."""

    epsilon: float | None = None
    """Radius over all rows, after weighting and whitening."""
    sigma: float | None = None
    """Instead: standard deviation of every row."""
    confidence: float | None = None
    kind: NoiseKind | str | None = None
    """How sigma becomes a radius: "chi" (default), "gaussian" or "subgaussian"."""
    amplitude: float | None = None
    """A bound on the norm of the true field on the nodes of uncertain blocks."""

    def __post_init__(self) -> None:
        for name, least in (("epsilon", 0.0), ("sigma", None), ("amplitude", None)):
            value = getattr(self, name)
            if value is None:
                continue
            known = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
            if not known or not (value >= 0.0 if least is not None else value > 0.0) or not value < inf:
                bound = "of at least 0" if least is not None else "above 0"
                raise InputError(f"{name} must be a number {bound}, not {value!r}")
        if self.epsilon is not None and self.sigma is not None:
            raise InputError("noise: give epsilon or sigma, not both")
        if self.kind is not None and self.kind not in set(NoiseKind):
            raise InputError(f"noise: {self.kind!r} is not one of {', '.join(NoiseKind)}")


@dataclass(frozen=True, slots=True)
class _DeclaredField:
    """What is declared of the true field on the nodes of uncertain blocks, where a radius rests on
    it: an assumption like any other, so it is named, and a field that breaks it contradicts it.
    """

    nodes: tuple[str, ...]
    amplitude: float | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def words(self) -> str:
        where, parts = "on the nodes of uncertain blocks", []
        if self.amplitude is not None:
            parts.append(f"{where} the true field is at most {self.amplitude:g} long")
        if self.ranges:
            parts.append(f"{where} the true values lie in their ranges")
        return ", ".join(parts)

    def broken(
        self,
        operator: Operator,
        values: Mapping[str, tuple[float, ...]],
        *,
        bound: float,
        bounds: Mapping[str, float],
        slack: float,
    ) -> str:
        """Why no field so near to these values keeps to what is declared, in words; "" where one
        may.

        `bound` is of the whole error of `values`, in the metrics; `bounds` of each, in its own
        units; `slack` is what rounding may hide.
        """
        known = [name for name in self.nodes if name in values]
        long = hypot(*(operator.length(name, values[name]) for name in known))
        if self.amplitude is not None and long - bound > self.amplitude + slack:
            return (
                f"the repaired field is {long:.4g} long on the nodes of uncertain blocks, and amplitude ="
                f" {self.amplitude:g} is declared"
            )
        for name in known:
            if name not in self.ranges:
                continue
            low, high = self.ranges[name]
            off = hypot(*(max(low - x, x - high, 0.0) for x in values[name]))
            if off > bounds[name] + slack:
                shown = ", ".join(f"{x:.6g}" for x in values[name])
                return f"the repaired value of {name} is {shown}, and range = [{low:g}, {high:g}] is declared"
        return ""


@dataclass(frozen=True, slots=True)
class Radius:
    """What a design meets: the radius of its rows, and what its uncertain blocks add to it."""

    rows: NoiseRadius
    spread: float | None = 0.0
    """Bound on ‖E z*‖; None where blocks are uncertain and nothing bounds the field."""
    tail: float = 0.0
    """Bound on ‖r‖: small errors on all answers, which no decoder looks for."""
    image: float = 0.0
    """Bound on ‖B r‖: what they add to the noise."""
    answers: AnswerNoise | None = None
    """Where answers scatter: what that adds to the rows, and to the values themselves."""
    estimates: float | None = None
    """Where noise was estimated from repeats: the probability that no estimate is too small."""
    field: _DeclaredField | None = None
    """What `spread` rests on; None where nothing is uncertain, or nothing bounds the field."""

    @property
    def declared(self) -> bool:
        return self.rows.epsilon is not None

    @property
    def epsilon(self) -> float:
        """Of the rows, with what small errors on all answers add; 0 where neither is declared:
        relations and anchors are then taken at their word.
        """
        return (self.rows.epsilon or 0.0) + self.image * ROUND_UP

    @property
    def total(self) -> float | None:
        """ε' = ε + ‖E z*‖; None where nothing bounds the field."""
        return None if self.spread is None else (self.epsilon + self.spread) * (ROUND_UP if self.spread else 1.0)

    def bound(self, lower: float) -> float | None:
        """2ε'/γ and the tail itself: no repair is further off; None where there is no radius or no
        proven margin.
        """
        if self.total is None or lower <= 0.0:
            return None
        return (recovery_bound(self.total, lower) + self.tail) * (ROUND_UP if self.tail else 1.0)

    @property
    def confidence(self) -> float | None:
        """Probability that the radius holds; None where it is declared."""
        scatter = None if self.answers is None else self.answers.confidence
        return joint_confidence(self.rows.confidence, scatter, self.estimates)

    def words(self, *, others: bool = False) -> str:
        """The premise about noise as part of a sentence; `others`: of the checks that are not wrong
        altogether.
        """
        if not self.declared:
            said = "all other relations and checks hold exactly" if others else "relations and checks hold exactly"
            said += "" if self.spread == 0.0 else ", up to the uncertainty that is declared for some"
        elif self.rows.kind is NoiseKind.DETERMINISTIC and self.answers is None:
            said = f"the noise of all rows together is at most {self.rows.epsilon:g}"
        else:
            said = f"the noise is as declared (with probability {self.confidence:g})"
        if self.tail and self.answers is None:
            said += f", all other answers together are off by at most {self.tail:g}"
        if self.spread != 0.0 and self.declared:
            said += ", relations are off by no more than their declared uncertainty"
        return said if self.field is None else f"{said}, {self.field.words()}"


def recovery_bound(epsilon: float, lower: float) -> float:
    """2ε/γ, rounded up: two explanations that both leave at most ε, each with at most k wrong
    answers, are no further apart.

    Here and nowhere else: for a radius known beforehand (`Radius.bound`), one found with the
    answers, and a local one.
    """
    return 2.0 * epsilon / lower * (1 + 4e-16 if epsilon else 1.0)


def radius_of(problem: Problem, operator: Operator, noise: Noise | None = None) -> Radius:
    """The radius of one design: what is given, else what the problem declares.

    A problem's epsilon, or its sigma at its confidence, speaks of all rows; where it declares
    neither, the blocks that declare sigma or covariance carry that noise and the others none.
    """
    given = noise or Noise()
    spread = _field_spread(problem, operator, amplitude=given.amplitude)
    bounds = _declared_field(problem, operator, given.amplitude)
    answers = _answers(problem, operator, given)
    rows = _rows(problem, operator, given, scattered=answers is not None)
    estimates = _estimates(problem, operator)
    if answers is not None:  # small errors on all answers, with a probability
        return Radius(rows, spread, answers.own, answers.image, answers, estimates, bounds)
    image = problem.tail * _largest_gain(operator) if problem.tail else 0.0
    return Radius(rows, spread, problem.tail, image, None, estimates, bounds)


def _estimates(problem: Problem, operator: Operator) -> float | None:
    count = operator.held.estimates
    return joint_confidence(*[estimate_confidence(problem, count)] * count) if count else None


def _level(problem: Problem, given: Noise) -> float:
    return float(problem.confidence if given.confidence is None else given.confidence)


def _answers(problem: Problem, operator: Operator, given: Noise) -> AnswerNoise | None:
    """What answers that scatter add, by the formulas of `covers_answers`; floats, rounded up."""
    if not problem.scattering:
        return None
    known = {name: problem.node_by_id[name] for name in operator.node_ids if name in problem.scattering}
    if not known:
        return None
    deviations = {
        name: (node.sigma or 0.0) * sqrt(operator.held.inflation.get(name, 1.0) / node.repeats) * (1 + 1e-15)
        for name, node in known.items()
    }
    scales = np.concatenate(
        [np.full(problem.node_by_id[name].dim, deviations.get(name, 0.0)) for name in operator.node_ids]
    )
    with np.errstate(over="ignore"):
        sized = abs(operator.matrix).multiply(scales[None, :])
    if max(float(sized.data.max(initial=0.0)), *deviations.values()) > LARGEST_ENTRY:
        raise InputError(f"sigma of the nodes {', '.join(known)}: too large for floating point beside their rows")
    squares = fsum(float(x) ** 2 for x in sized.data)
    norm2 = min(squares, float(sized.sum(axis=0).max(initial=0.0)) * float(sized.sum(axis=1).max(initial=0.0)))
    wanted = set(operator.premise.wanted(operator.node_ids))
    own = [(node.dim, deviations[name] ** 2) for name, node in known.items() if name in wanted]
    missed = (1.0 - _level(problem, given)) * 2.0 / 3.0
    confidence = 1.0 - (missed if _estimates(problem, operator) is None else missed / 2.0)  # half is for estimates
    t = 2.0 * log(2.0 / (1.0 - confidence))
    image = (sqrt(squares) + sqrt(t * norm2)) * ROUND_UP_STEPS
    alone = (sqrt(fsum(d * v for d, v in own)) + sqrt(t * max((v for _, v in own), default=0.0))) * ROUND_UP_STEPS
    return AnswerNoise(deviations, image, alone, confidence)


def _rows(problem: Problem, operator: Operator, given: Noise, *, scattered: bool) -> NoiseRadius:
    epsilon, sigma = given.epsilon, given.sigma
    if epsilon is None and sigma is None:
        epsilon, sigma = problem.epsilon, problem.sigma
    height = operator.shape[0]
    if epsilon is not None:
        return NoiseRadius(NoiseKind.DETERMINISTIC, float(epsilon), rows=height)
    blocks = None
    if sigma is None:
        noisy = [operator.block_index[name] for name in noisy_of(problem, operator)]
        if not noisy and (problem.tail or scattered):  # rows hold exactly, of answers that are nearly right
            return NoiseRadius(NoiseKind.DETERMINISTIC, 0.0, rows=height)
        if not noisy:
            return NoiseRadius(NoiseKind.NONE, None, rows=height)
        blocks = tuple(operator.block_ids[j] for j in noisy)
        sigma = max(_deviation(problem, operator, name) for name in blocks)
        height = int(sum(operator.block_offsets[j + 1] - operator.block_offsets[j] for j in noisy))
        shared = not operator.held.sharing.isdisjoint(blocks)
    else:  # of every row by itself: c times the variance covers what rows share
        raised = [operator.held.dilation.get(name, 1.0) for name in operator.held.sharing]
        shared, sigma = bool(raised), float(sigma) * sqrt(max(raised, default=1.0)) * (1 + 1e-15 * bool(raised))
    level = _level(problem, given)
    if scattered:  # one statement about rows, two about answers: a third of what may go wrong for each
        level = 1.0 - (1.0 - level) / 3.0
    if _estimates(problem, operator) is not None:
        level = 1.0 - (1.0 - level) / 2.0
    shape = _shape(given.kind, shared=shared)
    reach = _reach(shape, float(sigma), height, float(level))
    return NoiseRadius(shape, reach, sigma=float(sigma), confidence=level, rows=height, blocks=blocks)


@lru_cache(maxsize=4096)
def _reach(kind: NoiseKind, sigma: float, rows: int, confidence: float) -> float:
    return radius(kind, sigma=sigma, rows=rows, confidence=confidence)


def stated_within(
    problem: Problem,
    anchor: Anchor,
    rows: NoiseRadius | None = None,
    *,
    held: Iterable[str] = (),
    noise: Noise | None = None,
) -> float:
    """How far from the truth the value may be that a check without noise of its own states, beside
    what is owned or `held`: what is declared of all rows, unless the check is trusted. `rows`: a
    radius known better than the problem's; `noise`: what a caller knows better than the file.
    """
    if anchor.trusted:
        return 0.0
    if rows is None:
        given = noise or Noise()
        reach, sigma = given.epsilon, given.sigma
        if reach is None and sigma is None:
            reach, sigma = problem.epsilon, problem.sigma
        if reach is None and sigma is not None:
            dim = problem.node_by_id[anchor.nodes[0]].dim
            reach = _reach(_shape(given.kind, shared=False), float(sigma), dim, _level(problem, given))
    else:
        reach = rows.epsilon if rows.blocks is None else None
    if not reach:
        return 0.0
    sharing, shared = problem.whole.sharing, NOTHING_SHARED
    if sharing is not None:
        there = problem.held_beside({anchor.id, *held})
        blocks = np.array([block.id in there for block in problem.blocks])
        shared = sharing.of(blocks, np.ones(len(problem.nodes), dtype=bool))
    return reach / (sqrt(anchor.weight) * shared.factor(anchor.id)) * ROUND_UP


def noisy_of(problem: Problem, operator: Operator) -> list[str]:
    """Blocks of a design that declare noise, in their order."""
    noisy = problem.noisy
    return [name for name in operator.block_ids if name in noisy] if noisy else []


def _shape(asked: NoiseKind | str | None, *, shared: bool) -> NoiseKind:
    shape = NoiseKind.CHI if asked is None else NoiseKind(asked)
    if not shape.random:
        raise InputError(f"noise: {shape} needs epsilon, not sigma")
    if shared and shape is NoiseKind.SUBGAUSSIAN:
        raise InputError(
            "noise: subgaussian noise must be independent, but the noise of some blocks is declared shared"
        )
    if shared:
        return NoiseKind.CORRELATED
    if shape is NoiseKind.CORRELATED:
        raise InputError("noise: no block declares noise that it shares with others; leave correlated out")
    return shape


def _deviation(problem: Problem, operator: Operator, block: str) -> float:
    """The largest standard deviation that any direction of a block's rows has, alone or with
    others.

    Whitened rows have variance 1, and w/m of it after weighting; where noise is shared, w in the
    worst direction of all rows together.
    """
    shared = operator.held
    dilation = 1.0 if block in shared.sharing else shared.dilation.get(block, 1.0)
    return sqrt(problem.block_by_id[block].weight / dilation) * (1 + 1e-15)


def _field_spread(problem: Problem, operator: Operator, *, amplitude: float | None = None) -> float | None:
    """A bound on ‖E z*‖ before any answer is seen; None where blocks are uncertain and nothing
    bounds the field.

    Σ_b η_b² ‖z_{T_b}‖² = Σ_i w_i ‖z_i‖² with w_i = Σ η_b² over the uncertain blocks that name node
    i. With ranges every ‖z_i‖ is bounded; with an amplitude R the sum is at most R² max w_i. The
    smaller of the two holds.
    """
    weights = node_weights(operator)
    if not weights:
        return 0.0
    reach = problem.amplitude if amplitude is None else amplitude
    bounds = [] if reach is None else [reach * sqrt(max(weights.values()))]
    sizes = {name: largest_norm(problem, operator, name) for name in weights}
    if all(size is not None for size in sizes.values()):
        bounds.append(sqrt(fsum(w * (sizes[name] or 0.0) ** 2 for name, w in weights.items())))
    return min(bounds) * ROUND_UP if bounds else None


def _declared_field(problem: Problem, operator: Operator, amplitude: float | None = None) -> _DeclaredField | None:
    """What `_field_spread` uses of what is declared: an amplitude, and ranges where every node of
    an uncertain block has one.
    """
    nodes = tuple(node_weights(operator))
    reach = problem.amplitude if amplitude is None else amplitude
    ranges = {name: found for name in nodes if (found := problem.node_by_id[name].range) is not None}
    ranges = ranges if len(ranges) == len(nodes) else {}
    return _DeclaredField(nodes, reach, ranges) if nodes and (ranges or reach is not None) else None


def _largest_gain(operator: Operator) -> float:
    """A bound on ‖B‖: from the largest eigenvalue of BᵀB where that is small, else from sums of
    rows and columns.
    """
    sizes = abs(operator.matrix)
    rough = sqrt(float(sizes.sum(axis=0).max(initial=0.0)) * float(sizes.sum(axis=1).max(initial=0.0))) * ROUND_UP
    if operator.shape[1] > DENSE or not operator.shape[0]:
        return rough
    gram = (operator.matrix.T @ operator.matrix).toarray()
    return min(rough, sqrt(max(0.0, float(np.linalg.eigvalsh(gram)[-1]))) * (1 + 1e-9))


def spread_at(operator: Operator, field: Mapping[str, Any]) -> float:
    """√Σ η_b² ‖z_{T_b}‖² of one field, given by node id: N of fact 18."""
    weights = node_weights(operator)
    return sqrt(fsum(w * operator.length(name, field[name]) ** 2 for name, w in weights.items())) * ROUND_UP


def node_weights(operator: Operator) -> dict[str, float]:
    """w_i = Σ η_b² over the uncertain blocks that name node i; only nodes that some uncertain block
    names.
    """
    result: dict[str, float] = {}
    for block, nodes in operator.uncertain.items():
        square = float(operator.radii[operator.block_index[block]]) ** 2
        for name in nodes:
            result[name] = result.get(name, 0.0) + square
    return result


def largest_norm(problem: Problem, operator: Operator, node: str) -> float | None:
    """The largest length, in the node's metric, of an answer within its declared range; None
    without a range.
    """
    entry = problem.node_by_id[node]
    if entry.range is None:
        return None
    side = max(abs(entry.range[0]), abs(entry.range[1])) * sqrt(entry.dim)
    factor = operator.fiber_factors.get(node)
    return side if factor is None else side * float(np.linalg.norm(factor, 2)) * ROUND_UP


@dataclass(frozen=True, slots=True)
class _RaisedNoise:
    """A block or node whose noise was estimated: from how many repeats, and what its variance is
    multiplied with for that.
    """

    name: str
    repeats: int
    inflation: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def raised_noise(problem: Problem, select: Selection = None) -> tuple[_RaisedNoise, ...]:
    """What of a design was only estimated, blocks first.

    >>> import rrf_design as rrf
    >>> label = {"id": "label", "node": "x", "sigma": 1.0, "estimated_from": 60}
    >>> problem = rrf.Problem(nodes=[{"id": "x"}], anchors=[label])
    >>> [(one.name, round(one.inflation, 2)) for one in raised_noise(problem)]
    [('label', 1.56)]
    """
    if not problem.estimated:
        return ()
    entries = {**problem.block_by_id, **problem.node_by_id}
    known = problem.design(select).operator.held.inflation
    return tuple(_RaisedNoise(name, entries[name].estimated_from or 0, by) for name, by in known.items())


def raised_words(problem: Problem, select: Selection = None, *, k: int | None = None) -> str:
    """What estimates from so few repeats cost this design, in sentences; nothing where none is
    used.
    """
    found = raised_noise(problem, select)
    if not found:
        return ""
    listed = ", ".join(f"{one.name} {one.inflation:.4g} times ({one.repeats} repeats)" for one in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    bare = problem.model_copy(update={part: _known(getattr(problem, part)) for part in ESTIMATED_IN})
    now, then = (one.design(select).standing(one, margin=one.design(select).margin(k)) for one in (problem, bare))
    promise = "" if now.error_bound is None or then.error_bound is None else _instead(now.error_bound, then.error_bound)
    return (
        f"Estimated from repeats, variances count more: {listed}{more}. Taken at their word the margin would be"
        f" {then.lower:.6g} instead of {now.lower:.6g}{promise}."
    )


def _instead(now: float, then: float) -> str:
    return f", and the error bound {then:.6g} instead of {now:.6g}"


def _known(entries: Any) -> Any:
    return tuple(
        entry if entry.estimated_from is None else entry.model_copy(update={"estimated_from": None})
        for entry in entries
    )
