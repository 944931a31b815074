"""Editors and type checkers see what users may call: every keyword stands in its function's
signature, and every call that a page shows is accepted by `mypy --strict`.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rrf_design as rrf

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

CALLS = """
import networkx as nx
import numpy as np
from numpy.typing import NDArray

import rrf_design as rrf
from rrf_design.models import Model
from rrf_design.risk import AuditSequence, bound
from solvers import margin


def of_a_matrix(B: NDArray[np.float64], groups: list[int]) -> tuple[float, ...]:
    m = margin(B, groups, k=2, n_jobs=2, time_limit=5.0, method="auto")
    return m.value, m.lower, m.upper


def of_a_problem(adapter: Model, responses: dict[str, float]) -> None:
    problem: rrf.Problem = rrf.load("problem.toml")
    problem.margin(select=["a3"], k=1, n_jobs=2, time_limit=5.0)
    plan = rrf.plan(problem, budget=3.0)
    rrf.plan(problem, target=0.5, method="greedy", k=2, seed=1, n_jobs=2, time_limit=5.0, front_end="pulp")
    rrf.plan(problem, k=2)
    points = rrf.frontier(problem, k=2, objective="gamma", time_limit=5.0).points
    assert points[0].cost <= points[-1].gamma
    rrf.portfolio([problem, problem], budget=3.0, k=1, n_jobs=2)
    certificate = rrf.certify(problem, plan.selected, k=2, epsilon=0.1, largest_error=1.0, time_limit=5.0)
    certificate.save("certificate.json")
    assert rrf.verify(certificate).valid and rrf.verify("certificate.json").valid
    fixed = rrf.repair(problem, responses, epsilon=0.1)
    rrf.repair(problem, responses, method="convex", sigma=0.1, confidence=0.9, noise=rrf.Noise(amplitude=2.0))
    assert fixed.verdict.value and fixed.support
    run = rrf.acquire(problem, model="embedded", batch=2, budget=3.0, calls=10, seconds=60.0)
    rrf.acquire(problem, model=adapter, mode="adaptive", prices="prices.toml", seed=1)
    assert run.spent >= 0


def of_a_table() -> None:
    dataset: rrf.Dataset = rrf.dataset("recipe.toml", "table.csv")
    print(len(dataset), dataset["007"].k)
    rrf.plan(dataset, budget=10.0, k=1, n_jobs=2).to_json()
    rrf.certify(dataset, time_limit=5.0).worst.result.gamma_lower
    rrf.repair(dataset, "answers.jsonl", epsilon=0.1, reviews="review.csv").to_json()
    rrf.acquire(dataset, budget=10.0, batch=2)
    rrf.estimate(dataset, "embedded", prices="prices.toml").to_json()


def of_counts() -> int:
    sequence = AuditSequence(100, 0.95)
    sequence.observe(False)
    return bound(100, 10, 0, 0.95) + sequence.bound


def built() -> None:
    rrf.from_graph(nx.path_graph(3), k=1, budget=2.0)
    rrf.save(rrf.from_matrix(np.eye(3), [1, 2], k=1), "problem.toml")
"""
"""INTERFACE.md's calls and the short forms: every keyword has a name and a type."""


def public_functions() -> Iterator[tuple[str, Any]]:
    for name in rrf.__all__:
        if inspect.isfunction(thing := getattr(rrf, name)):
            yield name, thing


def test_every_keyword_stands_in_the_signature() -> None:
    """No decorator hides them, and no `**options` but typed ones."""
    for name, function in public_functions():
        assert not hasattr(function, "__wrapped__"), name
        stars = [p for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD]
        assert all("Unpack" in str(p.annotation) for p in stars), name


def test_mypy_accepts_every_documented_call(tmp_path: Path) -> None:
    """INTERFACE's calls and the programs of all pages; a page may leave its own functions
    unannotated, use a name twice, and know that a result is not None.
    """
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")
    for page in PAGES:
        if programs := PROGRAM.findall(page.read_text(encoding="utf-8")):
            head = "# mypy: allow-redefinition, allow-untyped-defs, allow-untyped-calls, no-strict-optional"
            (tmp_path / f"page_{page.stem.replace('-', '_').lower()}.py").write_text("\n\n".join([head, *programs]))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", "--no-pretty"]
    ran = subprocess.run(
        [*command, *map(str, sorted(tmp_path.glob("*.py")))], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ran.returncode in (0, 1), ran.stderr
    refused = [line for line in ran.stdout.splitlines() if ": error: " in line]
    assert refused == []
