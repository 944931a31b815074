"""The problem: a field, its row blocks, what they cost, and what is wanted of them.

`Problem` is plain frozen data that has been checked as a whole; every fault is one line naming the
entry. What it means as a matrix is in `operator`, how it is read and written in `files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from rrf_design._shown import Shown
from rrf_design.blocks import Anchor, Block, Nonlinear, Relation, Rule, SharedNoise, Tier
from rrf_design.errors import InputError
from rrf_design.field import Entry, Models, Node, NonNegative, Positive, Text

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.design import Design
    from rrf_design.operators import Operator
    from rrf_design.structure import Structure
    from solvers.result import Progress

Selection = Iterable[str] | str | None
"""Ids of blocks (and nodes) on sale to add to what is owned; None for nothing, "all" for
everything.
"""


class Problem(Shown, Entry):
    """A design problem.

    Build it from keywords, `rrf_design.load`, a networkx graph, or a matrix with groups.
    """

    name: Text = "unnamed"
    k: Annotated[int, Field(strict=True, ge=1)] = 1
    """Corruption budget: how many responses may be wrong."""
    budget: NonNegative | None = None
    target: NonNegative | None = None
    epsilon: NonNegative | None = None
    """Noise radius; or sigma with confidence."""
    sigma: Positive | None = None
    confidence: Annotated[float, Field(strict=True, gt=0, lt=1)] = 0.95
    delta: Positive | None = None
    """The recovery error that is acceptable."""
    amplitude: Positive | None = None
    """A bound on the norm of the true field on the nodes of uncertain blocks, where one is
    known.
    """
    tail: NonNegative = 0.0
    """A bound on the norm of small errors on all answers, beside the k units that are wrong."""
    local_radius: Positive | None = None
    """With nonlinear relations: how far the truth may be from the repaired values for what is
    promised of them.
    """
    deliver: tuple[Text, ...] | None = None
    """Ids of the nodes whose values must be right; every one by default."""
    wrong_checks: Annotated[int, Field(strict=True, ge=0)] = 0
    """How many anchors or relations may be wrong altogether, beside k units."""
    variance_floor: NonNegative = 0.0
    """No direction of a declared covariance counts as less noisy than this variance."""
    shrinkage: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.0
    """tau in (1 - tau) Sigma + tau tr(Sigma)/m I, applied to every declared covariance."""
    nodes: tuple[Node, ...]
    relations: tuple[Relation, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    nonlinear: tuple[Nonlinear, ...] = ()
    """Products, powers, thresholds and clauses: for local repair only."""
    rules: tuple[Rule, ...] = ()
    tiers: tuple[Tier, ...] = ()
    models: Models = Field(default_factory=dict)
    """Who can be asked in a live run, by name; no part of the design, and so not of its digest."""
    noise: tuple[SharedNoise, ...] = ()
    """Blocks whose noise is not independent of one another."""

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            from rrf_design.files import one_line

            raise InputError(one_line(error, data)) from None
        _check(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Problem:
        """A copy with other fields, checked like any problem (pydantic's own would keep what is
        cached here).
        """
        return Problem(**{**{name: getattr(self, name) for name in Problem.model_fields}, **(update or {})})

    def __getstate__(self) -> dict[Any, Any]:
        """Pickles hold the data alone; what is derived from it is derived again where it is
        needed.
        """
        state = super().__getstate__()
        return {**state, "__dict__": {name: getattr(self, name) for name in Problem.model_fields}}

    def _line(self) -> str:
        sizes = (("nodes", self.nodes), ("relations", self.relations), ("anchors", self.anchors))
        counts = ", ".join(f"{len(entries)} {name}" for name, entries in sizes)
        return f"{self.name!r:.80}, k = {self.k}: {counts}"

    def __str__(self) -> str:
        return repr(self)

    @cached_property
    def node_by_id(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def blocks(self) -> tuple[Relation | Anchor, ...]:
        """All row blocks, relations first, in file order: the order of the rows of B."""
        return (*self.relations, *self.anchors)

    @cached_property
    def read_together(self) -> Mapping[str, tuple[str, ...]]:
        """By node that is asked: the nodes that are read from its answer, beside itself."""
        found: dict[str, list[str]] = {}
        for node in self.nodes:
            if node.read_from is not None:
                found.setdefault(node.read_from, []).append(node.id)
        return {name: tuple(others) for name, others in found.items()}

    def asked_as(self, name: str) -> str:
        """The node whose question has to be asked for the value of this one."""
        return self.node_by_id[name].read_from or name

    @cached_property
    def block_by_id(self) -> Mapping[str, Relation | Anchor]:
        return {block.id: block for block in self.blocks}

    @cached_property
    def family_size(self) -> Mapping[str, int]:
        return Counter(block.family_name for block in self.blocks)

    @cached_property
    def estimated(self) -> frozenset[str]:
        """Ids of the blocks and nodes whose noise was estimated from repeats."""
        return frozenset(entry.id for entry in (*self.blocks, *self.nodes) if entry.estimated_from is not None)

    @cached_property
    def noisy(self) -> frozenset[str]:
        """Ids of the blocks that declare noise of their own."""
        return frozenset(block.id for block in self.blocks if block.sigma is not None or block.covariance is not None)

    @cached_property
    def scattering(self) -> frozenset[str]:
        """Ids of the nodes whose answers scatter."""
        return frozenset(node.id for node in self.nodes if node.sigma is not None)

    @cached_property
    def whole(self) -> Operator:
        """The rows of every block over every node, each as if it were held alone; designs are
        slices of it.
        """
        from rrf_design.operators import whole

        return whole(self)

    @cached_property
    def on_sale(self) -> tuple[str, ...]:
        """Ids of the blocks that can be bought, in file order."""
        return tuple(block.id for block in self.blocks if not block.owned)

    @cached_property
    def digest(self) -> str:
        """See `rrf_design.files.digest`."""
        from rrf_design.files import canonical_digest, to_document

        return canonical_digest(to_document(self))

    def resolve(self, select: Selection = None) -> tuple[str, ...]:
        """The selected ids in file order (nodes, then blocks); InputError for what is unknown or
        not on sale.
        """
        purchasable = [node.id for node in self.nodes if node.cost is not None] + list(self.on_sale)
        if select is None:
            return ()
        if isinstance(select, str):
            if select == "all":
                return tuple(purchasable)
            select = [select]
        wanted = set(select) if isinstance(select, Iterable) else {select}
        if not all(isinstance(name, str) for name in wanted):
            raise InputError(f"select: give ids, not {select!r:.60}")
        known = set(purchasable)
        for unknown in sorted(wanted - known):
            if unknown in self.node_by_id or unknown in self.block_by_id:
                wanted.discard(unknown)  # owned already: naming it changes nothing
            else:
                raise InputError(f"select: nothing here is called {unknown!r}{_nearest(unknown, known)}")
        return tuple(name for name in purchasable if name in wanted)

    def held_beside(self, names: Iterable[str]) -> frozenset[str]:
        """The blocks that are held where these entries are: they, and what is owned, unless it is
        about a question on sale that is not asked.
        """
        held = set(names)
        held.update(node for name in held & self.block_by_id.keys() for node in self.block_by_id[name].nodes)

        def asked(node: str) -> bool:
            question = self.asked_as(node)
            return node in held or question in held or self.node_by_id[question].cost is None

        return frozenset(b.id for b in self.blocks if b.id in held or (b.owned and all(map(asked, b.nodes))))

    def operator(self, select: Selection = None) -> Operator:
        """B for what is owned plus what is selected; see `rrf_design.operators`."""
        return self.design(select).slice(self)

    @cached_property
    def structure(self) -> Structure:
        """What this problem shares with every other that differs in texts, offsets and values
        only.
        """
        from rrf_design.structure import Structure

        if self.nonlinear:
            raise InputError(
                f"{self.nonlinear[0].title}: margins, plans and certificates speak of all fields, and nonlinear"
                " relations hold locally only; ask repair, which says so"
            )
        return Structure(self)

    def design(self, select: Selection = None) -> Design:
        """What is owned plus what is selected."""
        return self.structure.selecting(select)

    def margin(
        self,
        select: Selection = None,
        *,
        k: int | None = None,
        method: str = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        progress: Progress | None = None,
    ) -> DesignMargin:
        """γ_k of what is owned plus what is selected, with the witness named by node id; the
        parameters are those of `rrf_design.margin`.
        """
        options: dict[str, Any] = {} if method == "auto" else {"method": method}
        return self.design(select).margin(k, n_jobs=n_jobs, time_limit=time_limit, progress=progress, **options)


def _check(problem: Problem) -> None:
    """Everything that needs more than one entry to be seen; InputError with one line."""
    if not problem.nodes:
        raise InputError("nodes: the field is empty; declare at least one node")
    _check_ids(problem)
    _check_fields(problem)
    family: dict[str, Block] = {}
    nodes = problem.node_by_id
    for block in problem.blocks:
        for name in block.nodes:
            if name not in nodes:
                raise InputError(f"{block.title}: unknown node {name!r}{_nearest(name, problem.node_by_id)}")
        first = block if block.family is None else family.setdefault(block.family, block)
        if first.weight != block.weight:
            raise InputError(
                f"{block.title}: weight {block.weight!r} differs from the weight {first.weight!r} of {first.id!r} in"
                f" the same family {block.family!r}; a family has one weight"
            )
        if first.correlation != block.correlation:
            raise InputError(
                f"{block.title}: correlation {block.correlation!r} differs from {first.correlation!r} of {first.id!r}"
                f" in the same family {block.family!r}; a family has one correlation"
            )
        for key in ("requires", "excludes") if block.requires or block.excludes else ():
            for name in getattr(block, key):
                if name not in problem.block_by_id:
                    near = _nearest(name, problem.block_by_id)
                    raise InputError(f"{block.title}: {key} names the unknown block {name!r}{near}")
    groups: list[Rule | Tier] = [*problem.rules, *problem.tiers]
    for group in groups:
        for name in group.blocks:
            if name not in problem.block_by_id or problem.block_by_id[name].owned:
                near = _nearest(name, problem.on_sale)
                raise InputError(f"{type(group).__name__.lower()} {group.id!r}: {name!r} is not a block on sale{near}")
    if problem.epsilon is not None and problem.sigma is not None:
        raise InputError("[problem]: give epsilon or sigma, not both")
    if problem.delta is not None and problem.tail >= problem.delta:
        raise InputError(
            f"[problem]: delta = {problem.delta:g} can't be promised with errors of up to tail = {problem.tail:g} on"
            " answers that count as right"
        )
    if problem.tail and any(node.sigma is not None for node in problem.nodes):
        raise InputError(
            "[problem]: give a tail for all answers, or sigma on the nodes whose answers scatter, not both"
        )
    _check_deliver(problem)
    _check_noise(problem)
    _check_nonlinear(problem)
    _ = problem.whole  # the shapes, by putting everything together


def _check_fields(problem: Problem) -> None:
    """Nodes that are read from the answer of another one, and those that are judged by a k of their
    own.
    """
    for node in problem.nodes:
        if node.k is not None and node.k > problem.k:
            raise InputError(f"node {node.id!r}: k = {node.k} is more than k = {problem.k} of the problem")
        if node.read_from is None:
            continue
        source = problem.node_by_id.get(node.read_from)
        if source is None or source.read_from is not None or source.repeats > 1 or source.again is not None:
            why = "is no node" if source is None else "is not a question that is asked once"
            raise InputError(f"node {node.id!r}: read_from = {node.read_from!r} {why}")


def _check_deliver(problem: Problem) -> None:
    if problem.deliver is None:
        return
    if not problem.deliver:
        raise InputError("[problem]: deliver is empty; name the nodes whose values are wanted, or leave it out for all")
    for name in problem.deliver:
        if name not in problem.node_by_id:
            raise InputError(f"[problem]: deliver names the unknown node {name!r}{_nearest(name, problem.node_by_id)}")
    if len(set(problem.deliver)) < len(problem.deliver):
        raise InputError("[problem]: deliver names a node twice")


def _check_noise(problem: Problem) -> None:
    owner: dict[str, str] = {}
    for entry in problem.noise:
        for name in entry.blocks:
            where = f"noise {entry.id!r}"
            block = problem.block_by_id.get(name)
            if block is None:
                raise InputError(f"{where}: unknown block {name!r}{_nearest(name, problem.block_by_id)}")
            if name in owner:
                raise InputError(f"{where}: {name!r} stands in noise {owner[name]!r} already; put them into one entry")
            if block.sigma is None and block.covariance is None:
                raise InputError(f"{where}: {block.title} declares no noise of its own; give it sigma or covariance")
            if entry.covariance is not None and block.estimated_from != entry.estimated_from:
                raise InputError(
                    f"{where}: {block.title} is estimated_from repeats, and the covariance of all is not, or from"
                    " others; give all of them the same estimated_from, or a correlation instead of the covariance"
                )
            if problem.family_size[block.family_name] > 1:
                raise InputError(f"{where}: {block.title} has a family; give the family a correlation instead")
            owner[name] = entry.id


def _check_nonlinear(problem: Problem) -> None:
    if problem.local_radius is not None and not problem.nonlinear:
        raise InputError("[problem]: local_radius goes with nonlinear relations, and there are none")
    for entry in problem.nonlinear:
        for name in entry.nodes:
            if name not in problem.node_by_id:
                raise InputError(f"{entry.title}: unknown node {name!r}{_nearest(name, problem.node_by_id)}")
    if not problem.nonlinear:
        return
    for node in problem.nodes:
        given = [key for key in ("cost", "metric", "sigma") if getattr(node, key) is not None]
        if node.dim != 1 or given:
            raise InputError(
                f"node {node.id!r}: beside nonlinear relations nodes are plain numbers; leave out"
                f" {given[0] if given else 'dim'}"
            )
    for block in problem.blocks:
        given = [key for key in ("cost", "sigma", "covariance", "rate") if getattr(block, key) is not None]
        if given or block.uncertainty:
            key = given[0] if given else "uncertainty"
            raise InputError(f"{block.title}: beside nonlinear relations leave out {key}; give [problem] an epsilon")
    odd = [key for key in ("tail", "sigma", "budget") if getattr(problem, key)]
    if odd:
        raise InputError(f"[problem]: {odd[0]} does not go with nonlinear relations, which are repaired locally")


def _check_ids(problem: Problem) -> None:
    entries: tuple[Node | Block | Nonlinear | Rule | Tier | SharedNoise, ...] = (
        *problem.nodes,
        *problem.blocks,
        *problem.nonlinear,
        *problem.rules,
        *problem.tiers,
        *problem.noise,
    )
    if len({entry.id for entry in entries}) == len(entries):
        return
    seen: dict[str, str] = {}
    for entry in entries:
        kind = "noise" if isinstance(entry, SharedNoise) else type(entry).__name__.lower()
        if entry.id in seen:
            raise InputError(
                f"{kind} {entry.id!r}: this id stands twice, first as {seen[entry.id]}; ids must be unique"
            )
        seen[entry.id] = kind


def _nearest(word: str, known: Iterable[str]) -> str:
    from rrf_design.files import suggestion  # which imports this module

    return suggestion(word, known)
