"""What is on sale and was not bought changes no figure, no sentence and no section about what is
held.

A small field with everything that entries can share (families with and without a correlation,
noise, the confidence of estimates, units, marks on checks that may be wrong, rates, delivered
values) is read twice: as it is, and with one more entry on sale, a check, a relation, or a question
with owned blocks around it, which shares as much with what is held as it can. Every verb that
speaks of what is held has to say the same of both, to the last bit; only digests differ, and what
is said of purchases. In a quarter of the pairs the field falls into two, a value of each is
delivered, and the further entry would join them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.errors import RRFError
from rrf_design.models.scripted import ScriptedModel
from rrf_design.repairing import to_document

Entry = dict[str, Any]
OF_PURCHASES = frozenset({"purchases", "mend", "proven", "next_step", "on_sale", "unspent", "check", "worth"})
"""Keys that are about what could be bought, or still could."""
OF_FILES = frozenset(
    {"digest", "problem", "seconds", "run", "header", "at", "stopped_because", "detail", "unasked", "structure"}
)
"""What names the file or the run, or says why nothing more was bought, and what was not."""


def unbought_case(seed: int) -> dict[str, Any]:
    """One pair: by which entry the second differs, and what is said otherwise of what is held."""
    drawn = DrawnPair(np.random.default_rng([17, seed]))
    told = {"kind": drawn.kind, "apart": drawn.apart, "refused": 0, "different": 0, "differences": []}
    try:
        alone, beside = drawn.problem(), drawn.problem(beside=True)
    except RRFError:  # what is shared can't be told, or the two don't go together
        return told | {"refused": 1}
    differences = [
        f"{verb}: {where}"
        for verb, one, other in zip(VERBS, _said(drawn, alone), _said(drawn, beside), strict=True)
        for where in different(one, other)
    ]
    return told | {"different": int(bool(differences)), "differences": differences}


VERBS = ("margin", "explain", "certify", "verify", "repair", "acquire", "repair of a table")


def _said(drawn: DrawnPair, problem: rrf.Problem) -> Iterator[Any]:
    """What each verb says of what is held, or the one line in which it refuses."""
    held, told = list(drawn.bought), dict(drawn.responses)
    yield _answer(lambda: problem.margin(held).to_json())
    yield _answer(lambda: rrf.explain(problem, held, mend=False, by_budget=True).to_json())
    certificate = _answer(lambda: rrf.certify(problem, held, budgets=[]))
    yield certificate if isinstance(certificate, str) else certificate.document
    yield certificate if isinstance(certificate, str) else rrf.verify(certificate).to_json()
    yield _answer(lambda: to_document(rrf.repair(problem, told, select=held)))
    yield _answer(lambda: _acquired(problem, told)) if drawn.live else None
    yield _answer(lambda: _row(problem, told)) if drawn.live else None


def _acquired(problem: rrf.Problem, responses: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        nobody = ScriptedModel(lambda request: "")
        found = rrf.acquire(problem, nobody, responses=responses, budget=0.0, store=store, cache="off")
        return found.to_json()


def _row(problem: rrf.Problem, responses: dict[str, Any]) -> Any:
    """The row of a table with one item."""
    listed = [{"id": "1", "node": name, "value": value} for name, value in responses.items()]
    told = rrf.repair(rrf.dataset(problem, [{}]), listed)
    return [row.to_json() for row in told.rows()]


def _answer(ask: Any) -> Any:
    try:
        return ask()
    except RRFError as error:
        return str(error)


def different(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two documents differ that speak of the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other} - OF_FILES - OF_PURCHASES)
        return [found for key in keys for found in different(one.get(key), other.get(key), f"{where}.{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for at, (a, b) in pairs for found in different(a, b, f"{where}[{at}]")]
    same = one == other or (one != one and other != other)
    return [] if same else [f"{where.lstrip('.')}: {one!r:.80} / {other!r:.80}"]


class DrawnPair:
    """A field as plain entries, and one entry more that nobody buys."""

    def __init__(self, rng: Any) -> None:
        self.rng = rng
        self.count = int(rng.integers(2, 6))
        shares = {"noise": 0.45, "marks": 0.4, "units": 0.35, "radii": 0.2, "estimates": 0.3, "scatter": 0.15}
        self.has = {name: self.happens(share) for name, share in shares.items()}
        self.apart = bool(rng.spawn(1)[0].random() > 0.75)  # drawn beside the rest, which stays what it was
        self.nodes = [self._node(f"n{i}") for i in range(self.count)]
        self.halves = [self.nodes[::2], self.nodes[1::2]] if self.apart else [self.nodes]
        drawn = range(int(rng.integers(1, 2 * self.count + 2)))
        self.blocks = [self._block(f"b{j}", self.halves[j % len(self.halves)]) for j in drawn]
        for block in self.blocks:
            if self.happens(0.05 if self.apart else 0.25):
                block["cost"] = float(rng.integers(1, 4))
        self.bought = tuple(block["id"] for block in self.blocks if "cost" in block)
        self.head = self._head()
        self.responses: Entry = {node["id"]: float(rng.integers(-3, 4)) for node in self.nodes}
        if self.happens(0.2):
            self.responses["n0"] = None
        self.live = not self.bought and None not in self.responses.values()
        self.noise = self._noise([block for block in self.blocks if "family" not in block])
        self.kind, self.further = self._further()
        self.wider = self._joined()

    def happens(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def problem(self, *, beside: bool = False) -> rrf.Problem:
        more = self.further if beside else []
        nodes = [*self.nodes, *(entry for entry in more if "tail" not in entry and "node" not in entry)]
        blocks = [*self.blocks, *(entry for entry in more if "tail" in entry or "node" in entry)]
        return rrf.Problem(
            **self.head,
            nodes=nodes,
            relations=[block for block in blocks if "tail" in block],
            anchors=[block for block in blocks if "node" in block],
            noise=self.wider if beside else self.noise,
        )

    def _node(self, name: str) -> Entry:
        entry: Entry = {"id": name, "prompt": "How many?"}
        if self.has["units"]:
            own = f"u{int(self.rng.integers(3))}"
            entry |= {"unit": own}
        if self.has["radii"]:
            entry["range"] = [-6.0, 6.0]
        if self.has["scatter"] and self.happens(0.6):
            entry |= {"sigma": 0.1, "repeats": 2}
            entry |= {"estimated_from": int(self.rng.integers(20, 60))} if self.has["estimates"] else {}
        return entry

    def _block(self, name: str, nodes: list[Entry]) -> Entry:
        rng = self.rng
        entry: Entry = {"id": name}
        if len(nodes) > 1 and self.happens(0.5):
            tail, head = rng.choice(len(nodes), 2, replace=False)
            entry |= {"tail": nodes[tail]["id"], "head": nodes[head]["id"]}
            entry |= {"transport": {"scale": float(rng.choice([1.0, 2.0, -1.0]))}}
        else:
            entry |= {"node": nodes[int(rng.integers(len(nodes)))]["id"], "value": float(rng.integers(-2, 3))}
        if self.happens(0.5):
            family = int(rng.integers(3))
            entry |= {"family": f"f{family}", "weight": (1.0, 2.0, 0.5)[family]}
            entry |= {} if family == 0 else {"correlation": (1.0, 0.4)[family - 1]}
        mark = rng.random() if self.has["marks"] else 1.0
        entry |= {"trusted": False} if mark < 0.25 else {"rate": 0.1} if mark < 0.4 else {}
        if self.has["noise"] and self.happens(0.7):
            entry["sigma"] = float(rng.choice([0.5, 1.0, 2.0]))
            if self.has["estimates"] and self.happens(0.6):
                entry["estimated_from"] = int(rng.integers(20, 60))
        elif self.has["radii"] and self.happens(0.4):
            entry["uncertainty"] = float(rng.choice([0.01, 0.1]))
        elif 0.4 <= mark < 0.6:
            entry["trusted"] = True
        return entry

    def _head(self) -> Entry:
        rng = self.rng
        head: Entry = {"k": int(rng.integers(1, 3))}
        if self.happens(0.4):
            head["epsilon"] = 0.1
        if self.has["marks"] and self.happens(0.7):
            head["wrong_checks"] = 1
        if self.apart or self.happens(0.3):
            first = len(self.halves)
            head["deliver"] = [f"n{i}" for i in range(self.count) if i < first or self.happens(0.4)]
        if self.happens(0.4):
            head["delta"] = float(rng.choice([0.5, 2.0, 10.0]))
        if self.happens(0.3):
            head["target"] = float(rng.choice([0.2, 0.6]))
        return head

    def _noise(self, blocks: list[Entry], least: int = 2) -> list[Entry]:
        """Noise that some of these share: by a correlation, or by a covariance."""
        noisy = [block for block in blocks if "sigma" in block]
        if len(noisy) < least or not self.happens(0.6):
            return []
        chosen = noisy[:3]
        entry: Entry = {"id": "shared", "blocks": [block["id"] for block in chosen]}
        equal = len({block.get("estimated_from") for block in chosen}) == 1
        if self.happens(0.5) or not equal:
            return [{**entry, "correlation": 0.5}]
        joint = {"covariance": self._covariance(chosen)}
        repeats = chosen[0].get("estimated_from")
        return [{**entry, **joint} | ({} if repeats is None else {"estimated_from": repeats})]

    @staticmethod
    def _covariance(blocks: list[Entry]) -> list[list[float]]:
        sizes = np.array([block["sigma"] for block in blocks])
        joint: list[list[float]] = ((0.7 * np.eye(len(sizes)) + 0.3) * np.outer(sizes, sizes)).tolist()
        return joint

    def _further(self) -> tuple[str, list[Entry]]:
        """The entry that nobody buys; with a question, what is owned around it."""
        if self.happens(0.3 if self.apart else 0.6):
            block = {**self._block("further", self.nodes), "cost": 5.0}
            return "relation" if "tail" in block else "check", [block]
        node = {**self._node("question"), "cost": 5.0}
        ends = [half[0] for half in self.halves]
        drawn = range(int(self.rng.integers(len(ends) - 1, 2 * len(ends) + 1)))
        around = [self._block(f"around{j}", [node, ends[j % len(ends)]]) for j in drawn]
        return "question", [node, *(block for block in around if "question" in block.values())]

    def _joined(self) -> list[Entry]:
        """Noise with the further blocks in it, where they can be."""
        more = [entry for entry in self.further if "sigma" in entry and ("tail" in entry or "node" in entry)]
        more = [block for block in more if "family" not in block]
        if not more or self.happens(0.3):
            return self.noise
        if not self.noise:
            lone = [block for block in self.blocks if "sigma" in block and "family" not in block][:1]
            return self._noise([*lone, *more])
        entry, blocks = self.noise[0], {block["id"]: block for block in self.blocks}
        members = [*(blocks[name] for name in entry["blocks"]), more[0]]
        wider = {**entry, "blocks": [block["id"] for block in members]}
        if "covariance" in entry:
            if more[0].get("estimated_from") != entry.get("estimated_from"):
                return self.noise
            wider["covariance"] = self._covariance(members)
        return [wider]
