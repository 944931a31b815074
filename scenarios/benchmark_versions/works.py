"""The same pieces of work for any version of the package, told to run over standard input.

Run as a program with PYTHONPATH on a checkout: it uses only names that version 0.1.0 had already,
says which version it is, and then does one round of the work it was started for whenever it is sent
a line. Each round answers with a line of JSON: seconds of its own processor time, and what was
found, so that two versions can be held against each other while they take turns.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = Callable[[], Callable[[], Any]]
"""Makes its instance once; what it returns is one round, and that returns what was found."""


def dense(nodes: int, *, rows: int, seed: int = 0) -> Any:
    """Unit Gaussian columns."""
    import numpy as np

    matrix = np.random.default_rng(seed).normal(size=(rows, nodes))
    return matrix / np.linalg.norm(matrix, axis=0)


def graph(nodes: int, *, dim: int = 1, seed: int = 0) -> Any:
    """A random graph of degree 6 with a twentieth of its nodes anchored."""
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(seed)
    tails = rng.integers(0, nodes, 3 * nodes)
    heads = (tails + 1 + rng.integers(0, nodes - 1, 3 * nodes)) % nodes
    rows = np.tile(np.arange(3 * nodes), 2)
    signs = np.repeat([-1.0, 1.0], 3 * nodes)
    relations = sparse.csr_array((signs, (rows, np.concatenate([tails, heads]))), shape=(3 * nodes, nodes))
    anchored = sparse.eye_array(nodes, format="csr")[rng.choice(nodes, max(1, nodes // 20), replace=False)]
    return sparse.kron(sparse.vstack([relations, anchored]), sparse.eye_array(dim), format="csr")


def margin_of(matrix: Callable[[], Any], k: int, *, dim: int = 1) -> Work:
    def prepare() -> Callable[[], Any]:
        from solvers import margin

        field = matrix()
        groups = None if dim == 1 else [dim] * (field.shape[1] // dim)
        return lambda: f"{margin(field, groups, k=k, n_jobs=1).value:.9f}"

    return prepare


def market(nodes: int, k: int) -> Any:
    """A random tree with a third of its edges on sale, chords at 1 to 3 and anchors at 2 to 5."""
    import numpy as np

    import rrf_design as rrf

    rng = np.random.default_rng(nodes + k)
    relations: list[dict[str, Any]] = []
    for i in range(1, nodes):
        price = {"cost": float(rng.integers(1, 4))} if rng.random() < 1 / 3 else {}
        relations.append({"id": f"t{i}", "tail": f"n{int(rng.integers(i))}", "head": f"n{i}", **price})
    for j in range(nodes):
        a, b = sorted(int(i) for i in rng.choice(nodes, 2, replace=False))
        relations.append({"id": f"c{j}", "tail": f"n{a}", "head": f"n{b}", "cost": float(rng.integers(1, 4))})
    anchors = [{"id": f"a{i}", "node": f"n{i}", "cost": float(rng.integers(2, 6))} for i in range(nodes)]
    return rrf.Problem(k=k, nodes=[{"id": f"n{i}"} for i in range(nodes)], relations=relations, anchors=anchors)


def plan_of(nodes: int, k: int, budget: float, method: str) -> Work:
    def prepare() -> Callable[[], Any]:
        import rrf_design as rrf

        problem = market(nodes, k)

        def work() -> str:
            found = rrf.plan(problem, budget=budget, method=method)
            return f"{found.gamma:.6f} {found.status}"

        return work

    return prepare


def certificate_of(nodes: int, k: int, *, check: bool) -> Work:
    def prepare() -> Callable[[], Any]:
        import rrf_design as rrf

        problem = market(nodes, k)
        names = [entry.id for entry in (*problem.relations, *problem.anchors) if entry.cost is not None]
        certificate = rrf.certify(problem, names)
        if check:
            return lambda: rrf.verify(certificate).valid
        return lambda: f"{rrf.certify(problem, names).gamma_lower:.6f}"

    return prepare


def decoding(nodes: int) -> Work:
    def prepare() -> Callable[[], Any]:
        import numpy as np

        from solvers.decoding import SupportDecoder

        field = dense(nodes, rows=2 * nodes // 3)
        error = np.zeros(nodes)
        error[[1, nodes // 2]] = 1.5
        syndrome = field @ error
        return lambda: list(SupportDecoder(field, None).decode(syndrome, k=2, epsilon=1e-6).support)

    return prepare


def repairs(fields: int) -> Work:
    def prepare() -> Callable[[], Any]:
        from importlib import import_module
        from importlib.util import find_spec

        import rrf_design as rrf

        room = "rrf_design.repairing" if find_spec("rrf_design.repairing") else "rrf_design.repair"  # its name in 0.1.0
        repair_many = import_module(room).repair_many
        edges = [(a, b) for a in range(4) for b in range(a + 1, 4)]
        problem = rrf.Problem(
            k=1,
            nodes=[{"id": f"n{i}"} for i in range(4)],
            relations=[{"id": f"r{a}{b}", "tail": f"n{a}", "head": f"n{b}"} for a, b in edges],
        )
        answers = [{f"n{j}": float(i % 97) + 5.0 * (j == i % 4) for j in range(4)} for i in range(fields)]
        return lambda: int(repair_many(problem, answers).guaranteed)

    return prepare


def purchases(fields: int, **settings: Any) -> Work:
    """A data set bought from end to end with a model that answers at once."""

    def prepare() -> Callable[[], Any]:
        import rrf_design as rrf
        from rrf_design.acquisition import acquire
        from rrf_design.models.scripted import ScriptedModel

        def ring(name: str, nodes: int = 6) -> Any:
            relations: list[dict[str, Any]] = [
                {"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % nodes}"} | ({"cost": 1.0} if i % 2 else {})
                for i in range(nodes)
            ]
            anchors = [{"id": f"a{i}", "node": f"n{i}", "value": 7.0, "cost": 1.0 + 0.1 * i} for i in range(nodes)]
            asked = [{"id": f"n{i}", "prompt": f"{name}: question {i}?"} for i in range(nodes)]
            return rrf.Problem(name=name, k=1, nodes=asked, relations=relations, anchors=anchors)

        def work() -> int:
            items = {f"field {i}": ring(f"field {i}") for i in range(fields)}
            model = ScriptedModel(lambda request: "12" if "question 2" in request.prompt else "7")
            with tempfile.TemporaryDirectory() as folder:
                found = acquire(items, model, budget=5.0 * fields, store=Path(folder) / "runs.sqlite", **settings)
            return sum(entry.repair is not None and entry.repair["support"] == ["n2"] for entry in found.items)

        return work

    return prepare


FULL: dict[str, Work] = {
    "margin, dense 128, k = 2": margin_of(lambda: dense(128, rows=85), 2),
    "margin, dense 64, k = 3": margin_of(lambda: dense(64, rows=42), 3),
    "margin, dense 30 × 40, k = 5": margin_of(lambda: dense(40, rows=30), 5),
    "margin, 48 nodes of dimension 4, k = 2": margin_of(lambda: graph(48, dim=4), 2, dim=4),
    "margin, graph of 20,000, k = 2": margin_of(lambda: graph(20_000), 2),
    "plan, 24 nodes, k = 1, optimal": plan_of(24, 1, 14.0, "optimal"),
    "plan, 24 nodes, k = 2, optimal": plan_of(24, 2, 14.0, "optimal"),
    "plan, 60 nodes, k = 1, greedy": plan_of(60, 1, 40.0, "greedy"),
    "certify, 60 nodes, k = 2": certificate_of(60, 2, check=False),
    "verify, 60 nodes, k = 2": certificate_of(60, 2, check=True),
    "repair, dense 200, k = 2": decoding(200),
    "repair, 10,000 fields of one design": repairs(10_000),
    "acquire, 60 fields, by witness": purchases(60, method="witness"),
    "acquire, 60 fields, planned": purchases(60, method="auto"),
}
QUICK: dict[str, Work] = {
    "margin, dense 16, k = 2": margin_of(lambda: dense(16, rows=12), 2),
    "repair, 20 fields of one design": repairs(20),
}


def serve(name: str, lines: Any, out: Any) -> None:
    """First the version, then a line for every round that is asked for."""
    import rrf_design as rrf

    once = {**FULL, **QUICK}[name]()
    print(json.dumps({"version": rrf.__version__}), file=out, flush=True)
    for _ in lines:
        begun = time.process_time()
        found = once()
        print(json.dumps({"seconds": time.process_time() - begun, "found": found}), file=out, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], sys.stdin, sys.stdout)
