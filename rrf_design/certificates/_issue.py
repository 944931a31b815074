"""certify: the paper's audit recipe on one design, written down as a certificate that anybody can
re-prove.

Fix coordinates, norms, weights and k; assemble B; prove the lower bound on the best rung that size
and time allow; store support and witness and check them directly; at zero margin give the
indistinguishable pair, at a positive one the sensitivity along the witness; whiten, and subtract
what the operator's own uncertainty may cost.

`Certificate` is the document in memory with the operator it names, and writes both.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from rrf_design._margin import check_k
from rrf_design._shown import Shown, bars_on
from rrf_design.arguments import is_dataset, noise_of, seconds_of
from rrf_design.certificates._ladder import (
    Rung,
    climb,
    climb_protected,
    plain_witness,
    protection_section,
    rivals_section,
)
from rrf_design.certificates._sections import (
    audit_section,
    budget_sections,
    conditional_section,
    further_budgets,
    metrics_section,
    no_nullspace,
    noise_section,
    nullspace_section,
    positive,
    uncertainty_section,
    witness_section,
)
from rrf_design.certificates._uncertainty import Uncertainty
from rrf_design.checker.document import FORMAT, VERSION, check_form, content_digest
from rrf_design.checker.noise import (
    ErrorTerms,
    FieldBound,
    NoiseKind,
    NoiseRadius,
    Tail,
    error_section,
    joint_confidence,
    promised,
)
from rrf_design.checker.premises import Premises
from rrf_design.checker.record import (
    ARRAYS,
    FILE_FORMAT,
    INLINE_ENTRIES,
    OperatorRecord,
    load_record,
    record_from_lists,
)
from rrf_design.checker.wording import CONSEQUENCE, ZERO, Finding, Regime, assumption_lines, regime_of
from rrf_design.derive import with_radii, without_noise
from rrf_design.documents import read, write_bytes, write_text
from rrf_design.errors import InputError, Refused
from rrf_design.files import digest
from rrf_design.goal import Goal, Standing, reaches
from rrf_design.noise import Noise, largest_norm, node_weights, noisy_of
from rrf_design.premise import protected

if TYPE_CHECKING:
    from rrf_design.checker.noise import Tolerances
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem, Selection
    from rrf_design.questions import Dataset
    from rrf_design.tables import ByStructure
    from solvers.result import Progress

SECONDS = 60.0  # for each search, where nobody says otherwise
VERIFY_RATIO = 2.0  # seconds to verify against seconds to search: about the median of the published benchmark
VERIFY_LEAST = 0.01


class _Settings(TypedDict, total=False):
    """The keywords of `certify`, for the type checker: what comes back depends on what is asked."""

    k: int | None
    rung: Rung | str
    require: float | None
    noise: Noise | None
    epsilon: float | None
    sigma: float | None
    confidence: float | None
    kind: NoiseKind | str | None
    amplitude: float | None
    delta: float | None
    largest_error: float | None
    uncertainty: Uncertainty | None
    tolerances: Tolerances | None
    tail: Tail | None
    budgets: Sequence[int] | None
    supports: Sequence[Sequence[str]] | None
    n_jobs: int | None
    time_limit: float | None
    front_end: str
    progress: Progress | None


@overload
def certify(problem: Problem, select: Selection = None, **settings: Unpack[_Settings]) -> Certificate: ...


@overload
def certify(problem: Dataset, select: Selection = None, **settings: Unpack[_Settings]) -> ByStructure[Certificate]: ...


def certify(
    problem: Problem | Dataset,
    select: Selection = None,
    *,
    k: int | None = None,
    rung: Rung | str = Rung.AUTO,
    require: float | None = None,
    noise: Noise | None = None,
    epsilon: float | None = None,
    sigma: float | None = None,
    confidence: float | None = None,
    kind: NoiseKind | str | None = None,
    amplitude: float | None = None,
    delta: float | None = None,
    largest_error: float | None = None,
    uncertainty: Uncertainty | None = None,
    tolerances: Tolerances | None = None,
    tail: Tail | None = None,
    budgets: Sequence[int] | None = None,
    supports: Sequence[Sequence[str]] | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    front_end: str = "ortools",
    progress: Progress | None = None,
) -> Any:
    """What can be promised about the owned blocks plus `select`, in a file that anybody can
    re-prove.

    Every estimate with at most k wrong answers that fits within ε' is within 2ε'/γ_k of the truth.
    The certificate carries the proof that γ_k is at least `gamma_lower`, the witness that attains
    `gamma_upper`, and what uncertain blocks take away: min over supports S of σ_min(B_S) − η_S.

    Parameters
    ----------
    problem
        A problem; or a data set, for each structure that its items have.
    select
        Ids on sale that are added to what is owned ("all": every one).
    k
        How many answers (or units) may be wrong; None: as the problem says.
    rung
        How the lower bound is proved; "auto" chooses by size and time.
    require
        The margin that must be proven, uncertainty included, for the certificate to be `met`.
    noise, epsilon, sigma, confidence, kind, amplitude
        What is known better than the problem says: a radius `epsilon` of all rows, or `sigma` of
        every row with its `confidence` and `kind` ("chi", "gaussian", "subgaussian"); `amplitude`
        bounds the true field on the nodes of uncertain blocks. `noise` holds the same in one
        object.
    delta
        The error that is acceptable, where the problem does not say it.
    largest_error
        R of the minimax theorem: a bound on every error.
    uncertainty
        Radii of blocks, from `read_calibration` or estimates.
    tolerances
        What each node's answer may be off without being wrong.
    tail
        Small errors on all answers.
    budgets
        Further values of k.
    supports
        A family of node sets, for a bound that holds relative to it only.
    n_jobs
        Processes, as joblib counts them; the result does not depend on it.
    time_limit
        Seconds for each search (default: a minute; infinite: none).
    front_end
        Of the mixed-integer rung: "ortools" or "pulp".
    progress
        Hears of the share done and the bounds proven so far.

    Returns
    -------
    A `Certificate`: `gamma_lower` and `gamma_upper`, `robust_lower`, `error_bound` (None where
    nothing can be promised), `regime`, and the document to save. Of a data set a `ByStructure` of
    them.

    >>> import rrf_design as rrf
    >>> problem = rrf.Problem(
    ...     k=1,
    ...     epsilon=0.1,
    ...     nodes=[{"id": "plain"}, {"id": "reworded"}, {"id": "capital"}],
    ...     relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
    ...     anchors=[
    ...         {"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0},
    ...         {"id": "atlas", "node": "capital", "value": 1.0, "cost": 2.0},
    ...     ],
    ... )
    >>> made = rrf.certify(problem, ["calculator", "atlas"])
    >>> made.regime.value, rrf.verify(made).valid
    ('computation', True)
    """
    given = noise_of(noise, epsilon=epsilon, sigma=sigma, confidence=confidence, kind=kind, amplitude=amplitude)
    if is_dataset(problem):
        from rrf_design.tables import certify_dataset

        return certify_dataset(
            problem,
            select,
            noise=given,
            k=k,
            rung=rung,
            require=require,
            delta=delta,
            largest_error=largest_error,
            uncertainty=uncertainty,
            tolerances=tolerances,
            tail=tail,
            budgets=budgets,
            supports=supports,
            n_jobs=n_jobs,
            time_limit=time_limit,
            front_end=front_end,
            progress=progress,
        )
    from rrf_design import __version__

    budget = check_k(k, problem.k)
    if rung not in set(Rung):
        raise InputError(f"rung: {rung!r} is not one of {', '.join(Rung)}")
    if front_end not in ("ortools", "pulp"):
        raise InputError(f"front_end: {front_end!r} is not one of ortools, pulp")
    time_limit = SECONDS if time_limit is None else seconds_of(time_limit)
    spread = Uncertainty() if uncertainty is None else uncertainty
    problem, original = with_radii(problem, spread.radii), problem
    design = problem.design(select)
    operator = design.slice(problem)
    guarded = not operator.premise.plain
    if guarded:
        _refuse_unguarded(budgets=budgets, supports=supports, largest_error=largest_error)
    record = _record_of(operator)
    options: dict[str, Any] = {"time_limit": time_limit, "n_jobs": n_jobs, "front_end": front_end}
    began = time.monotonic()
    protection, premises = None, None
    if guarded:
        proven, found = climb_protected(
            operator, budget, rung=Rung(rung), time_limit=time_limit, n_jobs=n_jobs, progress=progress
        )
        protection = protection_section(operator, found, budget, proven.lower)
        premises = Premises.read(protection, record)
        witness, image2, upper = witness_section(record, found.nodes, found.solved.direction, premises)
    else:
        proven = climb(record, budget, rung=Rung(rung), progress=progress, **options)
        witness, image2, upper = witness_section(record, proven.support, proven.direction)
        found = plain_witness(operator, proven.support, proven.direction, value=upper, k=budget)
    searched = time.monotonic() - began
    lower = min(proven.lower, upper)
    exact = lower >= upper * (1 - 1e-6) or upper <= ZERO

    def told(done: float | None, *_: object) -> None:  # what follows changes nothing about these bounds
        if progress is not None:
            progress(done, (lower, upper), "")

    told(1.0)
    loss = uncertainty_section(record, lower, proven, 2 * budget, spread, time_limit, told, protection)
    reach = design.radius(problem, given)
    known = reach.rows
    if reach.answers is not None:
        for name, claim in (("largest_error", largest_error), ("tolerances", tolerances), ("tail", tail)):
            if claim is not None:
                raise InputError(f"{name}: is not certified where answers scatter; leave it out")
    elif tail is None and reach.tail:
        tail = Tail(reach.tail, reach.image)
    if not reach.declared and reach.spread:  # undeclared is exact, here as everywhere; what is uncertain counts
        known = NoiseRadius(NoiseKind.DETERMINISTIC, 0.0, rows=known.rows)
    error = error_section(
        record,
        ErrorTerms(
            lower=lower,
            upper=upper,
            epsilon=known.epsilon,
            sigma=known.sigma if known.kind in (NoiseKind.GAUSSIAN, NoiseKind.CHI) else None,
            field=_field_bound(problem, operator, given.amplitude),
            largest_error=positive(largest_error, "largest_error"),
            delta=positive(problem.delta if delta is None else delta, "delta"),
            confidence=joint_confidence(reach.confidence, operator.premise.sure, spread.confidence),
            tolerances=tolerances,
            tail=tail,
            answers=reach.answers,
        ),
    )
    standing = Standing(Goal(problem.target, error["delta"]), budget, lower, loss["robust_lower"], reach)
    verdict = regime_of(
        Finding(
            lower,
            loss["robust_lower"],
            promised(error),
            error["delta"],
            error["largest_error"],
            error["spread"] is not None,
        )
    )
    file = None if len(record.data) <= INLINE_ENTRIES else f"operator-{record.digest[:16]}.npz"
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "problem": {"name": problem.name, "digest": digest(original), "selected": list(problem.resolve(select))},
        "operator": record.to_document(file=file),
        "k": budget,
        "metrics": metrics_section(problem, operator),
        "margin": {
            "lower": lower,
            "upper": upper,
            "status": "exact" if exact else "bounded",
            "rung": proven.rung,
            "proof": proven.proof,
        },
        "witness": witness,
        "conditional": None if supports is None else conditional_section(record, supports),
        "protection": protection,
        "uncertainty": loss,
        "noise": noise_section(replace(reach, rows=known), problem, operator),
        "error": error,
        "regime": {"name": str(verdict), "consequence": CONSEQUENCE[verdict]},
        "budgets": [] if guarded else budget_sections(record, further_budgets(budgets, budget, record), options, told),
        "nullspace": no_nullspace() if guarded else nullspace_section(record, budget),
        "audit": audit_section(witness, image2, upper, budget, operator.premise),
        "rivals": rivals_section(operator, record, found, noise=known, largest_error=largest_error, premises=premises),
        "provenance": {
            "package": f"rrf-design {__version__}",
            "notes": list(proven.notes),
            "unwhitened": _unwhitened(problem, select, budget, options, told),
        },
    }
    document["assumptions"] = assumption_lines(document, nodes=len(record.node_ids), uncertain=bool(record.radii.any()))
    try:
        document["digest"] = content_digest(document)
        check_form(document)
    except (ValueError, Refused) as fault:  # a bound that no double holds
        raise InputError(f"these numbers can't be certified; rescale the problem ({fault})") from None
    return Certificate(
        document,
        record,
        require,
        verification_seconds=VERIFY_RATIO * searched + VERIFY_LEAST,
        standing=standing,
    )


def _refuse_unguarded(**asked: Any) -> None:
    """What is proved of nodes only; nothing is certified that the verifier could not re-prove."""
    for name, value in asked.items():
        if value:
            raise InputError(f"{name}: is not certified with units, delivered values or suspect checks; leave it out")


def _unwhitened(
    problem: Problem, select: Selection, k: int, options: dict[str, Any], told: Progress
) -> dict[str, Any] | None:
    """The margin in the units of the problem file, to be compared with the covariance-aware one:
    told, not certified. None where nothing is whitened by declared noise.
    """
    if not noisy_of(problem, problem.operator(select)):
        return None
    bare = without_noise(problem).operator(select)
    if bare.premise.plain:
        (bounds,) = budget_sections(_record_of(bare), [k], options, told)
        return {"lower": bounds["lower"], "upper": bounds["upper"], "support": bounds["witness"]["support"]}
    found = protected(bare, k, time_limit=options["time_limit"])
    names = [bare.node_ids[i] for i in found.nodes]
    return {"lower": float(found.solved.lower), "upper": float(found.solved.upper), "support": names}


def _field_bound(problem: Problem, operator: Operator, amplitude: float | None) -> FieldBound:
    """What is known of the true field on the nodes of uncertain blocks."""
    named = list(node_weights(operator))
    sizes = {name: largest_norm(problem, operator, name) for name in named}
    known = {name: size for name, size in sizes.items() if size is not None}
    reach = problem.amplitude if amplitude is None else amplitude
    return FieldBound(reach if named else None, known if named and len(known) == len(named) else None)


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """A certificate in memory. `document` is what is written; `record` the operator it speaks of.

    `verification_seconds` is roughly what checking the certificate will take here (about as long as
    the search took; it does not stand in the document, which is the same for the same design).
    """

    document: dict[str, Any]
    record: OperatorRecord
    required: float | None = None
    path: Path | None = None
    verification_seconds: float | None = None
    standing: Standing | None = None
    """The design held against the problem's goal; None for a certificate that was read."""
    told: Mapping[str, Any] | None = None
    """What the JSON it was read from says of the goal: `met`, and perhaps `wanted reached
    epsilon`.
    """

    @property
    def gamma_lower(self) -> float:
        return float(self.document["margin"]["lower"])

    @property
    def gamma_upper(self) -> float:
        return float(self.document["margin"]["upper"])

    @property
    def robust_lower(self) -> float:
        return float(self.document["uncertainty"]["robust_lower"])

    @property
    def error_bound(self) -> float | None:
        bound = promised(self.document["error"])
        return None if bound is None else float(bound)

    @property
    def regime(self) -> Regime:
        return Regime(self.document["regime"]["name"])

    @property
    def certificate(self) -> Path | dict[str, Any]:
        """Where it was written, or the document."""
        return self.document if self.path is None else self.path

    @property
    def met(self) -> bool:
        """Is the required margin proven, uncertainty included, or else the problem's own goal?

        True where nothing is asked.
        """
        if self.required is not None:
            return reaches(self.robust_lower, self.required)
        if self.told is not None:
            return bool(self.told["met"])
        return self.standing is None or not self.standing.goal.named or self.standing.reached

    def _line(self) -> str:
        bound = "none" if self.error_bound is None else f"{self.error_bound:.6g}"
        sure = "" if self.robust_lower >= self.gamma_lower else f" ({self.robust_lower:.6g} with uncertain relations)"
        return f"γ ≥ {self.gamma_lower:.6g}{sure}, error bound {bound}, regime {self.regime}"

    def to_json(self) -> dict[str, Any]:
        held = (self.told or {}) if self.standing is None else self.standing.to_json()
        return {
            "gamma_lower": self.gamma_lower,
            "gamma_upper": self.gamma_upper,
            "robust_lower": self.robust_lower,
            "error_bound": self.error_bound,
            "regime": str(self.regime),
            "certificate": str(self.path) if self.path is not None else self.document,
            "k": self.document["k"],
            "rung": self.document["margin"]["rung"],
            "status": self.document["margin"]["status"],
            "required": self.required,
            "met": self.met,
            **{key: held[key] for key in ("wanted", "reached", "epsilon") if key in held},
            "rivals": self.document["rivals"],
            "verification_seconds": self.verification_seconds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Certificate:
        """The certificate of what `to_json` gave, or of a document that `save` wrote.

        Nothing is proven by reading it: `rrf_design.verify` does that. InputError where its
        operator lies in a file that is not named.
        """
        found, named = dict(data), data.get("certificate", data)
        path = None if isinstance(named, Mapping) else Path(named)
        document = dict(named) if path is None else read(path, what="certificate")
        try:
            check_form(document)
            claim = document["operator"]
            if claim["storage"] == "inline":
                record = record_from_lists(claim)
            elif path is not None:
                record = load_record(path.parent / Path(claim["file"]).name)
            else:
                raise InputError(f"its operator lies in {claim['file']!r:.80}: save the certificate, and read its path")
        except Refused as fault:
            raise InputError(f"not a certificate: {fault}") from None
        told: dict[str, Any] = {key: found[key] for key in ("met", "wanted", "reached", "epsilon") if key in found}
        return cls(document, record, found.get("required"), path, found.get("verification_seconds"), told=told or None)

    def plot(self, axes: Any = None) -> Any:
        """How much of the witness, the error that is hardest to see, lies on each node, on
        matplotlib axes.
        """
        witness = self.document["witness"]
        lengths = [sum(x * x for x in part) for part in witness["direction"]]
        shares = {name: each / sum(lengths) for name, each in zip(witness["support"], lengths, strict=True)}
        return bars_on(axes, shares, across="share of the hardest error")

    def save(self, path: str | os.PathLike[str]) -> Certificate:
        """Write the document, and a large operator beside it."""
        path = Path(path)
        claim = self.document["operator"]
        beside = path.parent / claim["file"] if claim["storage"] == "file" else None
        new = beside is not None and not beside.exists()
        try:
            if beside is not None:
                _save_record(self.record, beside)
            write_text(path, json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        except BaseException:  # Ctrl-C too: no operator without its certificate
            if beside is not None and new:
                beside.unlink(missing_ok=True)
            raise
        return replace(self, path=path)


def _record_of(operator: Operator) -> OperatorRecord:
    """The record of an assembled operator."""
    matrix = operator.matrix.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    place, uncertain = operator.node_index, operator.uncertain
    named = [[place[node] for node in uncertain[block]] if block in uncertain else () for block in operator.block_ids]
    lengths = np.fromiter(map(len, named), np.int64, len(named))
    return OperatorRecord(
        node_ids=operator.node_ids,
        node_sizes=np.diff(operator.node_offsets).astype(np.int64),
        block_ids=operator.block_ids,
        block_kinds=operator.block_kinds,
        block_sizes=np.diff(operator.block_offsets).astype(np.int64),
        radii=np.array(operator.radii, dtype=np.float64),
        touch_starts=np.concatenate([[0], np.cumsum(lengths)]),
        touch_nodes=np.array([i for nodes in named for i in nodes], dtype=np.int64),
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int64),
        data=matrix.data.astype(np.float64),
    )


def _save_record(record: OperatorRecord, path: str | os.PathLike[str]) -> None:
    """Write the arrays as .npz without pickles; whole or not at all."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(getattr(record, name)) for name in ARRAYS}
    np.savez_compressed(buffer, format=np.array(FILE_FORMAT), **arrays)
    write_bytes(path, buffer.getvalue())
