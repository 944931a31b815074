"""The checks of a certificate, one after the other: each raises Refused with its reason, or says
what it found.

Nothing of `solvers` is imported. Margins are proved again by enumeration with verified Cholesky
factors (`proofs`), or from the certificate's own weights or dual matrix (`prove_dominance`,
`prove_dual`); witnesses, radii, error bounds and the regime are checked in rational and ball
arithmetic, sentences are written again (`wording`). What is only information is of its form. A
claim that is weaker than the truth is true; a claim that can't be re-proved is refused.

Claims that follow from the margin by arithmetic are checked in rationals or balls.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rrf_design.checker._protection import prove_protection
from rrf_design.checker.document import NUMBER, check_form, matches
from rrf_design.checker.exact import RATIONAL_ORDER, ProofOutcome, dependent, dominated, squared_image, squared_norm
from rrf_design.checker.noise import (
    AnswerNoise,
    NoiseKind,
    check_errors,
    covers,
    covers_answers,
    covers_estimate,
    joint_confidence,
    promised,
)
from rrf_design.checker.nullspace import NullSpace, check_nullspace
from rrf_design.checker.premises import Premises, check_pilot, check_rivals
from rrf_design.checker.proofs import Proof, prove_dominance, prove_dual, prove_floor, prove_listed
from rrf_design.checker.record import ARRAYS, OperatorRecord, load_record, record_from_lists
from rrf_design.checker.wording import (
    CONSEQUENCE,
    DECLARED_WEIGHTS,
    NORM,
    WEIGHTS,
    ZERO,
    Finding,
    assumption_lines,
    regime_of,
)
from rrf_design.errors import Refused

Progress = Callable[[float | None, tuple[float, float] | None, str], None]
"""As everywhere (`solvers.result.Progress`), and said again here, because this package could be
shipped alone.
"""

EXACT_GAP = 1e-6  # relative gap up to which a margin may be called exact


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, in words, and what it took."""

    name: str
    detail: str
    seconds: float


@runtime_checkable
class Documented(Protocol):
    """A certificate in memory: its document, and the operator that the document names."""

    @property
    def document(self) -> dict[str, Any]: ...
    @property
    def record(self) -> OperatorRecord: ...


@dataclass
class Steps:
    """One certificate on its way through the checks; what is found of it (its operator, its
    premises) is there for those that follow.
    """

    document: dict[str, Any]
    attached: Documented | None
    folder: Path | None
    checks: list[Check]
    time_limit: float
    progress: Progress | None
    proved: bool = False
    """Whether the lower bound of the margin is."""

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.time_limit

    def run(self) -> None:
        steps: tuple[tuple[str, Callable[[], str]], ...] = (
            ("form", self.form),
            ("operator", self.operator),
            ("protection", self.protection),
            *((("how often the premise fails", self.pilot),) if "pilot" in self.document else ()),
            ("witness", self.witness),
            ("uncertainty arithmetic", lambda: _check_uncertainty(self.document, self.record)),
            ("noise", lambda: check_noise(self.document, self.record)),
            ("error bounds", lambda: check_errors(self.document, self.record)),
            ("regime", lambda: _check_regime(self.document)),
            ("audit", lambda: _check_audit(self.document, self.image2)),
            ("rivals", lambda: check_rivals(self.document, self.record, self.premises)),
            ("sentences", lambda: _check_sentences(self.document, self.record)),
            ("null-space property", lambda: check_nullspace(self.document["nullspace"], self.record, self.k)),
            ("margin", self.margin),
            ("supports", self.conditional),
            ("uncertainty per support", self.per_support),
            ("budgets", self.budgets),
        )
        for name, step in steps:
            began = time.monotonic()
            detail = step()
            self.proved = self.proved or name == "margin"
            self.checks.append(Check(name, detail, time.monotonic() - began))

    def form(self) -> str:
        check_form(self.document)
        self.k = self.document["k"]
        if self.k < 1:
            raise Refused("k: must be at least 1")
        return "format, version, types and content digest"

    def operator(self) -> str:
        attached = None if self.attached is None else self.attached.record
        self.record = self._record(self.document["operator"], attached, "operator")
        return f"{self.record.rows} rows, {len(self.record.node_ids)} nodes, digest {self.record.digest[:12]}"

    def protection(self) -> str:
        claim = self.document["protection"]
        self.premises = None if claim is None else Premises.read(claim, self.record)
        if self.premises is None:
            return "each answer on its own, everything delivered, every check right"
        for key, nothing in (("conditional", None), ("budgets", [])):
            if self.document[key] != nothing:
                raise Refused(f"{key}: no such claim is proved under a premise")
        if self.document["error"]["largest_error"] is not None:
            raise Refused("error.largest_error: no minimax bound is proved under a premise")
        if self.document["nullspace"]["status"] != NullSpace.NOT_CERTIFIED:
            raise Refused("nullspace: the convex decoder counts nodes, not units")
        if self.document["margin"]["proof"]["kind"] not in ("none", "enumeration"):
            raise Refused("margin.proof: under a premise only an enumeration proves a bound")
        units, checks = len(self.premises.units), self.premises.wrong_checks
        return f"{units} units, {len(self.premises.deliver)} values delivered, {checks} checks may be wrong"

    def pilot(self) -> str:
        protection = self.document["protection"]
        units = None if protection is None else protection["units"]
        return check_pilot(self.document["pilot"], list(self.record.node_ids), units, self.k)

    def _record(self, claim: dict[str, Any], attached: OperatorRecord | None, where: str) -> OperatorRecord:
        """The operator that a section names, inline or in a file beside the certificate, if it is
        that one.
        """
        if claim.get("storage") == "inline":
            self._keys(claim, where, ARRAYS)
            record = record_from_lists(claim)
        elif claim.get("storage") == "file" and type(claim.get("file")) is str:
            self._keys(claim, where, ("file",))
            if Path(claim["file"]).name != claim["file"]:
                raise Refused(f"{where}.file: must be a plain file name beside the certificate")
            if self.folder is not None:
                record = load_record(self.folder / claim["file"])
            elif attached is not None:
                record = attached
            else:
                raise Refused(f"{where}: the certificate names a file, but where it lies is not known")
        else:
            raise Refused(f"{where}.storage: must be inline, or file with a name")
        for key, value in record.counts.items():
            if type(claim[key]) is not int or claim[key] != value:
                raise Refused(f"{where}.{key}: says {claim[key]!r}, but the operator has {value}")
        if claim["digest"] != record.digest:
            raise Refused(f"{where}.digest: the operator is not the one that was certified")
        return record

    def _keys(self, claim: dict[str, Any], where: str, also: Sequence[str]) -> None:
        if set(claim) != {"storage", "digest", "rows", "columns", "nodes", "blocks", *also}:
            raise Refused(f"{where}: keys are missing or unknown")

    def witness(self) -> str:
        margin = self.document["margin"]
        self.image2, self.length2 = self._rayleigh(self.document["witness"], 2 * self.k, "witness")
        self._above(margin["upper"], "margin.upper")
        if not 0.0 <= margin["lower"] <= margin["upper"]:
            raise Refused("margin: the bounds are out of order")
        exact = margin["lower"] >= margin["upper"] * (1 - EXACT_GAP) or margin["upper"] <= ZERO
        if margin["status"] != ("exact" if exact else "bounded"):
            raise Refused(f"margin.status: {margin['status']!r} does not go with the bounds")
        length = "‖h‖" if self.premises is None else "‖h_D‖"
        return f"‖Bh‖/{length} ≤ {margin['upper']!r} in exact arithmetic"

    def _above(self, upper: float, where: str) -> None:
        """By the witness's own quotient; a bound of 0 also when the columns of its support are
        dependent.
        """
        if Fraction(upper) ** 2 * self.length2 >= self.image2 and upper >= 0:
            return
        # Dependent columns may leave what is delivered alone: there the witness itself must show
        # it.
        few = self.premises is None and int(self.record.node_sizes[self.witnesses].sum()) <= RATIONAL_ORDER
        if upper != 0.0 or not few or not dependent(self.record.dense_part(self.witnesses)):
            raise Refused(f"{where}: the witness does not reach {upper!r}; its own quotient is larger")

    def _rayleigh(self, claim: dict[str, Any], size: int, where: str) -> tuple[Fraction, Fraction]:
        """‖Bh‖² and ‖h‖² of a witness, exactly."""
        nodes = [self.record.node_index.get(name, -1) for name in claim["support"]]
        most = len(nodes) if self.premises is None else self.premises.count(nodes)
        if -1 in nodes or len(set(nodes)) != len(nodes) or not 0 < most <= size:
            raise Refused(f"{where}.support: must name 1 to {size} different nodes of the operator")
        if [len(part) for part in claim["direction"]] != [int(self.record.node_sizes[i]) for i in nodes]:
            raise Refused(f"{where}.direction: does not fit the nodes of the support")
        vector = [float(x) for part in claim["direction"] for x in part]
        self.witnesses = nodes
        if self.premises is None:
            image2 = squared_image(self.record.by_column[:, self.record.columns_of(nodes)], vector)
            length2 = squared_norm(vector)
        else:
            image2, length2 = self.premises.quotient(nodes, vector)
        if not Fraction(1, 4) < length2 < 4:
            raise Refused(f"{where}.direction: is not of unit length")
        return image2, length2

    def margin(self) -> str:
        claim = self.document["margin"]
        proof = claim["proof"]
        size = 2 * self.k
        if proof["kind"] == "none":
            if claim["lower"] != 0.0:
                raise Refused("margin.lower: a positive bound needs a proof")
            return "a lower bound of zero needs no proof"
        if self.premises is not None:
            return self._protected(claim["lower"], "margin.lower")
        lower = claim["lower"]
        if proof["kind"] == "enumeration":
            found = self._floor(size, lower)
        elif proof["kind"] == "dominance":
            found = prove_dominance(self.record, size, floor=lower, weights=np.array(proof["weights"], dtype=float))
        else:
            found = prove_dual(self.record, size, floor=lower, triangle=np.array(proof["triangle"], dtype=float))
        return self._prove(found, "margin.lower")

    def _protected(self, floor: float, where: str, *, everything: bool = False) -> str:
        assert self.premises is not None
        left = max(0.0, self.deadline - time.monotonic())
        claim = self.premises.claim(2 * self.k, floor, everything=everything)
        return self._prove(prove_protection(claim, time_limit=left), where)

    def _prove(self, proof: Proof, where: str) -> str:
        if proof.outcome is ProofOutcome.REFUTED:
            raise Refused(f"{where}: the claim is false; {proof.reason}")
        if proof.outcome is ProofOutcome.UNDECIDED:
            raise Refused(f"{where}: the claim can't be re-proved; {proof.reason}")
        return f"{proof.tested} tests, {proof.escalated} of them in exact arithmetic"

    def _floor(self, size: int, floor: float, *, with_radii: bool = False) -> Proof:
        def told(done: float) -> None:
            if self.progress is not None:
                proved = self.document["margin"]["lower"] if self.proved else 0.0
                self.progress(done, (proved, self.document["margin"]["upper"]), "")

        left = max(0.0, self.deadline - time.monotonic())
        return prove_floor(self.record, size, floor=floor, with_radii=with_radii, time_limit=left, progress=told)

    def conditional(self) -> str:
        claim = self.document["conditional"]
        if claim is None:
            return "no claim about listed supports"
        supports = []
        for names in claim["supports"]:
            nodes = tuple(self.record.node_index.get(name, -1) for name in names)
            if -1 in nodes or len(set(nodes)) != len(nodes) or not nodes:
                raise Refused("conditional.supports: must name different nodes of the operator")
            supports.append(nodes)
        if not supports:
            raise Refused("conditional.supports: is empty")
        detail = self._prove(prove_listed(self.record, supports, floor=claim["lower"]), "conditional.lower")
        self.image2, self.length2 = self._rayleigh(claim["witness"], max(map(len, supports)), "conditional.witness")
        held = {self.record.node_index[name] for name in claim["witness"]["support"]}
        if not any(held <= set(support) for support in supports):
            raise Refused("conditional.witness: lies in none of the listed supports")
        self._above(claim["upper"], "conditional.upper")
        return detail

    def per_support(self) -> str:
        claimed = self.document["uncertainty"]["support_lower"]
        guarded = self.document["protection"]
        if guarded is not None and guarded["field_lower"] is not None:
            if guarded["field_lower"] < 0.0:
                raise Refused("protection.field_lower: is negative")
            return self._protected(guarded["field_lower"], "protection.field_lower", everything=True)
        if claimed is None:
            return "no claim"
        if claimed == 0.0:
            return "a bound of zero needs no proof"
        if claimed < 0.0:
            raise Refused("uncertainty.support_lower: is negative")
        if not self.record.radii.any() and claimed <= self.document["margin"]["lower"]:
            return "no block has a radius: the margin itself"
        return self._prove(self._floor(2 * self.k, claimed, with_radii=True), "uncertainty.support_lower")

    def budgets(self) -> str:
        last = self.k
        for number, claim in enumerate(self.document["budgets"]):
            where = f"budgets[{number}]"
            if claim["k"] <= last:
                raise Refused(f"{where}.k: budgets must grow from k + 1 on")
            last = claim["k"]
            self.image2, self.length2 = self._rayleigh(claim["witness"], 2 * last, f"{where}.witness")
            self._above(claim["upper"], f"{where}.upper")
            if not 0.0 <= claim["lower"] <= claim["upper"]:
                raise Refused(f"{where}: the bounds are out of order")
            self._prove(self._floor(2 * last, claim["lower"]), f"{where}.lower")
        return f"{len(self.document['budgets'])} further budgets"


Document = dict[str, Any]
DIGEST = re.compile(r"[0-9a-f]{64}")


def _check_uncertainty(document: Document, record: OperatorRecord) -> str:
    """η, and what it leaves of the margin."""
    claim = document["uncertainty"]
    eta, lower = Fraction(claim["eta"]), Fraction(document["margin"]["lower"])
    guarded = document["protection"]
    if guarded is not None and len(guarded["deliver"]) < len(record.node_ids):  # E acts on what is not delivered, too
        lower = min(lower, Fraction(guarded["field_lower"] or 0))
    if guarded is not None and record.radii.any() and claim["support_lower"]:
        raise Refused("uncertainty.support_lower: is not proved under a premise")
    if guarded is not None and not record.radii.any():
        lower = Fraction(document["margin"]["lower"])
    if claim["eta"] < 0 or eta * eta < squared_norm(record.radii[record.radii > 0]):
        raise Refused("uncertainty.eta: is smaller than the root of the sum of squared radii")
    if claim["global_lower"] != 0.0 and not 0 < Fraction(claim["global_lower"]) <= lower - eta:
        raise Refused("uncertainty.global_lower: is more than the margin minus eta")
    known = [claim["global_lower"]] + ([] if claim["support_lower"] is None else [claim["support_lower"]])
    if claim["robust_lower"] != max(known):
        raise Refused("uncertainty.robust_lower: is not the larger of the two bounds")
    if claim["confidence"] is not None and not 0.0 < claim["confidence"] < 1.0:
        raise Refused("uncertainty.confidence: must lie between 0 and 1")
    return f"eta = {claim['eta']!r}"


def check_noise(document: Document, record: OperatorRecord) -> str:
    """The noise radius, and the rows it is about."""
    claim = document["noise"]
    if claim["kind"] not in set(NoiseKind):
        raise Refused(f"noise.kind: {claim['kind']!r} is unknown")
    kind = NoiseKind(claim["kind"])
    blocks = record.block_ids if claim["blocks"] is None else claim["blocks"]
    sizes = dict(zip(record.block_ids, record.block_sizes.tolist(), strict=True))
    if len(set(blocks)) != len(blocks) or not set(blocks) <= set(sizes):
        raise Refused("noise.blocks: must name different blocks of the operator")
    if claim["rows"] != sum(sizes[name] for name in blocks):
        raise Refused(f"noise.rows: says {claim['rows']}, but those blocks have {sum(sizes[name] for name in blocks)}")
    if (claim["epsilon"] is None) != (kind is NoiseKind.NONE) or (claim["epsilon"] or 0.0) < 0.0:
        raise Refused("noise.epsilon: must be a radius, and only where there is noise")
    given = (claim["sigma"] is not None, claim["confidence"] is not None)
    if given != (kind.random, kind.random):
        raise Refused("noise: sigma and confidence belong to random noise, and only there")
    if kind.random:
        if claim["sigma"] <= 0.0 or not 0.0 < claim["confidence"] < 1.0:
            raise Refused("noise: sigma must be positive and confidence between 0 and 1")
        keys = ("epsilon", "sigma", "rows", "confidence")
        if not covers(kind, **{key: claim[key] for key in keys}):
            raise Refused("noise.epsilon: is too small for the stated confidence")
    if "estimated" in claim:
        _check_estimates(claim["estimated"], claim.get("answers", {}).get("nodes", {}), record)
    if "answers" in claim:
        _check_answers(claim["answers"], document, record)
    if kind is NoiseKind.CORRELATED:
        _check_shared(claim["shared"], blocks)
    return f"{kind}, radius {claim['epsilon']!r}"


def _check_estimates(claim: dict[str, Any], scattered: dict[str, Any], record: OperatorRecord) -> None:
    """That estimates were raised by enough, and how sure that is of all of them together.

    Nodes must be among those that scatter.
    """
    sizes = dict(zip(record.block_ids, record.block_sizes.tolist(), strict=True))
    spans = dict(zip(record.node_ids, record.node_sizes.tolist(), strict=True))
    nodes = claim.get("nodes", [])
    for kind, entries, known in (("block", claim["blocks"], sizes), ("node", nodes, spans)):
        names = [entry[kind] for entry in entries]
        if len(set(names)) < len(names) or not set(names) <= set(known):
            raise Refused(f"noise.estimated.{kind}s: must name different {kind}s of the operator")
        for entry in entries:
            enough = entry["rows"] >= known[entry[kind]] or (kind == "block" and entry["rows"] == 1)
            if not enough or not 0.0 < entry["confidence"] < 1.0:
                raise Refused(
                    f"noise.estimated: rows are at least those of the {kind}, or 1, and a confidence lies between 0"
                    " and 1"
                )
            keys = ("rows", "repeats", "confidence")
            if not covers_estimate(entry["inflation"], **{key: entry[key] for key in keys}):
                raise Refused(f"noise.estimated: {entry[kind]!r} is raised by too little for so few repeats")
    if not {entry["node"] for entry in nodes} <= set(scattered):
        raise Refused("noise.estimated.nodes: must be nodes whose answers scatter")
    joint = joint_confidence(*(entry["confidence"] for entry in [*claim["blocks"], *nodes]))
    if joint is None or not 0.0 < claim["confidence"] <= joint:
        raise Refused("noise.estimated.confidence: is more than the estimates leave together")


def _check_answers(entry: dict[str, Any], document: Document, record: OperatorRecord) -> None:
    """That answers which scatter as stated stay within both radii."""
    place = {name: index for index, name in enumerate(record.node_ids)}
    matches(list(entry["nodes"].values()), [NUMBER], "noise.answers.nodes")
    if not entry["nodes"] or not set(entry["nodes"]) <= set(place) or min(entry["nodes"].values()) <= 0.0:
        raise Refused("noise.answers.nodes: must give nodes of the operator a positive standard deviation")
    if not 0.0 < entry["confidence"] < 1.0 or document["noise"]["epsilon"] is None:
        raise Refused("noise.answers: needs a confidence between 0 and 1, and a radius of the rows")
    guarded = document["protection"]
    delivered = record.node_ids if guarded is None else guarded["deliver"]

    def columns(name: str) -> Any:
        return record.by_column[:, record.columns_of([place[name]])]

    if not covers_answers(AnswerNoise(**entry), columns, delivered):
        raise Refused("noise.answers: a radius is too small for the stated confidence")


def _check_shared(entries: list[dict[str, Any]], blocks: Sequence[str]) -> None:
    """That raised variances cover what is shared: R ⪯ c·I, exactly, R being the covariance of rows
    that were whitened block by block.
    """
    seen: set[str] = set()
    for place, entry in enumerate(entries):
        where, own = f"noise.shared[{place}]", set(entry["blocks"])
        if not own or len(own) < len(entry["blocks"]) or own & seen or not own <= set(blocks):
            raise Refused(f"{where}.blocks: must name noisy blocks, each in one entry")
        seen |= own
        if entry["members"] < len(own) or (entry["correlation"] is None) == (entry["covariance"] is None):
            raise Refused(f"{where}: needs a correlation or a covariance, of at least its blocks")
        if entry["correlation"] is not None:
            rho = Fraction(entry["correlation"])
            covered = 0 <= rho <= 1 and Fraction(entry["dilation"]) >= 1 + (entry["members"] - 1) * rho
        else:
            matches(entry["covariance"], [[NUMBER]], f"{where}.covariance")
            covered = dominated(entry["covariance"], entry["dilation"])
        if not covered:
            raise Refused(f"{where}.dilation: does not cover the noise that is shared")
    if not seen:
        raise Refused("noise.shared: names no block")


def _check_regime(document: Document) -> str:
    """The regime, and its consequence in the specified words."""
    error = document["error"]
    name = regime_of(
        Finding(
            lower=document["margin"]["lower"],
            robust_lower=document["uncertainty"]["robust_lower"],
            bound=promised(error),
            delta=error["delta"],
            largest_error=error["largest_error"],
            bounded=error["spread"] is not None,
        )
    )
    claim = document["regime"]
    if claim["name"] != name or claim["consequence"] != CONSEQUENCE[name]:
        raise Refused(f"regime: is {name}, not {claim['name']!r}, or its consequence is not the specified one")
    return str(name)


def _check_sentences(document: Document, record: OperatorRecord) -> str:
    """Every sentence is the one that the certificate's own numbers give; what is information names
    only what the operator has.
    """
    lines = assumption_lines(document, nodes=len(record.node_ids), uncertain=bool(record.radii.any()))
    if document["assumptions"] != lines:
        told = next((line for line in lines if line not in document["assumptions"]), "")
        raise Refused(f"assumptions: are not those of this certificate{f'; missing: {told}' if told else ''}")
    metrics, problem = document["metrics"], document["problem"]
    if metrics["norm"] != NORM or metrics["weights"] not in (WEIGHTS, DECLARED_WEIGHTS):
        raise Refused("metrics: norm and weights are not in the specified words")
    names: tuple[tuple[str, list[str], set[str]], ...] = (
        ("metrics.fibers", metrics["fibers"], set(record.node_ids)),
        ("metrics.whitened", metrics["whitened"], set(record.block_ids)),
        ("problem.selected", problem["selected"], {*record.node_ids, *record.block_ids}),
    )
    for where, listed, known in names:
        if len(set(listed)) != len(listed) or not set(listed) <= known:
            raise Refused(f"{where}: must name different entries of the operator")
    if not DIGEST.fullmatch(problem["digest"]):
        raise Refused("problem.digest: is no SHA-256 digest")
    return f"{len(lines)} assumptions are those of the numbers"


def _units(document: Document, nodes: list[str]) -> int:
    if document["protection"] is None:
        return len(nodes)
    return sum(not set(nodes).isdisjoint(unit) for unit in document["protection"]["units"])


def _check_audit(document: Document, image2: Fraction) -> str:
    """The witness's residual, and the pair or the sensitivity that follows from it."""
    claim, upper = document["audit"], document["margin"]["upper"]
    if Fraction(claim["residual"]) ** 2 < image2 or claim["residual"] < 0:
        raise Refused("audit.residual: the witness leaves more than that")
    if (claim["pair"] is not None) != (upper <= ZERO) or (claim["sensitivity"] is None) != (upper <= ZERO):
        raise Refused("audit: a pair belongs to a zero margin, a sensitivity to a positive one")
    if claim["pair"] is not None:
        first, second = claim["pair"]["first"], claim["pair"]["second"]
        if sorted(first + second) != sorted(document["witness"]["support"]):
            raise Refused("audit.pair: is not a division of the witness")
        if max(_units(document, first), _units(document, second)) > document["k"]:
            raise Refused("audit.pair: has more than k nodes on one side")
    elif not Fraction(999, 1000) <= Fraction(claim["sensitivity"]) * Fraction(upper) <= 1:
        raise Refused("audit.sensitivity: is not one over the margin of the witness")
    return "witness checked directly"
