"""Repairs whose truth is known, and whose premise holds: what is consistent must be within its
bound, and nothing is contradicted.

A small field with everything a problem file can say (transports, offsets, families, covariances,
metrics, uncertain relations at their radius, noise at its radius, units, delivered values, checks
that are wrong, answers that could not be read) is made true by its offsets, in arithmetic of its
own. At most k units then answer wrongly, by preference along the witness, where an error is hardest
to see. Every consistent value must be within its bound of the truth; a field that keeps to its
premise must not be called contradicted; and where nothing is noisy, every value that an ambiguous
or consistent repair gives must be the truth itself.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.errors import InputError

METHODS = ("auto", "exact", "convex", "discrete")
Entry = dict[str, Any]


def repair_case(seed: int) -> dict[str, Any]:
    """One field, played by the method that its seed names: the verdict, and what is wrong with it
    (nothing, if all is well).
    """
    rng = np.random.default_rng([11, seed])
    game = Game(rng)
    problem, responses = game.played()
    method = METHODS[seed % len(METHODS)]
    try:
        found = rrf.repair(problem, responses, method=method)
    except InputError:  # a method that knows nothing of units or suspects says so
        return {"method": method, "verdict": "refused", "faults": []}
    return {"method": method, "verdict": str(found.verdict), "faults": game.faults(problem, responses, found)}


class Game:
    """A problem as plain entries, the truth, and a player who lies in at most k units and keeps to
    everything else.
    """

    def __init__(self, rng: Any) -> None:
        self.rng = rng
        count = int(rng.integers(2, 7))
        self.k = int(rng.integers(1, 3)) if count > 2 else 1
        dims = [int(d) for d in rng.integers(1, 3, count)] if self.happens(0.4) else [1] * count
        self.nodes: list[Entry] = [{"id": f"n{i}", "dim": dim} for i, dim in enumerate(dims)]
        self.dims = {node["id"]: node["dim"] for node in self.nodes}
        self.truth = {name: rng.integers(-5, 6, dim).astype(float) for name, dim in self.dims.items()}
        if self.happens(0.35):
            for node in self.nodes:
                node["unit"] = f"u{int(rng.integers(count))}"
        if self.happens(0.15):
            for node in self.nodes:
                node["metric"] = float(rng.choice([0.25, 1.0, 9.0]))
        shares = {"family": 0.25, "noise": 0.2, "uncertain": 0.3, "suspects": 0.3}
        self.has = {name: self.happens(share) for name, share in shares.items()}
        self.relations = [self._relation(j) for j in range(int(rng.integers(1, 2 * count + 1)))]
        self.anchors = [self._anchor(j) for j in range(int(rng.integers(0, count + 1)))]
        self.head: Entry = {"k": self.k}
        self.epsilon = float(rng.choice([0.01, 0.1, 0.5])) if self.happens(0.4) else 0.0
        if self.epsilon:
            self.head["epsilon"] = self.epsilon
        if self.happens(0.4):
            chosen = sorted(rng.choice(count, int(rng.integers(1, count + 1)), replace=False).tolist())
            self.head["deliver"] = [f"n{i}" for i in chosen]
        if self.has["suspects"]:
            self.head["wrong_checks"] = int(rng.integers(1, 3))
        if self.happens(0.3):
            self.head["delta"] = float(rng.choice([0.1, 1.0, 10.0]))
        if any(block["uncertainty"] for block in self.blocks) and self.happens(0.6):
            for node in self.nodes:
                node["range"] = [-6.0, 6.0]

    def happens(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    @property
    def blocks(self) -> list[Entry]:
        return [*self.relations, *self.anchors]

    def _relation(self, number: int) -> Entry:
        rng = self.rng
        tail, head = (f"n{i}" for i in rng.choice(len(self.nodes), 2, replace=False))
        wide, high = self.dims[tail], self.dims[head]
        kind = int(rng.integers(5)) if wide == high else int(rng.integers(3, 5))
        transport: Any = "identity"
        if kind == 1:
            transport = {"scale": float(rng.choice([2.0, 3.0, -1.0, 0.5]))}
        elif kind == 2:
            transport = {"permute": rng.permutation(wide).tolist()}
        elif kind == 3:
            transport = {"select": rng.integers(0, wide, high).tolist()}
        elif kind == 4:
            transport = {"matrix": rng.integers(-2, 3, (high, wide)).astype(float).tolist()}
        matrix = np.eye(high, wide)
        if kind == 1:
            matrix = matrix * transport["scale"]
        elif kind in (2, 3):
            matrix = np.eye(wide)[transport["permute" if kind == 2 else "select"]]
        elif kind == 4:
            matrix = np.array(transport["matrix"])
        entry = {"id": f"r{number}", "tail": tail, "head": head, "transport": transport}
        rows = {tail: -matrix, head: np.eye(high)}
        return self._dressed(entry, rows, "offset")

    def _anchor(self, number: int) -> Entry:
        rng = self.rng
        over = [f"n{i}" for i in rng.choice(len(self.nodes), 1 if self.happens(0.75) else 2, replace=False)]
        width = sum(self.dims[name] for name in over)
        matrix = np.eye(width)
        entry: Entry = {"id": f"a{number}", "node": over[0]} if len(over) == 1 else {"id": f"a{number}", "nodes": over}
        if len(over) > 1 or self.happens(0.4):
            matrix = rng.integers(-2, 3, (int(rng.integers(1, width + 1)), width)).astype(float)
            entry["rows"] = matrix.tolist()
        ends = np.cumsum([0, *(self.dims[name] for name in over)])
        rows = {name: matrix[:, a:b] for name, a, b in zip(over, ends, ends[1:], strict=False)}
        return self._dressed(entry, rows, "value")

    def _dressed(self, entry: Entry, rows: dict[str, Any], aim: str) -> Entry:
        """With family, noise, uncertainty and trust; under keys that begin with _ what the player
        needs.
        """
        rng, high = self.rng, next(iter(rows.values())).shape[0]
        entry["uncertainty"] = 0.0
        spread = np.eye(high)
        if self.has["family"] and self.happens(0.5):
            entry["family"] = f"f{int(rng.integers(2))}"
        elif self.happens(0.2):
            entry["weight"] = float(rng.choice([0.25, 4.0]))
        if self.has["noise"] and self.happens(0.5):
            if self.happens(0.5):
                entry["sigma"] = float(rng.choice([0.5, 2.0]))
                spread = spread * entry["sigma"]
            else:
                covariance = np.eye(high) + 0.5
                values, vectors = np.linalg.eigh(covariance)
                entry["covariance"], spread = covariance.tolist(), (vectors * np.sqrt(values)) @ vectors.T
        elif self.has["uncertain"] and self.happens(0.5):
            entry["uncertainty"] = float(rng.choice([0.01, 0.1]))
        elif self.has["suspects"] and self.happens(0.5):
            entry["trusted"] = self.happens(0.4)
        return {**entry, "_rows": rows, "_spread": spread, "_aim": aim}

    def _back(self, block: Entry) -> Any:
        """What turns whitened residuals of a block into bare ones."""
        family = block.get("family")
        members = 1 if family is None else sum(other.get("family") == family for other in self.blocks)
        return block["_spread"] / sqrt(block.get("weight", 1.0) / members)

    def length(self, name: str, vector: Any) -> float:
        """Of an error or an answer, in the metric of its node."""
        metric = self.nodes[int(name[1:])].get("metric", 1.0)
        return sqrt(float(metric * (vector @ vector)))

    def problem(self, aims: dict[str, Any]) -> Any:
        def told(block: Entry) -> Entry:
            own = {key: value for key, value in block.items() if not key.startswith("_")}
            return own | {block["_aim"]: aims[block["id"]].tolist()}

        relations, anchors = [told(block) for block in self.relations], [told(block) for block in self.anchors]
        return rrf.Problem(**self.head, nodes=self.nodes, relations=relations, anchors=anchors)

    def played(self) -> tuple[Any, dict[str, list[float] | None]]:
        """The problem, true within its premise, and the responses, wrong in at most k units."""
        rng = self.rng
        aims = {b["id"]: sum(part @ self.truth[name] for name, part in b["_rows"].items()) for b in self.blocks}
        errors = self._errors(self.problem(aims))
        noise = {b["id"]: rng.standard_normal(len(aims[b["id"]])) * (not b.get("trusted")) for b in self.blocks}
        whole = sqrt(sum(float(part @ part) for part in noise.values())) or 1.0
        for block in self.blocks:
            name, push = block["id"], rng.standard_normal(len(aims[block["id"]]))
            reach = sqrt(sum(self.length(node, self.truth[node]) ** 2 for node in block["_rows"]))
            push *= block["uncertainty"] * reach * (1 - 1e-9) / np.linalg.norm(push)
            aims[name] = aims[name] + self._back(block) @ (push - noise[name] * self.epsilon * (1 - 1e-9) / whole)
        for block in self._wrong_checks():
            aims[block["id"]] = aims[block["id"]] + rng.integers(-5, 6, len(aims[block["id"]]))
        responses: dict[str, Any] = {name: (self.truth[name] + errors[name]).tolist() for name in self.dims}
        if self.happens(0.35):
            for i in rng.choice(len(self.nodes), int(rng.integers(1, max(2, len(self.nodes) // 2 + 1))), replace=False):
                responses[f"n{i}"] = None
            if not any(responses.values()):
                responses["n0"] = (self.truth["n0"] + errors["n0"]).tolist()
        return self.problem(aims), responses

    def _wrong_checks(self) -> list[Entry]:
        marked = [block for block in self.blocks if block.get("trusted") is False]
        suspects = marked or [block for block in self.blocks if not block.get("trusted")]
        most = min(len(suspects), self.head.get("wrong_checks", 0))
        return (
            [suspects[i] for i in self.rng.choice(len(suspects), int(self.rng.integers(0, most + 1)), replace=False)]
            if most
            else []
        )

    def _errors(self, problem: Any) -> dict[str, Any]:
        """On at most k units: along the witness, by one number, or at random."""
        rng, size = self.rng, float(self.rng.choice([1.0, 3.0, 10.0]))
        unit = {node["id"]: str(node.get("unit", node["id"])) for node in self.nodes}
        way = rng.random()
        witness = {name: np.array(x) for name, x in problem.margin().witness.items()} if way < 0.45 else {}
        moved = sorted({unit[name] for name, x in witness.items() if np.abs(x).max() > 1e-9})
        names = moved or sorted(set(unit.values()))
        liars = set(rng.choice(names, min(self.k, len(names)), replace=False).tolist())
        errors = {}
        for name, dim in self.dims.items():
            along = (
                witness.get(name, np.zeros(dim)) if moved else np.ones(dim) if way < 0.7 else rng.integers(-4, 5, dim)
            )
            errors[name] = size * along * (unit[name] in liars)
        return errors

    def faults(self, problem: Any, responses: dict[str, Any], found: Any) -> list[str]:
        """What the repair says that is not so."""
        result = []
        largest = max(
            abs(x) for values in (*responses.values(), *self.truth.values()) if values is not None for x in values
        )
        slack = 1e-7 * max(1.0, largest)
        verdict = str(found.verdict)
        if verdict == "contradicted":
            result.append("contradicted, though the premise holds")
        off = {name: np.array(v) - self.truth[name] for name, v in found.repaired.items() if v is not None}
        if verdict == "consistent":
            wanted = problem.deliver or tuple(self.dims)
            result += [f"{verdict} without a value of {name}" for name in wanted if name not in off]
            near = [name for name in wanted if name in off]
            total = sqrt(sum(self.length(name, off[name]) ** 2 for name in near))
            if total > found.error_bound + slack:
                result.append(f"{verdict} within {found.error_bound}, and off by {total}")
            result += [
                f"{name}: beyond its bound" for name in near if np.linalg.norm(off[name]) > found.bounds[name] + slack
            ]
        exact = not self.epsilon and not any(b["uncertainty"] or "sigma" in b or "covariance" in b for b in self.blocks)
        if exact and verdict in ("consistent", "ambiguous"):
            result += [
                f"{verdict}: {name} is off by {np.abs(x).max()}" for name, x in off.items() if np.abs(x).max() > slack
            ]
        return result
