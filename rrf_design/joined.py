"""The margin of a fixed selection with its actual joint noise: blocks that share a covariance, whitened together.

While it is open what will be bought, shared noise is covered by raised variances (`rrf_design.covariance`): BᵀB stays a sum over blocks, and the
margin is a bound. Once the selection is fixed, the blocks of an entry that are held can be one block with the covariance of all
their rows: the margin is then γ_Σ itself, and everything else (certificates, their verifier, repairs) takes it from there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.blocks import Anchor, Relation, SharedNoise
from rrf_design.errors import InputError
from rrf_design.rows import bare_target, block_height, block_rows

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection


def joined_problem(problem: Problem, select: Selection = None) -> tuple[Problem, tuple[str, ...]]:
    """The problem in which held blocks of one `[[noise]]` covariance are one owned block, called like the entry; and what else is selected.

    One that is held alone keeps its name and loses what covered the others' noise. Entries with a correlation say no covariance and stay as they are. Rules and tiers are gone: the selection is made.

    >>> import rrf_design as rrf
    >>> labels = [{"id": f"label {x}", "node": x, "sigma": 1.0} for x in "ab"]
    >>> shared = {"id": "annotator", "blocks": ["label a", "label b"], "covariance": [[1.0, 0.6], [0.6, 1.0]]}
    >>> same = {"id": "same", "tail": "a", "head": "b", "transport": {"scale": -1.0}}
    >>> problem = rrf.Problem(nodes=[{"id": "a"}, {"id": "b"}], anchors=labels, relations=[same], noise=[shared])
    >>> together, _ = joined(problem)
    >>> [round(p.margin().value, 3) for p in (problem, together)]
    [0.791, 1.581]
    """
    design = problem.design(select)
    held = set(design.operator.block_ids)
    merged: dict[str, Relation | Anchor] = {}
    left: list[SharedNoise] = []
    gone: set[str] = set()
    for entry in problem.noise:
        there = [name for name in entry.blocks if name in held]
        if entry.covariance is None or not there:
            left.append(entry)
        elif len(there) == 1:  # by itself its noise is its own
            gone.update(name for name in entry.blocks if name not in there)
        else:
            merged[entry.id] = _one_block(problem, entry, there)
            gone.update(entry.blocks)
    if not gone:
        return problem, problem.resolve(select)
    bare = {"requires": (), "excludes": ()}
    kept = [block.model_copy(update=bare) for block in problem.blocks if block.id not in gone]
    made = [*kept, *merged.values()]
    changed: dict[str, Any] = {
        "relations": tuple(block for block in made if isinstance(block, Relation)),
        "anchors": tuple(block for block in made if isinstance(block, Anchor)),
        "noise": tuple(left),
        "rules": (),
        "tiers": (),
    }
    opened = [node.id for node in problem.nodes if node.cost is not None and node.id in design.opened]
    bought = [name for name in design.selected if name in problem.block_by_id and name not in gone]
    return problem.model_copy(update=changed), tuple(dict.fromkeys([*opened, *bought]))


def shared_words(problem: Problem, held: Collection[str], *, verb: str = "certify") -> str:
    """What is to be said of a margin for which held blocks share a covariance, and which verb gives the one without loss; nothing
    where none do.

    >>> import rrf_design as rrf
    >>> shared = {"id": "annotator", "blocks": ["a", "b"], "covariance": [[1.0, 0.6], [0.6, 1.0]]}
    >>> anchors = [{"id": name, "node": "x", "sigma": 1.0} for name in "ab"]
    >>> print(shared_words(rrf.Problem(nodes=[{"id": "x"}], anchors=anchors, noise=[shared]), {"a", "b"}))
    a and b share noise (annotator): this margin is a lower bound that holds whatever else is bought; certify --jointly gives that of just this selection.
    """
    there = {
        entry.id: [name for name in entry.blocks if name in held]
        for entry in problem.noise
        if entry.covariance is not None
    }
    shared = [_sharing(entry, names) for entry, names in there.items() if names]
    if not shared:
        return ""
    if verb == "certify":
        bound = "this margin is a lower bound that holds whatever else is bought; certify --jointly gives that of just this selection."
    else:
        bound = f"margins are lower bounds here, and what is best for them need not be best; {verb} --jointly tries every selection with its joint noise."
    return f"{'; '.join(shared)}: {bound}"


def _sharing(entry: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} shares noise with what is not held ({entry})"
    return f"{' and '.join(names)} share noise ({entry})"


def _one_block(problem: Problem, entry: SharedNoise, held: list[str]) -> Relation | Anchor:
    """The held blocks of an entry as one, with the part of the covariance that is theirs."""
    from rrf_design.premise import Premise

    blocks = [problem.block_by_id[name] for name in held]
    suspects = Premise.of(problem).suspects
    for block in blocks:
        if block.weight != 1.0 or block.uncertainty > 0.0 or block.id in suspects:
            raise InputError(
                f"noise {entry.id!r}: {block.title} has a weight, is uncertain or may be wrong by itself, so its rows can't be one"
                " block with others; the margin with raised variances holds"
            )
    if entry.id in problem.block_by_id or entry.id in problem.node_by_id:
        raise InputError(f"noise {entry.id!r}: a node or block has the same id; rename the entry")
    heights = {name: block_height(problem, problem.block_by_id[name]) for name in entry.blocks}
    owner = [name for name in entry.blocks for _ in range(heights[name])]
    rows = [place for place, name in enumerate(owner) if name in held]
    covariance = np.array(entry.covariance)[np.ix_(rows, rows)].tolist()
    nodes = tuple(dict.fromkeys(name for block in blocks for name in block.nodes))
    parts: dict[str, list[list[float]]] = {name: [] for name in nodes}
    target: list[float] = []
    for block in blocks:
        own, height = block_rows(problem, block), heights[block.id]
        for name in nodes:
            part = own.get(name, np.zeros((height, problem.node_by_id[name].dim)))
            parts[name].extend(part.tolist())
        target.extend(bare_target(block, height))
    noise: dict[str, Any] = {"id": entry.id, "covariance": covariance, "estimated_from": entry.estimated_from}
    known = not np.isnan(target).any()
    if all(isinstance(block, Anchor) for block in blocks):
        together = np.hstack([np.array(parts[name]) for name in nodes]).tolist()
        return Anchor(nodes=nodes, rows=together, value=tuple(target) if known else None, **noise)
    if not known:
        raise InputError(f"noise {entry.id!r}: an anchor beside relations has no value yet; give one")
    rows_of = {name: tuple(map(tuple, part)) for name, part in parts.items()}
    return Relation(rows=rows_of, offset=tuple(target), **noise)
