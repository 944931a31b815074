"""One entry of a true document changed, every digest renewed: does anything that `verify` accepts
then say more than is true?

For each leaf of each document that `verify` takes (certificates with every optional section,
policies of every kind of draw, audits) the value becomes another one; lists and objects lose,
repeat or gain an entry. What is accepted must be one of three things: information, which `verify`
itself names as not proven; a weaker claim (a smaller lower bound, a larger upper one); or other
evidence for the same claim. Anything else is a hole.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rrf_design.checker.promise_words import AUDIT_INFORMATION, POLICY_INFORMATION, POLICY_TRUST
from rrf_design.checker.wording import INFORMATION
from scenarios.kit.exact_elimination import ExactGram
from scenarios.kit.sealing import Document, at, seal, seal_operator
from scenarios.rigour.forged_promises import met

Place = tuple[Any, ...]
FEW = 6
"""So many entries at both ends of a long list are changed; those between are like them."""


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every leaf, and every list and object, of a document."""
    if place:
        yield place
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
        inner = inner if len(inner) <= 2 * FEW else inner[:FEW] + inner[-FEW:]
    for key, part in inner:
        yield from places(part, (*place, key))


def changes(value: Any) -> list[Any]:
    """What a leaf is changed to; all different from what it was."""
    if isinstance(value, bool):
        found: list[Any] = [not value, None, 1]
    elif isinstance(value, int):
        found = [value + 1, value - 1, 2 * value, 0, -value, 10**6, None, float(value) + 0.5, str(value)]
    elif isinstance(value, float):
        found = [value * f for f in (1 + 1e-3, 1 - 1e-3, 2.0, 0.5, -1.0, 0.0, 1 + 1e-12)]
        found += [value + 1.0, 1e-9, 1.0, None, str(value)]
    elif isinstance(value, str):
        found = ["", "x", f"{value}.", value[:-1], value.replace("0", "1", 1), value.replace("1", "2", 1)]
        found += [value.replace("at most", "under"), None, 1]
    elif value is None:
        found = [0, 0.5, "x", [], {}]
    elif isinstance(value, list):
        found = [value[:-1], value[1:], [*value, *value[-1:]], value[::-1], [], None, [*value, "x"]]
    else:
        found = [{}, None, {**value, "x": 1}, *({k: v for k, v in value.items() if k != gone} for gone in value)]
    return [one for one in found if one != value or type(one) is not type(value)]


def changed(document: Document, place: Place, value: Any) -> bytes:
    """The document with that value there, sealed again wherever it has a digest."""
    result = copy.deepcopy(document)
    at(result, place[:-1])[place[-1]] = value
    if document["format"] != "rrf-certificate":
        return json.dumps(result).encode()
    if place[0] == "operator" and len(place) > 1 and place[1] in SEALED and isinstance(result["operator"], dict):
        seal_operator(result["operator"])
    return seal(result)


SEALED = (
    *("node_ids", "node_sizes", "block_ids", "block_kinds", "block_sizes", "radii"),
    *("touch_starts", "touch_nodes", "indptr", "indices", "data"),
)
LARGER = (
    *("margin.upper", "audit.residual", "error.bound", "error.effective_epsilon", "error.spread", "error.tail.bound"),
    *("error.tolerances.bound", "error.minimax.upper", "uncertainty.eta", "conditional.upper", "budgets[].upper"),
    *(
        "nullspace.rho",
        "nullspace.tau",
        "nullspace.c1",
        "nullspace.c2",
        "rivals.residual",
        "noise.epsilon",
        "pilot.bound",
    ),
    *("noise.answers.image", "noise.answers.own", "noise.estimated.blocks[].inflation", "noise.shared[].dilation"),
    *("bound", "record.bound", "wrong_answers.more_than[].bound", "wrong_answers.nodes[].bound"),
)
"""Bounds from above, and factors that cover something: more of them claims less."""
SMALLER = (
    *("margin.lower", "uncertainty.global_lower", "uncertainty.support_lower", "uncertainty.robust_lower"),
    *(
        "conditional.lower",
        "budgets[].lower",
        "error.confidence",
        "error.minimax.lower",
        "error.minimax.gaussian_lower",
    ),
    *("rivals.distance", "protection.field_lower", "noise.estimated.confidence", "protection.rates.confidence"),
    *(
        "noise.shared[].correlation",
        "noise.shared[].members",
        "noise.estimated.blocks[].confidence",
        "nullspace.kernel.floor",
    ),
)
"""Bounds from below, probabilities that something holds, and what is shared: less of them claims
less.
"""
FEWER = (
    "conditional",
    "conditional.supports",
    "rivals",
    "budgets",
    "protection.field_lower",
    "uncertainty.support_lower",
)
"""A claim that is left out claims nothing."""
EVIDENCE = (
    *("witness", "conditional.witness", "conditional.supports", "budgets[].k", "budgets[].witness", "audit.pair"),
    *("nullspace.kernel", "nullspace.witness", "rivals.first", "rivals.second", "margin.proof", "protection.wrong"),
    *("protection.suspects", "protection.units", "protection.deliver", "noise.blocks", "pilot.wrong"),
    *("noise.estimated.blocks[].rows", "noise.shared[].covariance"),
)
"""What a claim is proved from, or the same in another order: `verify` has proved the claim from it
again.
"""
WISHES = ("error.delta",)
"""What would be acceptable: nobody can be wrong about it, and the regime follows it."""
ROUNDED = ("choice.policies[].p", "delivered_share")
"""Figures for readers, compared up to rounding."""
LISTS = ("choice.policies", "policies", "ladder", "digest")
"""In another order, or with a default written out, they say the same; a digest is renewed."""


def named(place: Place) -> str:
    """A place as `verify` names it: margin.lower, budgets[].k."""
    words = ""
    for key in place:
        words += "[]" if isinstance(key, int) else f".{key}"
    return words.removeprefix(".")


def under(name: str, names: Any) -> bool:
    """Is the place one of these, or inside one?"""
    return any(name == one or name.startswith((f"{one}.", f"{one}[")) for one in names)


def information(document: Document) -> tuple[str, ...]:
    """What `verify` says of this kind of document: information, or taken on trust."""
    kinds = {"rrf-certificate": INFORMATION, "rrf-policy": (*POLICY_INFORMATION, *POLICY_TRUST)}
    return kinds.get(document["format"], AUDIT_INFORMATION)


def harmless(document: Document, place: Place, new: Any, content: bytes) -> bool:
    """May `verify` accept that change?"""
    old = at(document, place)
    name, number = named(place), isinstance(old, int | float) and isinstance(new, int | float)
    if under(name, information(document)) or name in LISTS or under(name, (*EVIDENCE, *WISHES)):
        return True
    if name in FEWER and (new is None or new == [] or not old):
        return True
    if name.startswith("operator."):
        return operator_follows(json.loads(content))
    if isinstance(old, str) and isinstance(new, int) and not isinstance(new, bool):
        return old == str(new)
    if not number:
        return False
    if name in ROUNDED:
        return bool(abs(Fraction(new) - Fraction(old)) <= max(abs(Fraction(old)), Fraction(1)) / 10**5)
    if name in ("margin.lower", "conditional.lower"):  # what is told may lie below what is true
        return new <= old or operator_follows(json.loads(content))
    if name == "protection.wrong_checks":  # no more can be wrong than there are
        return bool(min(old, new) >= len(document["protection"]["suspects"]))
    if name == "nullspace.rho" and document["nullspace"]["kernel"] is None:
        return bool(new > 0)  # without a kernel the property holds with every ρ
    if name == "nullspace.tau" and document["nullspace"]["status"] == "refuted":
        return bool(new > 0)  # the witness refutes the property up to there, or `verify` refuses
    return (name in LARGER and new >= old) or (name in SMALLER and new <= old)


def operator_follows(document: Document) -> bool:
    """Whether the margin's bounds hold for the operator that stands in the document, over every
    support, in exact rationals.
    """
    claim, margin = document["operator"], document["margin"]
    shape = (claim["rows"], claim["columns"])
    matrix = sparse.csr_array((claim["data"], claim["indices"], claim["indptr"]), shape=shape).toarray()
    starts = np.cumsum([0, *claim["node_sizes"]])
    premise = document["protection"]
    units = [[name] for name in claim["node_ids"]] if premise is None else premise["units"]
    wanted = set(claim["node_ids"] if premise is None else premise["deliver"])
    owner = np.repeat(claim["block_ids"], claim["block_sizes"])
    aside = () if premise is None else premise["suspects"]
    most = 0 if premise is None else min(2 * premise["wrong_checks"], len(aside))
    place = {name: at for at, name in enumerate(claim["node_ids"])}
    size = min(2 * document["k"], len(units))
    low, high = True, False
    listed = (document["conditional"] or {"supports": []})["supports"]

    def told(nodes: list[int]) -> bool:
        return any({place[name] for name in names} == set(nodes) for names in listed)

    for gone in combinations(aside, most):
        gram = ExactGram(matrix[~np.isin(owner, gone)])
        for chosen in combinations(units, size):
            nodes = [place[name] for unit in chosen for name in unit]
            columns = [at for node in nodes for at in range(int(starts[node]), int(starts[node + 1]))]
            inside = [
                claim["node_ids"][node] in wanted
                for node in nodes
                for _ in range(int(starts[node]), int(starts[node + 1]))
            ]
            if not any(inside):
                continue
            low = low and (not told(nodes) or gram.above(columns, document["conditional"]["lower"]))
            low = low and (margin["lower"] == 0.0 or gram.above(columns, margin["lower"], wanted=inside))
            high = high or not gram.above(columns, margin["upper"], wanted=inside, strictly=True)
    return low and high


def leaf_case(documents: Mapping[str, Document], folder: Path, seed: int) -> dict[str, Any]:
    """Change one leaf of one document, drawn by the seed, and have it verified as `rrf-design
    verify` does; `false` where a hole shows.
    """
    rng = np.random.default_rng(seed)
    name = sorted(documents)[seed % len(documents)]
    every = list(places(documents[name]))
    place = every[int(rng.integers(len(every)))]
    choices = changes(at(documents[name], place))
    return judged(name, documents[name], place, choices[int(rng.integers(len(choices)))], folder)


def judged(name: str, document: Document, place: Place, new: Any, folder: Path) -> dict[str, Any]:
    """One change, verified: refused, accepted and harmless, or `false`."""

    content = changed(document, place, new)
    row: dict[str, Any] = {"trick": name, "place": named(place), **met(content, folder)}
    row["false"] = row["accepted"] and not harmless(document, place, new, content)
    return row
