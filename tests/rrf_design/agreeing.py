"""Generated problem files that the tests of agreement share: of the rooms (test_agreement.py) and
of the command line (cli/test_certify.py).
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.files import to_document

SIGNS = {"checked": "✓ ", "consistent": "", "ambiguous": "? ", "incomplete": "? ", "contradicted": "✗ "}


def generated(seed: int) -> rrf.Problem:
    """A small field with a random mix of noise, uncertainty, ranges, goals, tiers, queries on sale,
    and what is assumed.
    """
    rng = np.random.default_rng(seed)
    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "range": [0.0, 2.0]} for i in range(int(rng.integers(2, 5)))]
    if rng.random() < 0.3:
        nodes[-1]["cost"] = round(float(rng.uniform(0, 2)), 2)
    if rng.random() < 0.2:
        del nodes[0]["range"]
    relations: list[dict[str, Any]] = [
        {"id": f"r{i}", "tail": f"n{i}", "head": f"n{i + 1}", "transport": {"scale": float(rng.choice([1.0, 2.0]))}}
        for i in range(len(nodes) - 1)
    ]
    if seed % 3 == 0 and len(nodes) > 2:
        first, second = (relation["transport"]["scale"] for relation in relations[:2])
        offset = first * second - first - 1.0  # of the field that begins with 1
        relations.append({"id": "sum", "sum": ["n0", "n1"], "head": "n2", "offset": offset})
    anchors: list[dict[str, Any]] = [
        {"id": f"a{i}", "node": f"n{i}", "value": float(2**i), "cost": round(1.1 + 0.3 * i, 1)}
        for i in range(len(nodes))
    ]
    for block in (*relations, *anchors):
        if rng.random() < 0.25:
            block["sigma"] = round(float(rng.uniform(0.05, 0.5)), 2)
        if rng.random() < 0.2:
            block["uncertainty"] = 0.02
    settings: dict[str, Any] = {}
    if rng.random() < 0.4:
        settings["epsilon"] = 0.05
    elif rng.random() < 0.4:
        settings["sigma"] = 0.03
    if rng.random() < 0.5:
        settings["delta"] = round(float(rng.uniform(0.2, 4.0)), 1)
    if rng.random() < 0.4:
        settings["target"] = round(float(rng.uniform(0.1, 0.9)), 1)
    if rng.random() < 0.3:
        settings["amplitude"] = 3.0
    if seed % 2:
        _with_premise(rng, nodes, [*relations, *anchors], settings)
    tiers = (
        [{"id": "t", "blocks": [a["id"] for a in anchors[:2]], "prices": [1.35, 0.55]}] if rng.random() < 0.4 else []
    )
    if seed % 3 == 0:
        _with_shared_noise(rng, relations, anchors, settings)
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors, tiers=tiers, **settings)


def _with_shared_noise(
    rng: np.random.Generator, relations: list[dict[str, Any]], anchors: list[dict[str, Any]], settings: dict[str, Any]
) -> None:
    """Labels of one annotator; relations that are more than copies of one another."""
    noisy = [block["id"] for block in anchors if "sigma" in block]
    if len(noisy) > 1:
        settings["noise"] = [{"id": "annotator", "blocks": noisy, "correlation": round(float(rng.uniform()), 1)}]
    if rng.random() < 0.5:
        rho = round(float(rng.uniform()), 1)
        for relation in relations:
            relation.update(family="wordings", correlation=rho)


def _with_premise(
    rng: np.random.Generator, nodes: list[dict[str, Any]], blocks: list[dict[str, Any]], settings: dict[str, Any]
) -> None:
    """Some of: nodes that fail together, values that are delivered, checks that may be wrong."""
    if rng.random() < 0.5:
        for node in nodes:
            node["unit"] = f"u{rng.integers(2)}"
    if rng.random() < 0.6:
        settings["deliver"] = [f"n{rng.integers(len(nodes))}"]
    if rng.random() < 0.5:
        settings["wrong_checks"] = 1
        for block in blocks:
            if rng.random() < 0.5 and not {"sigma", "uncertainty"} & set(block):
                block["trusted"] = True


def true_field(problem: rrf.Problem) -> dict[str, float]:
    truth = {f"n{i}": 1.0 for i in range(len(problem.nodes))}
    for relation in (relation for relation in problem.relations if relation.pair):
        truth[relation.head] = truth[relation.tail] * (relation.transport.scale or 1.0)
    return truth


def live(problem: rrf.Problem) -> rrf.Problem:
    """The same with prompts to ask, and checks that say the truth."""
    document = to_document(problem)
    truth = true_field(problem)
    for node in document["nodes"]:
        node["prompt"] = node["id"]
    for anchor in document["anchors"]:
        anchor["value"] = truth[anchor["node"]]
    return rrf.Problem(**document.pop("problem"), **document)


def page_words(path: Path) -> str:
    text = re.sub(r"<(script|style).*?</\1>", " ", path.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def _node(name: str, more: str = "") -> str:
    return f'[[nodes]]\nid = "{name}"\nprompt = "{{{{ text }}}} ({name})"\nparser = "decimal"\nprice = 2.0\n{more}\n'


PRICED = f"""[data]
table = "table.jsonl"
id = "no"
gold = "booked"

[problem]
k = 1
deliver = ["total"]

{_node("total", "cost = 3.0")}{_node("reworded")}{_node("cents")}
[[relations]]
id = "again"
tail = "total"
head = "reworded"

[[relations]]
id = "same"
tail = "total"
head = "cents"

[[anchors]]
id = "clerk"
node = "total"
source = {{ person = "Total of {{{{ no }}}}?" }}
cost = 30.0
"""
"""A recipe whose first question costs 3 and has a price of 2; the two others have a price of 2."""

BOUNDED = PRICED.replace("k = 1", "k = 1\namplitude = 60.0").replace(
    'head = "cents"', 'head = "cents"\nuncertainty = 0.01'
)
"""The same with one relation that is not quite right, and a declared bound on the field."""

CHECKED = (
    PRICED
    + """
[[anchors]]
id = "ledger"
node = "total"
value = "{{ ledger }}"
when = "{{ ledger }}"
"""
)
"""The same with a value that decides the items that have one."""

TIERED: dict[str, Any] = {
    "data": {"id": "no"},
    "problem": {"k": 1, "target": 13.0},
    "nodes": [{"id": "a", "prompt": "{{ no }}?", "parser": "decimal"}],
    "anchors": [{"id": name, "node": "a", "value": 7.0, "sigma": 0.1, "cost": 5.0} for name in "xy"],
    "tiers": [{"id": "checks", "blocks": ["x", "y"], "prices": [5.0, 2.0]}],
}
"""Two checks that reach the goal together."""
