"""Statements of the paper about operators, tried on operators: what an operator error multiplies,
the worst pair of a chain, the witness at zero.

Operator error. Repair reads s = B̃y − c with the declared B̃ = B + E. As y = z* + e* and Bz* = c, s
= B̃e* + Ez*: the error E acts on the true field. The paper takes Ee* instead and promises 2(ε +
‖E‖‖e*‖)/γ. Here every field has relations that are wrong by a small factor and one wrong answer;
the paper's promise is given the true ‖E‖ and ‖e*‖, ours comes from `certify` with radii and a bound
on the field.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design import Noise, certify, repair
from rrf_design.problem import Problem
from scenarios.kit.designs import DESIGNS, prepared
from scenarios.kit.typed_fields import complete, generator, random_tree
from solvers import margin
from solvers.decoding import SupportDecoder

Array = NDArray[np.float64]
NODES = 6
ANCHORED = (0, 3)
FAULT = 0.02
EPSILON = 1e-3
CHAIN = np.array([[-1.0, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1], [1, 0, 0, 0]])
PRINTED_PAIR = np.array([[0.0, 0], [-1, 1], [0, -1], [0, 0]])
"""Paper, "A four-node worked spectrum": the chain anchored at its first node, and the matrix called
its worst pair.
"""


def _declared(factors: Array, edges: list[tuple[int, int]], truth: Array, radii: Array) -> Problem:
    relations = [
        {
            "id": f"r{number}",
            "tail": str(tail),
            "head": str(head),
            "transport": {"scale": float(factors[number])},
            "uncertainty": float(radii[number]),
        }
        for number, (tail, head) in enumerate(edges)
    ]
    anchors = [{"id": f"a{node}", "node": str(node), "value": [float(truth[node])]} for node in ANCHORED]
    nodes = [{"id": str(node), "dim": 1} for node in range(NODES)]
    return Problem(name="operator error", k=1, nodes=nodes, relations=relations, anchors=anchors)


def operator_error(size: float, seed: int, *, master: int) -> dict[str, Any]:
    """One field whose norm is `size` times that of its error: both promises, and the error that
    repair leaves.

    The estimate is the least-residual one of one node, which is feasible for any radius that the
    truth is feasible for.
    """
    rng = generator(master, "operator error", "field", seed)
    units = np.exp(rng.normal(scale=0.3, size=NODES))
    tree = random_tree(rng, list(range(NODES)))
    spare = [edge for edge in complete(range(NODES)) if edge not in tree]
    edges = tree + [spare[int(i)] for i in rng.permutation(len(spare))[:NODES]]
    true = np.array([units[head] / units[tail] for tail, head in edges])
    faults = true * FAULT * rng.uniform(-1, 1, size=len(edges))
    error = np.zeros(NODES)
    error[int(rng.integers(NODES))] = rng.choice([-1.0, 1.0])
    truth = units * size / np.linalg.norm(units)
    radii = true * FAULT
    problem = _declared(true + faults, edges, truth, radii)
    operator = problem.operator()
    declared, shift = operator.matrix.toarray(), np.zeros(operator.shape)
    for number, (tail, _) in enumerate(edges):
        shift[number, tail] = -faults[number]
    noise = rng.normal(size=operator.shape[0])
    noise *= EPSILON / np.linalg.norm(noise)
    syndrome = declared @ (truth + error) - operator.target + noise
    issued = certify(problem, noise=Noise(EPSILON, amplitude=size), budgets=())
    found = SupportDecoder(declared, [1] * NODES).decode(syndrome, k=1, epsilon=0.0)
    left = float(np.linalg.norm(np.asarray(found.error) - error))
    norm = float(np.linalg.norm(shift, 2))
    radius = EPSILON + norm * float(np.linalg.norm(error))
    paper, ours = 2 * radius / issued.gamma_lower, issued.error_bound
    return {
        "size": size,
        "seed": seed,
        "gamma": issued.gamma_lower,
        "operator_error": norm,
        "paper_bound": paper,
        "our_bound": ours,
        "error_left": left,
        "paper_radius": radius,
        "residual_of_truth": float(np.linalg.norm(declared @ error - syndrome)),
        "paper_broken": left > paper,
        "our_broken": ours is not None and left > ours,
        "right_node": tuple(found.support) == tuple(np.flatnonzero(error)),
    }


def small_example() -> list[dict[str, Any]]:
    """Four answers of 1000, one of them off by 1, and one relation declared 1 % too steep: what
    repair says at either radius.
    """
    truth, answers = 1000.0, {"0": 1000.0, "1": 1000.0, "2": 1001.0, "3": 1000.0}
    rows = []
    for words, radius, epsilon in (
        ("the paper's: ‖E‖‖e*‖ = 0.01", 0.0, 0.01),
        ("ours: uncertainty 0.01, answers up to 1100", 0.01, 0.0),
    ):
        relations = [
            {
                "id": f"r{tail}{head}",
                "tail": str(tail),
                "head": str(head),
                "transport": {"scale": 1.01 if (tail, head) == (0, 1) else 1.0},
                "uncertainty": radius if (tail, head) == (0, 1) else 0.0,
            }
            for tail, head in combinations(range(4), 2)
        ]
        nodes = [{"id": name, "dim": 1, "range": (0.0, 1100.0)} for name in answers]
        anchors = [{"id": "a3", "node": "3", "value": [truth]}]
        problem = Problem(name="small example", k=1, nodes=nodes, relations=relations, anchors=anchors)
        found = repair(problem, answers, noise=Noise(epsilon))
        given = [value for value in found.repaired.values() if value is not None]
        away = float(np.linalg.norm(np.ravel(given) - truth)) if len(given) == len(answers) else None
        rows.append(
            {"radius": words, "verdict": str(found.verdict), "bound": found.error_bound, "distance_to_truth": away}
        )
    return rows


def worst_pair() -> dict[str, Any]:
    """Which columns of the chain the printed matrix has, and the pair that the margin names."""
    columns = [[j for j in range(CHAIN.shape[1]) if np.array_equal(CHAIN[:, j], part)] for part in PRINTED_PAIR.T]
    found = margin(CHAIN, k=1)
    pairs = {pair: float(np.linalg.svd(CHAIN[:, pair], compute_uv=False)[-1]) for pair in combinations(range(4), 2)}
    return {
        "columns": columns,
        "printed_sigma": float(np.linalg.svd(PRINTED_PAIR, compute_uv=False)[-1]),
        "gamma": float(found.value),
        "support": list(found.support),
        "least_pair": list(min(pairs.items(), key=lambda entry: entry[1])[0]),
        "least_sigma": min(pairs.values()),
    }


def witnesses(B: Array, *, k: int = 1) -> dict[str, Any]:
    """All smallest sets of nodes on which an operator is blind, and what the score of one witness
    thinks of anchors.

    Anchoring a node is useful when it touches any of the sets; a score from one witness sees those
    of its own set only, and no single anchor raises a margin of zero while another set is left.
    """
    nodes = B.shape[1]
    blind: list[tuple[int, ...]] = []
    for count in range(1, 2 * k + 1):
        for part in combinations(range(nodes), count):
            if not any(set(b) <= set(part) for b in blind) and _least(B[:, part]) < 1e-10:
                blind.append(part)
    touched = {node for part in blind for node in part}
    seen = [len(set(part) & touched) for part in blind]
    raised = sum(_gamma(np.vstack([B, np.eye(nodes)[node]]), k) > 1e-10 for node in touched)
    return {
        "blind_sets": len(blind),
        "anchors_that_help": len(touched),
        "seen_by_one_witness": f"{min(seen)}–{max(seen)}" if min(seen) < max(seen) else str(max(seen)),
        "anchors_that_raise_the_margin": raised,
    }


def _least(part: Array) -> float:
    return 0.0 if part.shape[0] < part.shape[1] else float(np.linalg.svd(part, compute_uv=False)[-1])


def _gamma(B: Array, k: int) -> float:
    return float(margin(B, k=k).value)


def zero_margin_designs() -> list[dict[str, Any]]:
    """The designs of the paper with margin zero: the replay's five, and the six pairs of its anchor
    experiment.
    """
    rows = [
        {"design": design.name, **witnesses(prepared(design.name, 1).matrix)}
        for design in DESIGNS
        if prepared(design.name, 1).gamma == 0.0
    ]
    pairs = np.zeros((6, 12))
    for row in range(6):
        pairs[row, 2 * row : 2 * row + 2] = -1.0, 1.0
    return [*rows, {"design": "six pairs without anchor", **witnesses(pairs)}]
