"""What every repair takes and returns (paper, Algorithm "Sparse Relational Response Field Repair").

Sign convention, fixed here once: responses y = z + e with z the valid field and e the error, so the
repaired field is ẑ = y − ê and the syndrome is s = B y − c = B e. A decoder turns a `Task` into an
`DecoderOutcome` (an error vector and what it proved about it); `repair` turns that into a `Repair`
in the user's names, with the certificate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design._shown import ShownRows
from rrf_design.documents import sealed
from rrf_design.verdict import Verdict

if TYPE_CHECKING:
    from rrf_design.noise import Radius
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem
    from rrf_design.repairing._failures import Failure
    from rrf_design.repairing._fields import ResponseField
    from solvers.result import Progress

Array = NDArray[np.float64]
Values = tuple[float, ...]


class Certainty(StrEnum):
    """What a decoder's result amounts to, from which the verdict is decided."""

    UNIQUE = "unique"
    """The margin is positive, and exactly one set of at most k nodes explains the data."""
    BOUNDED = "bounded"
    """The margin is positive: the values are within the error bound, though other nodes might be
    the wrong ones.
    """
    UNIQUE_HERE = "unique here"
    """The design can't promise anything (zero margin), but these data have one explanation with at
    most k wrong.
    """
    AMBIGUOUS = "ambiguous"
    """Zero margin, and different errors explain these data equally well."""
    UNEXPLAINED = "unexplained"
    """No error on at most k nodes explains the data: more are wrong, or the noise is larger
    than ε.
    """
    UNDECIDED = "undecided"
    """A limit ended the search, or rounding hides on which side of ε the answer lies."""
    HEURISTIC = "heuristic"
    """The method promises nothing: a vote, min-sum, or an error on more than k nodes."""


@dataclass(frozen=True, slots=True)
class WorkSettings:
    """How the work is done; nothing here changes what is true, only how long it takes and how much
    of it is proven.
    """

    n_jobs: int | None = None
    time_limit: float | None = None
    seed: int = 0
    progress: Progress | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the chosen method alone: a decoder's penalty, weights, beta ..."""


SAME = 1e-9
"""Two answers agree when they differ by less than this, relative to their size."""


@dataclass(frozen=True)
class Task:
    """One field to decode, in the operator's whitened coordinates."""

    problem: Problem
    operator: Operator
    response: Array  # (coordinates,): y, with zeros as placeholders at erased nodes
    syndrome: Array  # (rows,): s = B y − c
    erased: tuple[int, ...]
    """Indices of nodes without a valid response: their error is known to be somewhere, which is
    easier than not knowing.
    """
    k: int
    epsilon: float
    """The radius that an explanation must keep to."""
    tolerance: float
    """Rounding allowance on ‖Bê − s‖ ≤ ε."""
    values: Mapping[str, Values]
    """The valid responses in the user's coordinates."""
    candidates: Mapping[str, tuple[Values, ...]] = field(default_factory=dict)
    named: Mapping[str, tuple[Values, ...]] = field(default_factory=dict)
    """Of the candidates those that the caller gave: the value is assumed to be one of them."""
    work: WorkSettings = WorkSettings()
    radius: Radius | None = None
    """The design's radius that `epsilon` comes from: of its rows alone, or with what uncertain
    relations add to it.
    """

    @cached_property
    def rounding(self) -> float:
        """Differences between values up to this are those of floats of their size, whatever was
        measured.
        """
        return 1e-9 * max(1.0, float(np.abs(self.response).max(initial=0.0)))

    @property
    def slack(self) -> float:
        """Changes of an answer up to this are rounding."""
        return max(self.tolerance, self.rounding)

    def count(self, nodes: tuple[int, ...]) -> int:
        """How many units these nodes belong to: what k is compared with."""
        premise = self.operator.premise
        return premise.count([self.operator.node_ids[i] for i in nodes]) if premise.units else len(set(nodes))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A field that is ready to be decoded: its task, and what its repair says beside the decoder's
    outcome.
    """

    task: Task
    field: ResponseField
    key: str
    """Of the operator (`operator_key`)."""
    digest: str
    """Of the problem."""
    selected: tuple[str, ...] = ()
    truth: Mapping[str, Any] | None = None
    hidden: Mapping[str, bool] | None = None

    @property
    def design(self) -> str:
        """Equal for fields that share margin, factorisations and null spaces."""
        return f"{self.key} k={self.task.k} erased={self.task.erased}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One error that explains the data, over coordinates."""

    support: tuple[int, ...]
    residual: float
    error: Array
    edge: bool = False
    """The residual is so near ε that rounding of the syndrome decides."""
    checks: tuple[int, ...] = ()
    """Blocks that are set aside: they are wrong in this explanation."""


@dataclass(frozen=True, slots=True)
class DecoderOutcome:
    """What a decoder found and proved.

    `proved` means: in exact arithmetic, `explanations` lists every minimal support of at most k
    nodes that leaves at most ε + tolerance, except for what `undecided` and `zero_rule` say.
    """

    error: Array  # (coordinates,): ê
    method: str
    explanations: tuple[Candidate, ...] = ()
    proved: bool = False
    edge: bool = False
    """The residual is so near ε that rounding decides."""
    complete: bool = True
    """False when a limit cut the work short."""
    undecided: tuple[tuple[int, ...], ...] = ()
    """Supports that may explain the data or not: too near ε for floats, too large for rationals."""
    zero_rule: bool = False
    """Directions below 1e-10 of their node's length were taken for zero, though they are not
    exactly zero.
    """
    heuristic: bool = False
    boundless: bool = False
    """No radius is certain: uncertain relations could add anything to the noise."""
    unknown: tuple[int, ...] = ()
    """Erased nodes for which the method has no value."""
    gap: float | None = None
    """Upper bound on how far the objective is from its optimum; 0 for an exact search, None when
    nothing is known.
    """
    objective: float | None = None
    iterations: int = 0
    best_smaller: float | None = None
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    checks: tuple[int, ...] = ()
    """Blocks that are set aside for this error."""


class Decoder(ABC):
    """Turns a task into an outcome.

    Stateless: one object serves any number of tasks, also at the same time.

    `name` is what users write as method. A decoder never judges its own certainty: it says what it
    proved, and `rrf_design.repairing._judgement` compares that with the margin, ε and k in one
    place for all methods.
    """

    name: str
    counts_units = False
    """Whether it knows units of several nodes and checks that may be wrong."""
    options: tuple[str, ...] = ()
    """What the method can be told beyond the task; anything else is an error of the caller, never
    ignored.
    """

    @abstractmethod
    def decode(self, task: Task) -> DecoderOutcome:
        """The error that explains the syndrome, by this method's lights."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another explanation of the same data: these nodes wrong instead, with the values they would
    then have.
    """

    support: tuple[str, ...]
    repaired: Mapping[str, Values | None]
    residual: float
    edge: bool = False
    """Its residual is ε to within the rounding of the data, so it may be no explanation."""
    free: int = 0
    """Dimensions along which these nodes could change without anything that is measured
    changing.
    """
    checks: tuple[str, ...] = ()
    """Anchors and relations that are wrong in this explanation."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Recorded on every run (paper, "Optimization diagnostics")."""

    objective: float | None
    relation_residual: float
    anchor_residual: float
    active_groups: int
    gap: float | None
    best_smaller: float | None
    """Least residual with fewer nodes than the answer has: above ε, it proves that no smaller set
    explains the data.
    """
    posterior_bound: float | None
    """(ε + residual) / γ: the error bound once the residual is known."""
    complete: bool
    iterations: int
    seconds: float
    seed: int
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Repair(ShownRows):
    """The repaired field and its certificate.

    The first six are the keys of the JSON that scripts rely on.
    """

    repaired: Mapping[str, Values | None]
    """ẑ by node id; None where the data say nothing about the value."""
    support: tuple[str, ...]
    """Nodes whose answer was wrong, in file order (erased nodes are not among them; see
    `erased`).
    """
    residual: float
    gamma: float
    error_bound: float | None
    """A bound on ‖ẑ − z‖ over all delivered nodes, in their metrics, if what is assumed holds; None
    when there is none.
    """
    method: str
    certainty: Certainty
    verdict: Verdict
    """What may be believed; see `rrf_design.verdict`."""
    assumes: str
    """The premise of the verdict, in words."""
    reason: str
    """Why it is this sure, in a sentence."""
    error: Mapping[str, Values]
    """ê by node id, support only: what the wrong answers were off by (response minus repaired)."""
    alternatives: tuple[Alternative, ...]
    """Every other minimal explanation with at most k wrong nodes, as far as the method lists
    them.
    """
    indistinguishable: tuple[str, ...]
    """At zero margin: nodes on which an error can move without being seen, so that these can't be
    told apart.
    """
    erased: Mapping[str, str]
    """Nodes without a valid response, and why: parse failure, timeout, refusal, missing."""
    k: int
    epsilon: float
    tolerance: float
    gamma_lower: float
    witness: Mapping[str, Values]
    diagnostics: Diagnostics
    failures: tuple[Failure, ...] = ()
    """Where ground truth was given: why the repair is not the truth; empty when it is."""
    truth_error: float | None = None
    selected: tuple[str, ...] = ()
    problem_digest: str = ""
    notes: tuple[str, ...] = ()
    bounds: Mapping[str, float] = field(default_factory=dict)
    """`error_bound` node by node, in the units of the node's own answers; empty when there is
    none.
    """
    wanted: float | None = None
    robust_lower: float = 0.0
    wrong_checks: tuple[str, ...] = ()
    """Anchors and relations that contradict the rest: every explanation sets them aside."""
    decided_by: str | None = None
    """The check that states the delivered value; None where no check does."""

    def _line(self) -> str:
        wrong = ", ".join(self.support) or "no answer"
        bound = "" if self.error_bound is None else f", within {self.error_bound:.4g}"
        return f"{self.verdict}: {wrong} wrong{bound}; {self.reason}"

    def _records(self) -> Iterator[dict[str, Any]]:
        for name, value in self.repaired.items():
            yield {
                "node": name,
                "repaired": None if value is None else list(value),
                "wrong": name in self.support,
                "bound": self.bounds.get(name),
                "unread": self.erased.get(name),
            }

    def to_json(self) -> dict[str, Any]:
        """The document `rrf-repair`."""
        return to_document(self)

    @property
    def nearest(self) -> Mapping[str, Values | None]:
        """The decoder's estimate, for analysis: `repaired` with the values that are withheld
        because nothing vouches for them.
        """
        found: Mapping[str, Values | None] = self.diagnostics.details.get("nearest", self.repaired)
        return found

    @property
    def blamed(self) -> tuple[str, ...]:
        """The nodes that `nearest` edits."""
        return tuple(self.diagnostics.details.get("blamed", self.support))

    @property
    def guaranteed(self) -> bool:
        return self.verdict.passes


def to_document(result: Repair) -> dict[str, Any]:
    """A repair as a JSON document: format, version, the problem it belongs to, and everything that
    was found.

    Parameters
    ----------
    result : the repair.

    Returns
    -------
    dict
        Plain lists, tables, strings and numbers; infinities are null.

    >>> import rrf_design as rrf
    >>> from rrf_design.repairing import to_document
    >>> problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 2}])
    >>> to_document(rrf.repair(problem, {"a": 2}))["verdict"]
    'checked'
    """
    document = sealed("rrf-repair", {"problem": result.problem_digest})
    content: dict[str, Any] = _plain(result)
    content.pop("problem_digest")
    return {**document, **content, "guaranteed": result.guaranteed}


_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


def _plain(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:  # most are: asked first, because a run over many items does this for every entry
        return value
    if type(value) is float:
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    return str(value) if isinstance(value, str) else value
