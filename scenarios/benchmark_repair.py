"""How much faster exact repair is than the loop it replaces: least squares over every support
(paper, "The ideal residual decoder").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design.problem import Problem
from rrf_design.repairing import repair, repair_many
from scenarios.kit import Benchmark, Context, Done, Part, Report, Row, Scenario, side_by_side, single_threaded
from scenarios.kit.rows import pick, values
from solvers.decoding import SupportDecoder

K = 2
NOISE = 1e-3
FAMILIES = ("graph", "typed", "dense", "large graph")
REQUIRED = 500.0


@dataclass(frozen=True)
class DecodingInstance:
    """A field with a known error on two nodes, and noise within epsilon."""

    matrix: Any
    dims: list[int] | None
    """Dimensions of the nodes; None when every column is a node."""
    syndrome: NDArray[np.float64]
    epsilon: float
    wrong: tuple[int, ...]


def sample(family: str, nodes: int, seed: int) -> DecodingInstance:
    """Random graph of degree 6 with 5 % anchors (scalar, or dimension 4), or unit Gaussian columns
    on 2n/3 rows.
    """
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    dim = 4 if family == "typed" else 1
    if family == "dense":
        matrix: Any = rng.normal(size=(2 * nodes // 3, nodes))
        matrix /= np.linalg.norm(matrix, axis=0)
    else:
        tails = rng.integers(0, nodes, 3 * nodes)
        heads = (tails + 1 + rng.integers(0, nodes - 1, 3 * nodes)) % nodes
        rows = np.arange(3 * nodes)
        signs = np.repeat([-1.0, 1.0], 3 * nodes)
        relations = sparse.csr_array(
            (signs, (np.tile(rows, 2), np.concatenate([tails, heads]))), shape=(3 * nodes, nodes)
        )
        anchored = sparse.eye_array(nodes, format="csr")[rng.choice(nodes, max(1, nodes // 20), replace=False)]
        matrix = sparse.kron(sparse.vstack([relations, anchored]), sparse.eye_array(dim), format="csr")
    wrong = tuple(sorted(int(i) for i in rng.choice(nodes, K, replace=False)))
    error = np.zeros(nodes * dim)
    for i in wrong:
        error[i * dim : (i + 1) * dim] = 1.0 + rng.random(dim)
    noise = rng.normal(size=matrix.shape[0])
    noise *= NOISE * np.sqrt(matrix.shape[0]) / np.linalg.norm(noise)
    epsilon = 1.01 * float(np.linalg.norm(noise))
    return DecodingInstance(matrix, None if dim == 1 else [dim] * nodes, matrix @ error + noise, epsilon, wrong)


@dataclass(frozen=True)
class Loop:
    """Least squares on every `stride`-th support of at most k nodes, as the definition says."""

    matrix: NDArray[np.float64]
    groups: list[NDArray[np.int64]]
    syndrome: NDArray[np.float64]
    stride: int

    def __call__(self) -> tuple[int, ...]:
        best = float(np.linalg.norm(self.syndrome))
        found: tuple[int, ...] = ()
        for size in range(1, K + 1):
            for support in islice(combinations(range(len(self.groups)), size), 0, None, self.stride):
                part = self.matrix[:, np.concatenate([self.groups[i] for i in support])]
                error = np.linalg.lstsq(part, self.syndrome, rcond=None)[0]
                residual = float(np.linalg.norm(part @ error - self.syndrome))
                if residual < best:
                    best, found = residual, support
        return found


def parts(context: Context) -> list[Part]:
    fields = [{"family": name, "nodes": context["nodes"], "stride": context["strides"][name]} for name in FAMILIES[:3]]
    large = {"family": "large graph", "nodes": context["large"], "stride": context["strides"]["large graph"]}
    return [*fields, large, {"family": "batch", "nodes": context["fields"], "stride": 1}]


def run(context: Context, part: Part) -> Row:
    return single_threaded(_batch if part["family"] == "batch" else _decode, context, part)


def _decode(context: Context, part: Part) -> dict[str, Any]:
    instance = sample(part["family"], part["nodes"], context["seed"])
    dense = instance.matrix if isinstance(instance.matrix, np.ndarray) else instance.matrix.toarray()
    groups = np.split(np.arange(dense.shape[1]), part["nodes"])
    loop = Loop(dense, groups, instance.syndrome, part["stride"])
    prepared = SupportDecoder(instance.matrix, instance.dims)

    def search(decoder: SupportDecoder | None = None) -> Any:
        decoder = SupportDecoder(instance.matrix, instance.dims) if decoder is None else decoder
        return decoder.decode(instance.syndrome, k=K, epsilon=instance.epsilon)

    found = search()
    total = sum(comb(part["nodes"], size) for size in range(1, K + 1))
    done = sum(-(-comb(part["nodes"], size) // part["stride"]) for size in range(1, K + 1))
    options: dict[str, Any] = {
        "rounds": context["rounds"],
        "baseline_scale": total / done,
        "at_least": context["at_least"],
    }
    cold = side_by_side(search, loop, **options)
    warm = side_by_side(lambda: search(prepared), loop, **options)
    return {
        "family": part["family"],
        "nodes": part["nodes"],
        "dim": dense.shape[1] // part["nodes"],
        "rows": dense.shape[0],
        "supports": total,
        "sampled": done,
        "cold": cold.document(),
        "prepared": warm.document(),
        "found": found.support == instance.wrong,
        "unique": found.unique and found.verified,
        "loop_agrees": loop() == found.support if part["stride"] == 1 else None,
    }


def _batch(context: Context, part: Part) -> Row:
    """Many fields of one design in one call, against one call each."""
    count = part["nodes"]
    edges = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    problem = Problem(
        nodes=[{"id": f"n{i}"} for i in range(4)],
        relations=[{"id": f"r{a}{b}", "tail": f"n{a}", "head": f"n{b}"} for a, b in edges],
    )
    fields = [{f"n{j}": float(i % 97) + 5.0 * (j == i % 4) for j in range(4)} for i in range(count)]
    few = fields[: max(1, count // 20)]
    ratio = side_by_side(
        lambda: repair_many(problem, fields),
        lambda: [repair(problem, field) for field in few],
        rounds=context["rounds"],
        baseline_scale=count / len(few),
    )
    batch = repair_many(problem, fields)
    return {"family": "batch", "nodes": count, "cold": ratio.document(), "guaranteed": batch.guaranteed}


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = {row["family"]: row for row in values(done)}
    batch, decoded = rows["batch"], [rows[name] for name in FAMILIES]
    figures = [
        *(_figure(name, rows[name]) for name in FAMILIES),
        Benchmark(
            "batch",
            f"repair_many, {batch['nodes']} fields of one design",
            "one repair call for each",
            batch["cold"]["median"],
            detail=f"{batch['cold']['work_seconds']:.3g} s for all",
        ),
    ]
    right = sum(row["found"] and row["unique"] for row in decoded)
    compared = [row["loop_agrees"] for row in decoded if row["loop_agrees"] is not None]
    times = {"loop_seconds": "baseline_seconds", "search_seconds": "work_seconds", "ratio": "median"}
    times |= {"ratio_lowest": "lowest", "ratio_highest": "highest"}
    table = [
        {
            **pick(row, "family nodes dim rows supports"),
            "loop_sampled": row["sampled"],
            **{name: row["cold"][key] for name, key in times.items()},
            "ratio_prepared": row["prepared"]["median"],
        }
        for row in decoded
    ]
    page = context.page()
    page.benchmark(figures, judged=FAMILIES[:3])
    page.check(
        "right",
        right == len(decoded) and all(compared),
        f"{right} of {len(decoded)} errors found and proved unique; the loop agrees on {sum(compared)} of"
        f" {len(compared)}",
    )
    page.answer = _answer(decoded, right)
    page.table("fields", table)
    return page


def _answer(rows: Sequence[dict[str, Any]], right: int) -> str:
    ratios = [float(f"{row['cold']['median']:.3g}") for row in rows]
    sampled = sum(row["sampled"] < row["supports"] for row in rows)
    loop = f" (extrapolated from a sample of supports on {sampled} of {len(rows)} fields)" if sampled else ""
    return (
        f"Exact repair of {K} wrong nodes, proof included, is {min(ratios):,.15g} to {max(ratios):,.15g} times as fast"
        f" as least squares over every support{loop} on fields of {min(row['nodes'] for row in rows):,} to"
        f" {max(row['nodes'] for row in rows):,} nodes, and {right} of {len(rows)} errors were found and proved to be"
        " the only explanation."
    )


def _figure(name: str, row: dict[str, Any]) -> Benchmark:
    loop = (
        "least squares on every support"
        if row["sampled"] == row["supports"]
        else f"the same, {row['sampled']} supports extrapolated"
    )
    return Benchmark(
        key=name,
        work=f"support search with proof, {name}, n = {row['nodes']}, dim {row['dim']}, k = {K}",
        against=loop,
        value=row["cold"]["median"],
        at_least=REQUIRED if name in FAMILIES[:3] else None,
        detail=f"{row['cold']['work_seconds'] * 1e3:.3g} ms against {row['cold']['baseline_seconds']:.3g} s",
    )


SCENARIO = Scenario.declared("benchmark-repair", parts, run, report, serial=True)
