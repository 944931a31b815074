"""Problem → problem, each with its way back: the same questions with something taken out, filled
in, or already bought.

Names stay what they were, so whatever is found about the derived problem (a plan, a margin, a
witness) speaks of the original as it stands. Each function says what the derived problem keeps: its
rows, its prices, or both.

`joined_problem` gives a fixed selection its actual joint noise. While it is open what will be
bought, shared noise is covered by raised variances (`rrf_design.rows`), and the margin is a bound.
Once the selection is fixed, the held blocks that share a covariance can be one block with the
covariance of all their rows: the margin is then γ_Σ itself, and everything else (certificates,
their verifier, repairs) is computed from that block.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from rrf_design.blocks import Anchor, Relation, SharedNoise
from rrf_design.errors import InputError
from rrf_design.field import Node
from rrf_design.problem import Problem, Selection
from rrf_design.rows import bare_target, block_height, block_rows


def without_noise(problem: Problem) -> Problem:
    """Every block equally noisy: rows in the units of the file.

    Prices stay. The problem itself where none is declared.
    """
    if not any(block.sigma is not None or block.covariance is not None for block in problem.blocks):
        return problem
    changed = {
        key: tuple(
            block.model_copy(update={"sigma": None, "covariance": None, "estimated_from": None})
            for block in getattr(problem, key)
        )
        for key in ("relations", "anchors")
    }
    return problem.model_copy(update={**changed, "noise": ()})


def with_radii(problem: Problem, radii: Mapping[str, float]) -> Problem:
    """Other radii of uncertainty for some blocks: a calibration instead of what the file declares.

    Rows and prices stay.
    """
    for name in radii:
        if name not in problem.block_by_id:
            raise InputError(f"uncertainty: {name!r} is not a block of this problem")
    if not radii:
        return problem
    changed = {
        key: tuple(
            block.model_copy(update={"uncertainty": radii[block.id]}) if block.id in radii else block
            for block in getattr(problem, key)
        )
        for key in ("relations", "anchors")
    }
    return problem.model_copy(update=changed)


def asking(problem: Problem, repeats: Mapping[str, int]) -> Problem:
    """Some nodes asked more often: their answers are means and scatter less. Rows and prices
    stay.
    """
    for name in repeats:
        if name not in problem.node_by_id:
            raise InputError(f"repeats: {name!r} is not a node of this problem")
    if not repeats:
        return problem
    nodes = tuple(
        Node(**{**node.model_dump(), "repeats": repeats[node.id]}) if node.id in repeats else node
        for node in problem.nodes
    )
    return problem.model_copy(update={"nodes": nodes})


def on_sale(problem: Problem, prices: Mapping[str, float]) -> Problem:
    """Every question on sale at its price, one for itself; checks that would have to be bought are
    gone, and rules and tiers with them. Rows stay.
    """
    nodes = tuple(node.model_copy(update={"cost": prices.get(node.id, 0.0), "price": None}) for node in problem.nodes)
    anchors = tuple(block for block in problem.anchors if block.cost is None)
    relations = tuple(block for block in problem.relations if block.cost is None)
    changed = {"nodes": nodes, "anchors": anchors, "relations": relations, "rules": (), "tiers": ()}
    return problem.model_copy(update=changed)


def askable(problem: Problem) -> Problem:
    """Nodes without a prompt can't be asked again: their answers are given, and stay what they
    are.
    """
    if all(node.again is None or node.prompt is not None for node in problem.nodes):
        return problem
    nodes = tuple(node.model_copy(update={"again": None}) if node.prompt is None else node for node in problem.nodes)
    return problem.model_copy(update={"nodes": nodes})


def owning(problem: Problem, names: Collection[str]) -> Problem:
    """The problem after these purchases: rows stay, and so does the bill of everything else.

    What a tier or a rule has left after them stays with it: a tier goes on at the price it has
    reached, a rule counts what is there already.
    """
    bought = {name for name in names if name in problem.node_by_id or name in problem.block_by_id}
    if not bought:
        return problem
    changed: dict[str, Any] = {
        key: tuple(
            entry.model_copy(update={"cost": None}) if entry.id in bought else entry for entry in getattr(problem, key)
        )
        for key in ("nodes", "relations", "anchors")
    }
    rules, tiers = [], []
    for rule in problem.rules:
        left = tuple(name for name in rule.blocks if name not in bought)
        gone = len(rule.blocks) - len(left)
        most = None if rule.at_most is None else max(0, rule.at_most - gone)
        least = None if rule.at_least is None else max(0, rule.at_least - gone)
        if left:
            rules.append(rule.model_copy(update={"blocks": left, "at_most": most, "at_least": least}))
    for tier in problem.tiers:
        left = tuple(name for name in tier.blocks if name not in bought)
        gone = len(tier.blocks) - len(left)
        if left:
            rest = tier.prices[gone:] or tier.prices[-1:]
            tiers.append(tier.model_copy(update={"blocks": left, "prices": rest}))
    return problem.model_copy(update={**changed, "rules": tuple(rules), "tiers": tuple(tiers)})


def _is_value(problem: Problem, name: str, value: tuple[float, ...]) -> bool:
    block = problem.block_by_id[name]
    known = block.value if isinstance(block, Anchor) else None
    return known is not None and (known if isinstance(known, tuple) else (known,)) == value


def realised(
    problem: Problem,
    *,
    failed: Collection[str],
    values: Mapping[str, tuple[float, ...]],
    held: Collection[str] | None = None,
) -> Problem:
    """The problem as it turned out: failed parts left out, bought anchor values filled in.

    As many checks may be wrong as before, of those that are owned or `held` (None: of all), failed
    ones counted: which of them failed may have to do with which are wrong.
    """
    gone = set(failed)
    if not gone and all(_is_value(problem, name, value) for name, value in values.items()):
        return problem  # it turned out as it was written
    keep = [block for block in problem.blocks if block.id not in gone and not gone.intersection(block.nodes)]
    names = {block.id for block in keep}
    kept = {}
    for block in keep:
        changes: dict[str, Any] = {
            key: tuple(n for n in getattr(block, key) if n in names) for key in ("requires", "excludes")
        }
        if block.id in values:
            changes["value"] = values[block.id]
        kept[block.id] = block.model_copy(update=changes)
    groups: dict[str, Any] = {
        key: tuple(
            group.model_copy(update={"blocks": left})
            for group in getattr(problem, key)
            if (left := tuple(name for name in group.blocks if name in names))
        )
        for key in ("rules", "tiers")
    }
    wanted = set(
        problem.deliver or ()
    )  # what is to be delivered stays in the field, though nothing measures it any more
    nodes = [
        node.model_copy(update={"cost": None}) if node.id in gone else node
        for node in problem.nodes
        if node.id not in gone or node.id in wanted
    ]
    counted = problem.block_by_id if held is None else problem.held_beside(held)
    there = [b.id for b in problem.blocks if b.id in counted]
    premise, everywhere = problem.whole.premise, problem.node_by_id
    before = premise.among(there, everywhere)
    after = premise.among([name for name in there if name in names], everywhere)
    suspect = not before.suspects or not before.suspects.isdisjoint(names)
    return problem.model_copy(
        update={
            # none where the checks that may be wrong are gone
            "wrong_checks": problem.wrong_checks + before.rated - after.rated if suspect else 0,
            "nodes": tuple(nodes),
            "relations": tuple(kept[b.id] for b in problem.relations if b.id in kept),
            "anchors": tuple(kept[b.id] for b in problem.anchors if b.id in kept),
            "noise": tuple(one for entry in problem.noise if (one := _noise_among(problem, entry, names))),
            **groups,
        }
    )


def with_classes(example: Problem, nodes: frozenset[str], count: int) -> Problem:
    """The example with fibers for so many classes at its open nodes; InputError where a relation
    could not carry a class.
    """
    for block in example.blocks:
        if not nodes.intersection(block.nodes):
            continue
        if isinstance(block, Anchor):
            if block.rows is not None:
                raise InputError(f"{block.title}: rows can't be taken of {block.nodes[0]!r}, whose answers are classes")
        elif not nodes.issuperset(block.nodes):
            words, others = ([n for n in block.nodes if (n in nodes) is kind] for kind in (True, False))
            raise InputError(
                f"{block.title}: the answers of {', '.join(words)} are classes, and those of {', '.join(others)} are"
                " numbers: give both the same parse"
            )
        elif block.pair is None or block.transport.kind != "identity" or block.offset != 0.0:
            raise InputError(
                f"{block.title}: answers that are classes can only be the same as others; leave out change"
            )
    if count == 1:
        return example
    changed = tuple(node.model_copy(update={"dim": count}) if node.id in nodes else node for node in example.nodes)
    return example.model_copy(update={"nodes": changed})


def _noise_among(problem: Problem, entry: SharedNoise, names: Collection[str]) -> SharedNoise | None:
    """The entry for the blocks that stay; None where fewer than two do."""
    left = tuple(name for name in entry.blocks if name in names)
    if len(left) < 2:
        return None
    covariance = entry.covariance
    if covariance is not None:
        owner = [name for name in entry.blocks for _ in range(block_height(problem, problem.block_by_id[name]))]
        there = [place for place, name in enumerate(owner) if name in names]
        covariance = tuple(tuple(covariance[i][j] for j in there) for i in there)
    return entry.model_copy(update={"blocks": left, "covariance": covariance})


def field_problems(problem: Problem, held: Collection[str] = ()) -> tuple[Problem, ...]:
    """One problem for each delivered field: what hangs together with it by blocks that are owned or
    `held`, with its own k and tolerance; the problem itself where it delivers no more than one.

    Fields that no relation links do not judge each other: who is wrong about the date may be right
    about the total. Where all nodes of a field have one tolerance its rows are in the unit of its
    answers, else in tolerances, as in the whole. Rows and prices stay; a node whose question was
    that of a node outside is asked itself.

    >>> import rrf_design as rrf
    >>> nodes = [{"id": f"{ask}.{path}"} for ask in "ab" for path in ("net", "date")]
    >>> same = [{"id": f"same {p}", "tail": f"a.{p}", "head": f"b.{p}"} for p in ("net", "date")]
    >>> whole = rrf.Problem(nodes=nodes, relations=same, deliver=["a.net", "a.date"])
    >>> [[node.id for node in one.nodes] for one in field_problems(whole)]
    [['a.net', 'b.net'], ['a.date', 'b.date']]
    """
    if problem.deliver is None or len(problem.deliver) == 1:
        return (problem,)
    marked = problem.held_beside(held).intersection(
        block.id for block in problem.blocks if block.trusted is False or block.rate is not None
    )
    part = linked_nodes(problem, held)
    fields = []
    for name in problem.deliver:
        there = {*held, problem.asked_as(name)}  # a field is judged as if its own question were asked
        own = part if problem.node_by_id[problem.asked_as(name)].cost is None else linked_nodes(problem, there)
        fields.append(_one_field(problem, name, _with_questions(problem, own[name], there), marked))
    return tuple(fields)


def linked_nodes(problem: Problem, held: Collection[str] | None = None) -> dict[str, set[str]]:
    """By node: the nodes that blocks link it with where these entries are held (None: everything on
    sale), however far; blocks that share a weight or noise belong together. An owned block about a
    question that is not asked links nothing.
    """
    part = {node.id: {node.id} for node in problem.nodes}
    counted = problem.block_by_id.keys() if held is None else problem.held_beside(held)
    missing = frozenset[str]() if held is None else _unasked(problem, held)
    there = {block.id: block for block in problem.blocks if block.id in counted}
    shared: dict[str, set[str]] = {}
    for block in there.values():
        shared.setdefault(block.family_name, set()).update(block.nodes)
    linked = [*shared.values(), *(set(entry.nodes) for entry in there.values())]
    linked += [set(entry.nodes) for entry in problem.nonlinear if missing.isdisjoint(entry.nodes)]
    linked += [{n for name in one.blocks if name in there for n in there[name].nodes} for one in problem.noise]
    for names in linked:
        together = set().union(*(part[name] for name in names))
        part.update(dict.fromkeys(together, together))
    return part


def _unasked(problem: Problem, held: Collection[str]) -> frozenset[str]:
    """The nodes whose question is on sale and not held."""
    asked = {node.id: problem.asked_as(node.id) for node in problem.nodes}
    return frozenset(n for n, q in asked.items() if problem.node_by_id[q].cost is not None and not {n, q} & set(held))


def _with_questions(problem: Problem, field: Collection[str], held: Collection[str]) -> set[str]:
    """The nodes of a field, and the questions on sale that owned blocks would bring to it: asking
    one may help several fields, and joins them only once it is asked.
    """
    missing, members = _unasked(problem, held), set(field)
    if not missing:
        return members
    owned = (block for block in problem.blocks if block.owned)
    around = [names for entry in (*owned, *problem.nonlinear) if missing & (names := set(entry.nodes))]
    before = 0
    while before < len(members):
        before = len(members)
        for names in around:
            if names & members and names - missing <= members:
                members |= names
    return members


def part_of(problem: Problem, members: Collection[str]) -> Problem:
    """The part of a problem that lies on some of its nodes: their blocks with rows, prices and
    rules, without a budget or a goal for all of it.
    """
    nodes = tuple(node for node in problem.nodes if node.id in members)
    inside = {block.id for block in problem.blocks if set(block.nodes) <= set(members)}
    marked = any(block.trusted is False for block in problem.blocks)
    suspect = not marked or any(block.trusted is False and block.id in inside for block in problem.blocks)
    changed: dict[str, Any] = {
        "nodes": nodes,
        "deliver": None if problem.deliver is None else tuple(n for n in problem.deliver if n in set(members)),
        "relations": tuple(block for block in problem.relations if block.id in inside),
        "anchors": tuple(block for block in problem.anchors if block.id in inside),
        "noise": tuple(entry for entry in problem.noise if inside.issuperset(entry.blocks)),
        "rules": tuple(rule for rule in problem.rules if inside.issuperset(rule.blocks)),
        "tiers": tuple(tier for tier in problem.tiers if inside.issuperset(tier.blocks)),
        "wrong_checks": problem.wrong_checks if suspect else 0,
        **{"budget": None, "target": None},
    }
    return problem.model_copy(update=changed)


def _one_field(problem: Problem, name: str, members: frozenset[str] | set[str], marked: frozenset[str]) -> Problem:
    """The part of a problem that one delivered node is judged by; `marked`: the held blocks that
    are said to be possibly wrong.
    """
    own = [node for node in problem.nodes if node.id in members]
    tolerances = {node.tolerance for node in own}
    (unit,) = tolerances if len(tolerances) == 1 else (None,)
    square = None if unit is None else unit * unit
    asked: dict[str, str] = {}
    nodes = []
    for node in own:
        question = problem.node_by_id[problem.asked_as(node.id)]
        changes: dict[str, Any] = {"k": None, "tolerance": None, "veto": ()}
        changes |= {} if square is None else {"metric": None}
        first = asked.setdefault(question.id, node.id)
        changes["read_from"] = None if first == node.id else first
        if first == node.id != question.id:
            own_keys = ("cost", "price", "prompt", "after", "system", "model", "max_tokens")
            changes |= {key: getattr(question, key) for key in own_keys}
        nodes.append(node.model_copy(update=changes))
    blocks = {block.id for block in problem.blocks if members.issuperset(block.nodes)}

    def kept(entries: Collection[Any]) -> tuple[Any, ...]:
        there = (entry for entry in entries if entry.id in blocks)
        among = dict.fromkeys(("requires", "excludes"), ())
        return tuple(
            entry.model_copy(
                update={key: tuple(n for n in getattr(entry, key) if n in blocks) for key in among}
                | ({} if square is None else {"weight": float(f"{entry.weight * square:.12g}")})
            )
            for entry in there
        )

    field = problem.node_by_id[name]
    counted = any(node.tolerance is not None for node in problem.nodes)  # else `delta` is of answers as they are
    whole = not counted or (unit is None and field.tolerance is not None)
    delta = problem.delta if whole else field.tolerance
    changed: dict[str, Any] = {
        "k": problem.k if field.k is None else field.k,
        "delta": delta,
        "deliver": (name,),
        "nodes": tuple(nodes),
        "relations": kept(problem.relations),
        "anchors": kept(problem.anchors),
        "wrong_checks": problem.wrong_checks if blocks & marked or not marked else 0,
        "noise": tuple(one for entry in problem.noise if (one := _noise_among(problem, entry, blocks))),
        "budget": None,
    }
    if unit is not None:  # lengths are in tolerances in the whole
        scaled = {key: getattr(problem, key) for key in ("epsilon", "tail", "amplitude")}
        changed |= {key: float(f"{value * unit:.12g}") for key, value in scaled.items() if value}
    for key in ("rules", "tiers"):
        left = ((group, tuple(b for b in group.blocks if b in blocks)) for group in getattr(problem, key))
        changed[key] = tuple(group.model_copy(update={"blocks": names}) for group, names in left if names)
    return problem.model_copy(update=changed)


def joined_problem(problem: Problem, select: Selection = None) -> tuple[Problem, tuple[str, ...]]:
    """The problem in which held blocks of one `[[noise]]` covariance are one owned block, called
    like the entry; and what else is selected.

    One that is held alone stays what it is, as do entries with a correlation, which say no
    covariance. Rules and tiers are gone: the selection is made.

    >>> import rrf_design as rrf
    >>> labels = [{"id": f"label {x}", "node": x, "sigma": 1.0} for x in "ab"]
    >>> noise = [[1.0, 0.6], [0.6, 1.0]]
    >>> shared = {"id": "annotator", "blocks": ["label a", "label b"], "covariance": noise}
    >>> same = {"id": "same", "tail": "a", "head": "b", "transport": {"scale": -1.0}}
    >>> nodes = [{"id": "a"}, {"id": "b"}]
    >>> problem = rrf.Problem(nodes=nodes, anchors=labels, relations=[same], noise=[shared])
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
        if entry.covariance is None or len(there) < 2:  # by itself its noise is its own
            left.append(entry)
        else:
            merged[entry.id] = _one_block(problem, entry, there, design.operator.premise.suspects)
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
    """What is to be said of a margin for which held blocks share a covariance, and which verb gives
    the one without loss; nothing where none do.

    >>> import rrf_design as rrf
    >>> shared = {"id": "annotator", "blocks": ["a", "b"], "covariance": [[1.0, 0.6], [0.6, 1.0]]}
    >>> anchors = [{"id": name, "node": "x", "sigma": 1.0} for name in "ab"]
    >>> problem = rrf.Problem(nodes=[{"id": "x"}], anchors=anchors, noise=[shared])
    >>> print(shared_words(problem, {"a", "b"}))
    a and b share noise (annotator): this margin is a lower bound; certify --jointly gives that of
    just this selection.
    """
    there = {
        entry.id: [name for name in entry.blocks if name in held]
        for entry in problem.noise
        if entry.covariance is not None
    }
    shared = [f"{' and '.join(names)} share noise ({entry})" for entry, names in there.items() if len(names) > 1]
    if not shared:
        return ""
    if verb == "certify":
        bound = "this margin is a lower bound; certify --jointly gives that of just this selection."
    else:
        bound = (
            f"margins are lower bounds here, and what is best for them need not be best; {verb} --jointly tries every"
            " selection with its joint noise."
        )
    return f"{'; '.join(shared)}: {bound}"


def _one_block(problem: Problem, entry: SharedNoise, held: list[str], suspects: Collection[str]) -> Relation | Anchor:
    """The held blocks of an entry as one, with the part of the covariance that is theirs."""
    blocks = [problem.block_by_id[name] for name in held]
    for block in blocks:
        if block.weight != 1.0 or block.uncertainty > 0.0 or block.id in suspects:
            raise InputError(
                f"noise {entry.id!r}: {block.title} has a weight, is uncertain or may be wrong by itself, so its rows"
                " can't be one block with others; the margin with raised variances holds"
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
