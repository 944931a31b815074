"""One field judged in exact rationals: solved, both bounds held against every support, certified
and verified, and what the proofs cost.

The judge shares nothing with solver or verifier: it eliminates G_SS − level²·I in rationals
(`scenarios.kit.exact_elimination`).
"""

from __future__ import annotations

import cProfile
import math
import pstats
import time
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

import rrf_design as rrf
from rrf_design.builders import from_matrix
from rrf_design.errors import InputError
from scenarios.kit.exact_elimination import ExactGram
from solvers import margin


def exactly_above(columns: Any, level: float, *, strictly: bool) -> bool:
    """Is CᵀC − level²·I positive semidefinite (definite with `strictly`), in exact rationals?"""
    return ExactGram(columns).above(range(columns.shape[1]), level, strictly=strictly)


def judge(matrix: Any, sizes: list[int], k: int, given: Any = None, *, method: str = "auto") -> dict[str, Any]:
    """Solve one field, as it is `given`, and check both bounds against every support, exactly.

    A refusal claims nothing.
    """
    try:
        found = margin(matrix if given is None else given, sizes, k=k, method=method)
    except ValueError as refusal:
        row = dict.fromkeys(("exact", "zero"), False)
        words = "rescale the field" in str(refusal)
        return {**row, "lower_ok": words, "upper_ok": words, "refused": True, "gap": 0.0, "conditioning": 0.0}
    starts = np.cumsum([0, *sizes])

    gram = ExactGram(matrix)

    def columns(support: Sequence[int]) -> list[int]:
        return [column for i in support for column in range(int(starts[i]), int(starts[i + 1]))]

    size = min(2 * k, len(sizes))
    low = found.lower == 0.0 or all(
        gram.above(columns(support), found.lower) for support in combinations(range(len(sizes)), size)
    )
    high = not gram.above(columns(found.support), found.upper, strictly=True)
    largest = float(np.abs(matrix).max(initial=0.0)) or 1.0
    norm = float(np.sqrt(np.square(matrix / largest).sum(axis=0)).max())  # of the largest entry: squares stay in range
    return {
        "lower_ok": low,
        "upper_ok": high,
        "refused": False,
        "exact": str(found.status) == "exact",
        "zero": found.value == 0.0,
        "gap": _gap(found.lower, found.upper),
        "conditioning": found.value / largest / norm if norm else 0.0,
    }


def _gap(lower: float, upper: float) -> float:
    """How far the bounds are apart, relatively; none where doubles can't be closer (among subnormal
    numbers that shows).
    """
    steps = math.nextafter(math.nextafter(lower, math.inf), math.inf)
    return 0.0 if upper <= steps else (upper - lower) / upper


def reverify(matrix: Any, sizes: list[int], k: int) -> bool:
    """Certify the same field and verify the certificate; what can't be certified is refused in one
    line, and claims nothing.
    """
    try:
        certificate = rrf.certify(from_matrix(matrix, sizes, k=k), budgets=[])
    except InputError:
        return True
    return bool(rrf.verify(certificate).valid)


def cost_of_rigour(kind: str, nodes: int) -> dict[str, Any]:
    """Share of a solve that is spent on proofs: what floating point alone would not have needed."""
    rng = np.random.default_rng(nodes)
    if kind == "graph":
        ends = rng.integers(0, nodes, (3 * nodes, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        rows = np.repeat(np.arange(len(ends)), 2)
        relations = sparse.csr_array((np.tile([-1.0, 1.0], len(ends)), (rows, ends.ravel())), shape=(len(ends), nodes))
        matrix = sparse.vstack([relations, 0.3 * sparse.eye_array(nodes)]).tocsr()
    else:
        dense = rng.standard_normal((2 * nodes // 3, nodes))
        matrix = dense / np.linalg.norm(dense, axis=0)
    margin(matrix, k=1)  # compile
    profile = cProfile.Profile()
    began = time.perf_counter()
    profile.enable()
    found = margin(matrix, k=2)
    profile.disable()
    total = time.perf_counter() - began
    proofs, names = 0.0, set()
    for (_, _, name), (_, _, _, cumulative, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if name in ("_proves_all", "norm_ratio_above", "sqrt_below"):
            proofs += cumulative
            names.add(name)
    if not {"_proves_all", "norm_ratio_above"} <= names:
        raise RuntimeError("the solver's proofs have other names now; the cost of rigour can't be measured")
    return {"field": f"{kind} {nodes}", "seconds": total, "proofs": proofs, "cost": proofs / max(total - proofs, 1e-9),
            "status": str(found.status)}  # fmt: skip
