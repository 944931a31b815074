"""What equal items share: the operator of everything, the market, the index arrays, k, and the
margins solved so far.

Items of one recipe differ in prompts, values and offsets, seldom in B, prices and rules
(docs/algorithms.md, fact 21). Whatever depends on those alone is computed once here, and `share`
gives equal items one object, told by one key. A design (`rrf_design.design`) is what is held of a
structure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design.errors import InputError
from rrf_design.market import Market

if TYPE_CHECKING:
    from rrf_design.design import Design
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem, Selection

Mask = NDArray[np.bool_]
BLIND = 1e-18
"""A block whose energy is below this part of its own squared norm does not see a direction; that is
far above rounding.
"""
OWN = {
    "problem": ("name",),
    "nodes": ("prompt", "system", "parser", "max_tokens", "variables", "veto"),
    "relations": ("offset",),
    "anchors": ("value", "source"),
}
"""Keys of a problem file that may differ between items of one structure."""


class Structure:
    """A problem without what is its own: names, texts, offsets and values.

    Never changes after construction.
    """

    def __init__(self, problem: Problem) -> None:
        self._example = problem
        self.operator: Operator = problem.whole
        """Everything that is owned or on sale. Its targets are the example's and mean nothing
        here.
        """
        self.k = problem.k
        place = {node.id: i for i, node in enumerate(problem.nodes)}
        self._asked = np.array([place[problem.asked_as(node.id)] for node in problem.nodes], dtype=np.int64)
        self.own: Mask = _frozen((self._asked == np.arange(len(place))).tolist())
        """(nodes,): asked by themselves, not read from the answer of another one."""
        self.given: Mask = _frozen([problem.node_by_id[problem.asked_as(n.id)].cost is None for n in problem.nodes])
        """(nodes,): asked already."""
        self.owned: Mask = _frozen([block.owned for block in problem.blocks])
        """(blocks,): not on sale."""
        self.solved: dict[Any, Any] = {}
        """What was computed about designs of this structure, by what it was computed from."""
        self._latest: Design | None = None
        """Equal items ask for one design after the other."""

    @cached_property
    def market(self) -> Market:
        return Market(self._example)

    @cached_property
    def touches(self) -> sparse.csr_array:
        """(blocks, nodes): 1 where a block names a node, whatever its coefficient there."""
        place = self.operator.node_index
        named = [block.nodes for block in self._example.blocks]
        lengths = np.fromiter(map(len, named), np.int64, len(named))
        ends = np.concatenate([[0], np.cumsum(lengths)])
        columns = np.fromiter(map(place.__getitem__, chain.from_iterable(named)), np.int64, int(ends[-1]))
        shape = (len(named), len(place))
        return sparse.csr_array((np.ones(len(columns), dtype=np.int64), columns, ends), shape=shape)

    @cached_property
    def least(self) -> NDArray[np.float64]:
        """(blocks,): what the variance of each is raised by at least, in any design that holds it:
        for what it shares with what is owned (`rrf_design.rows.Sharing`).
        """
        sharing = self.operator.sharing
        waiting = self.touches @ (~self.given).astype(np.int64) > 0
        return np.ones(len(self.owned)) if sharing is None else sharing.least(self.owned & ~waiting, self.given)

    @cached_property
    def additive(self) -> bool:
        """Whether BᵀB is a sum over blocks: none shares a weight or noise with one on sale.

        Else a margin may fall with a purchase.
        """
        sharing = self.operator.sharing
        return sharing is None or bool(np.array_equal(self.least, sharing.raised(*self._everything)[0]))

    @property
    def _everything(self) -> tuple[Mask, Mask]:
        return np.ones((1, len(self.owned)), dtype=bool), np.ones((1, len(self.given)), dtype=bool)

    def ends(self) -> tuple[Operator, Operator]:
        """Rows such that the noise of every design lies between theirs: what is owned, and
        everything; diluted as much as may be, and as little.
        """
        low, high = self.holding(), self.selecting("all").operator
        sharing = self.operator.sharing
        if self.additive or sharing is None:
            return low.operator, high
        worn = sharing.raised(*self._everything)[0][low.blocks]
        owned = replace(low.operator, matrix=self.operator.restrict(low.blocks, low.nodes).weighed(worn**-0.5).matrix)
        loose = replace(high, matrix=self.operator.weighed(self.least**-0.5).matrix)
        return (
            replace(owned, held=replace(low.operator.held, dilation=high.held.dilation)),
            replace(loose, held=replace(high.held, dilation={})),
        )

    @cached_property
    def key(self) -> str:
        """See `structure_key`."""
        return structure_key(self._example)

    def energies(self, direction: Mapping[str, Collection[float]]) -> dict[str, float]:
        """‖C_j h‖² of every block by itself, owned or not, for a direction given by node id and
        zero elsewhere.

        What rounding leaves of nothing (below 1e-18 of ‖C_j‖²) is 0: that block is blind to the
        direction.
        """
        full = self.operator
        sizes = np.diff(full.node_offsets)
        nothing = {name: (0.0,) * int(size) for name, size in zip(full.node_ids, sizes, strict=True)}
        known = {name: part for name, part in direction.items() if name in nothing}
        seen = full.block_energies(full.stack({**nothing, **known}))
        seen[seen <= BLIND * self._squares] = 0.0
        return dict(zip(full.block_ids, seen.tolist(), strict=True))

    @cached_property
    def _squares(self) -> NDArray[np.float64]:
        """‖C_j‖² (Frobenius) of every block."""
        full = self.operator
        entries = np.diff(full.matrix.indptr)[: full.shape[0]]
        owner = np.repeat(np.repeat(np.arange(len(full.block_ids)), np.diff(full.block_offsets)), entries)
        return np.bincount(owner, weights=np.square(full.matrix.data), minlength=len(full.block_ids)).astype(np.float64)

    def node_mask(self, names: Collection[str]) -> Mask:
        return _mask(names, self.operator.node_index)

    def _with_all_read(self, nodes: Mask) -> Mask:
        """These nodes with every other that is read from the same answers."""
        if self.own.all():
            return nodes
        result = np.zeros_like(nodes)
        result[self._asked[nodes]] = True
        return result[self._asked]

    def block_mask(self, names: Collection[str]) -> Mask:
        return _mask(names, self.operator.block_index)

    def holding(self, held: Collection[str] = (), failed: Collection[str] = ()) -> Design:
        """The design of what is really there: holding a block does not ask its nodes.

        Nodes that failed are unread, blocks that did are gone.
        """
        from rrf_design.design import Design

        nodes = self._with_all_read(self.given | self.node_mask(held))
        blocks, gone = self.owned | self.block_mask(held), self.block_mask(failed)
        return Design(self, nodes, blocks & ~gone, unread=self.node_mask(failed), lost=blocks & gone)

    def selecting(self, select: Selection = None) -> Design:
        """The design of what is owned plus what is selected, with the queries that the selected
        blocks need.
        """
        from rrf_design.design import Design

        selected = self._example.resolve(select)
        if self._latest is not None and self._latest.selected == selected:
            return self._latest
        bought = self.block_mask(selected)
        nodes = self.given | self.node_mask(selected)
        nodes = self._with_all_read(nodes | ((self.touches.T @ bought.astype(np.int64)) > 0))
        if not nodes.any():
            raise InputError("the design is empty: no node has been asked; select at least one")
        self._latest = Design(self, nodes, self.owned | bought, selected=selected)
        return self._latest


def structure_key(problem: Problem) -> str:
    """SHA-256 of everything that B, prices, rules, noise and goal are made from: equal for items
    that share a structure.
    """
    from rrf_design.files import canonical_digest, to_document

    document = to_document(problem)
    for section, own in OWN.items():
        for entry in [document["problem"]] if section == "problem" else document.get(section, []):
            for name in own:
                entry.pop(name, None)
    return canonical_digest(document)


def share(problems: Mapping[str, Problem] | Iterable[Problem]) -> list[Structure]:
    """One structure for each problem, the same object for equal ones."""
    known: dict[str, Structure] = {}
    found = []
    for problem in problems.values() if isinstance(problems, Mapping) else problems:
        one = known.setdefault(problem.structure.key, problem.structure)
        problem.__dict__["structure"] = (
            one  # also where the problem is asked later: what is solved once is solved for all
        )
        found.append(one)
    return found


def _mask(names: Collection[str], place: Mapping[str, int]) -> Mask:
    result = np.zeros(len(place), dtype=bool)
    result[[place[name] for name in names if name in place]] = True
    return result


def _frozen(values: list[bool]) -> Mask:
    result = np.array(values, dtype=bool)
    result.setflags(write=False)
    return result
