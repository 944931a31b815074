"""B against its definition, written a second time: every transport, weight, whitening and metric;
designs are slices.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import linalg

from rrf_design import InputError, Problem


def random_spd(rng: np.random.Generator, dim: int) -> list[list[float]]:
    root = rng.normal(size=(dim, dim + 1))
    matrix = root @ root.T + 0.1 * np.eye(dim)
    return ((matrix + matrix.T) / 2).tolist()


def random_noise(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    return [
        {},
        {"sigma": float(rng.uniform(0.5, 2))},
        {"covariance": random_spd(rng, rows)},
        {"metric": float(rng.uniform(0.5, 2))},
        {"metric": random_spd(rng, rows)},
    ][rng.integers(5)]


def random_document(rng: np.random.Generator, nodes: int = 5, blocks: int = 8) -> dict[str, Any]:
    dims = rng.integers(1, 4, size=nodes)
    metrics = [[None, float(rng.uniform(0.5, 2)), random_spd(rng, d)][rng.integers(3)] for d in dims]
    relations = []
    for j in range(blocks):
        t, h = (int(x) for x in rng.integers(0, nodes, size=2))
        kinds: list[Any] = [{"matrix": rng.normal(size=(dims[h], dims[t])).tolist()}]
        kinds.append({"select": rng.integers(0, dims[t], size=dims[h]).tolist()})
        if dims[t] == dims[h]:
            kinds += ["identity", {"scale": float(rng.normal())}, {"permute": rng.permutation(dims[t]).tolist()}]
        relations.append(
            {
                "id": f"r{j}",
                "tail": f"n{t}",
                "head": f"n{h}",
                "transport": kinds[rng.integers(len(kinds))],
                "offset": rng.normal(size=dims[h]).tolist(),
                "weight": 2.0,
                "family": f"f{rng.integers(4)}",
                "uncertainty": float(rng.uniform(0, 0.1)),
                **random_noise(rng, int(dims[h])),
            }
        )
    anchors = []
    for j in range(3):
        node, other = (int(x) for x in rng.choice(nodes, size=2, replace=False))
        height, width = int(rng.integers(1, 4)), int(dims[node] + dims[other])
        value = rng.normal(size=height).tolist()
        anchors.append(
            {
                "id": f"a{j}",
                "nodes": [f"n{node}", f"n{other}"],
                "rows": rng.normal(size=(height, width)).tolist(),
                "value": value,
                "weight": 0.5,
                **random_noise(rng, height),
            }
        )
    entries = [
        {"id": f"n{i}", "dim": int(d), **({} if m is None else {"metric": m})}
        for i, (d, m) in enumerate(zip(dims, metrics, strict=True))
    ]
    return {"nodes": entries, "relations": relations, "anchors": anchors, "shrinkage": 0.2, "variance_floor": 0.3}


def by_definition(document: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(W_Y^(1/2) B, its target, W_H) with dense matrices, straight from the paper."""
    dims = {n["id"]: n["dim"] for n in document["nodes"]}
    starts = dict(zip(dims, np.cumsum([0, *dims.values()]), strict=False))
    where = {name: slice(starts[name], starts[name] + dims[name]) for name in dims}
    width = sum(dims.values())
    members: dict[str, int] = {}
    for block in (*document["relations"], *document["anchors"]):
        members[block.get("family", block["id"])] = members.get(block.get("family", block["id"]), 0) + 1
    rows, targets = [], []
    for block in (*document["relations"], *document["anchors"]):
        if "tail" in block:
            part = np.zeros((dims[block["head"]], width))
            part[:, where[block["head"]]] += np.eye(dims[block["head"]])
            part[:, where[block["tail"]]] -= dense_transport(block["transport"], dims[block["tail"]])
            target = np.array(block["offset"])
        else:
            part = np.zeros((len(block["rows"]), width))
            columns = np.concatenate([np.arange(width)[where[name]] for name in block["nodes"]])
            part[:, columns] = block["rows"]
            target = np.array(block["value"])
        scale = np.sqrt(block["weight"] / members[block.get("family", block["id"])])
        w = row_root(block, len(part), document["shrinkage"], document["variance_floor"])
        rows.append(scale * w @ part)
        targets.append(scale * w @ target)
    metrics = [np.asarray(n.get("metric", 1.0)) for n in document["nodes"]]
    fibers = [m if m.ndim else m * np.eye(n["dim"]) for m, n in zip(metrics, document["nodes"], strict=True)]
    return np.vstack(rows), np.concatenate(targets), linalg.block_diag(*fibers)


def dense_transport(transport: Any, tail_dim: int) -> np.ndarray:
    if transport == "identity":
        return np.eye(tail_dim)
    if "scale" in transport:
        return transport["scale"] * np.eye(tail_dim)
    if "matrix" in transport:
        return np.array(transport["matrix"])
    return np.eye(tail_dim)[transport.get("permute", transport.get("select"))]


def row_root(block: dict[str, Any], rows: int, tau: float, floor: float) -> np.ndarray:
    """Some root of the metric on the rows; which one changes no length."""
    if "sigma" in block:
        return np.eye(rows) / max(block["sigma"], np.sqrt(floor))
    if "metric" in block:
        metric = np.asarray(block["metric"])
        return np.real(linalg.sqrtm(metric if metric.ndim else metric * np.eye(rows)))
    if "covariance" in block:
        covariance = np.array(block["covariance"])
        shrunk = (1 - tau) * covariance + tau * np.trace(covariance) / rows * np.eye(rows)
        values, vectors = np.linalg.eigh(shrunk)
        return vectors @ np.diag(np.maximum(values, floor) ** -0.5) @ vectors.T
    return np.eye(rows)


@pytest.mark.parametrize("seed", range(25))
def test_the_operator_is_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    document = random_document(rng)
    operator = Problem(**document).operator()
    B, target, fibers = by_definition(document)
    z = rng.normal(size=B.shape[1])
    field = operator.unstack(operator.stack({name: z[np.r_[cut]] for name, cut in cuts(document)}))
    assert np.allclose(np.concatenate(list(field.values())), z)  # there and back
    stacked = operator.stack({name: z[cut] for name, cut in cuts(document)})
    assert stacked @ stacked == pytest.approx(z @ fibers @ z)  # length in the fiber metrics
    residual = operator.matrix @ stacked - operator.target
    expected = B @ z - target
    assert np.linalg.norm(residual) == pytest.approx(np.linalg.norm(expected))
    for j in range(len(operator.block_ids)):
        rows = slice(operator.block_offsets[j], operator.block_offsets[j + 1])
        assert np.linalg.norm(residual[rows]) == pytest.approx(np.linalg.norm(expected[rows]))
    assert np.allclose(operator.syndrome({name: z[cut] for name, cut in cuts(document)}), residual)


def cuts(document: dict[str, Any]) -> list[tuple[str, slice]]:
    ends = np.cumsum([0, *(n["dim"] for n in document["nodes"])])
    return [(n["id"], slice(a, b)) for n, a, b in zip(document["nodes"], ends, ends[1:], strict=False)]


SHOP: dict[str, Any] = {
    "nodes": [
        {"id": "a"},
        {"id": "b", "dim": 2, "metric": 4.0},
        {"id": "new", "cost": 1.0},
        {"id": "far", "cost": 1.0},
    ],
    "relations": [
        {"id": "ab", "tail": "b", "head": "a", "transport": {"select": [1]}},
        {"id": "anew", "tail": "a", "head": "new"},
        {"id": "bnew", "tail": "b", "head": "new", "transport": {"select": [0]}, "cost": 2.0, "uncertainty": 0.5},
    ],
    "anchors": [{"id": "aa", "node": "a", "value": 3.0}, {"id": "af", "node": "far", "cost": 1.0}],
}


@pytest.mark.parametrize(
    ("select", "nodes", "blocks"),
    [
        (None, ["a", "b"], ["ab", "aa"]),
        ([], ["a", "b"], ["ab", "aa"]),
        ("new", ["a", "b", "new"], ["ab", "anew", "aa"]),
        (["bnew"], ["a", "b", "new"], ["ab", "anew", "bnew", "aa"]),
        (("af", "a", "ab"), ["a", "b", "far"], ["ab", "aa", "af"]),
        ("all", ["a", "b", "new", "far"], ["ab", "anew", "bnew", "aa", "af"]),
    ],
)
def test_nodes_with_a_cost_come_in_when_opened(select: Any, nodes: list[str], blocks: list[str]) -> None:
    problem = Problem(**SHOP)
    operator = problem.operator(select)
    assert list(operator.node_ids) == nodes
    assert list(operator.block_ids) == blocks
    assert problem.design(select).opened == set(nodes)
    assert operator.shape == (int(operator.block_offsets[-1]), int(operator.node_offsets[-1]))
    assert [list(group) for group in operator.groups] == [
        list(range(a, b)) for a, b in zip(operator.node_offsets, operator.node_offsets[1:], strict=False)
    ]
    everything = problem.operator("all")
    for block in blocks:  # a slice of the whole, to the last bit
        full = everything.rows_of(block).toarray()
        kept = [c for n in nodes for c in everything.groups[everything.node_index[n]]]
        assert np.array_equal(operator.rows_of(block).toarray(), full[:, kept])
        assert operator.radii[operator.block_index[block]] == problem.block_by_id[block].uncertainty
        assert operator.block_kinds[operator.block_index[block]] in problem.block_by_id[block].title


def test_a_field_without_open_nodes_is_refused() -> None:
    problem = Problem(nodes=[{"id": "a", "cost": 1.0}])
    with pytest.raises(InputError, match="no node has been asked"):
        problem.operator()
    assert problem.operator("a").shape == (0, 1)


def test_targets_unknown_yet_are_nan_and_stop_the_syndrome() -> None:
    operator = Problem(**SHOP).operator("all")
    assert np.isnan(operator.target[-1])
    with pytest.raises(InputError, match="anchor 'af': no value is known yet"):
        operator.syndrome({"a": 1.0, "b": [1.0, 2.0], "new": 0.0, "far": 0.0})


def test_a_response_of_the_wrong_length_is_named() -> None:
    with pytest.raises(InputError, match=r"node 'b': expected 2 numbers"):
        Problem(**SHOP).operator().stack({"a": 1.0, "b": 3.0})


def test_unstack_only_some() -> None:
    operator = Problem(**SHOP).operator()
    assert operator.unstack(np.array([1.0, 4.0, 6.0]), only=(1,)) == {"b": (2.0, 3.0)}


def test_copies_of_a_block_in_a_family_add_nothing() -> None:
    def gram(copies: int) -> np.ndarray:
        edges = [{"id": f"r{i}", "tail": "a", "head": "b", "family": "f", "weight": 2.0, "transport": {"scale": 3.0}}
                 for i in range(copies)]  # fmt: skip
        matrix = Problem(nodes=[{"id": "a"}, {"id": "b"}], relations=edges).operator().matrix
        return (matrix.T @ matrix).toarray()

    for copies in (2, 3, 7):
        assert np.allclose(gram(copies), gram(1), rtol=1e-14)


def test_zeros_are_not_stored() -> None:
    problem = Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[
            {"id": "zero", "tail": "a", "head": "b", "transport": {"scale": 0.0}},
            {"id": "self", "tail": "a", "head": "a"},
        ],
        anchors=[{"id": "both", "nodes": ["a", "b"], "rows": [[0.0, 1.0]]}],
    )
    assert problem.operator().matrix.nnz == 2
    assert problem.operator().shape == (3, 2)


def test_what_a_problem_derives_is_neither_pickled_nor_copied() -> None:
    problem = Problem(**SHOP)
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert "whole" not in again.__dict__
    assert (again.operator("all").matrix != problem.operator("all").matrix).nnz == 0
    heavier = problem.model_copy(update={"anchors": [problem.anchors[0].model_copy(update={"weight": 4.0})]})
    assert heavier.operator().rows_of("aa").toarray()[0, 0] == 2.0
    with pytest.raises(InputError, match="the field is empty"):
        problem.model_copy(update={"nodes": ()})


def test_results_are_read_only() -> None:
    operator = Problem(**SHOP).operator()
    with pytest.raises(ValueError, match="read-only"):
        operator.target[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        operator.radii[0] = 1.0


@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e200, 1e290])
def test_extreme_metrics_and_covariances_stay_exact(size: float) -> None:
    diagonal = [[size, 0.0], [0.0, 1.0]]
    problem = Problem(
        nodes=[{"id": "a", "dim": 2, "metric": diagonal}, {"id": "b", "dim": 2}],
        anchors=[{"id": "x", "node": "a"}, {"id": "y", "node": "b", "metric": diagonal}],
        shrinkage=0.0,
    )
    matrix = problem.operator().matrix
    assert np.allclose(matrix.diagonal(), [size**-0.5, 1.0, size**0.5, 1.0], rtol=1e-14)
    assert matrix.nnz == 4
    scaled = [[size, 0.0], [0.0, size]]
    noisy = Problem(
        nodes=[{"id": "a", "dim": 2}], anchors=[{"id": "x", "node": "a", "covariance": scaled}], shrinkage=0.5
    )
    assert np.allclose(noisy.operator().matrix.diagonal(), size**-0.5, rtol=1e-14)
