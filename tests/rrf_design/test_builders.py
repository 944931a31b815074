"""Problems from graphs and matrices, and noise from logs of repeats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import rrf_design as rrf
from rrf_design import Anchor, InputError, Problem
from rrf_design.checker.noise import inflation
from rrf_design.files import estimate
from rrf_design.rows import estimate_confidence

EDGES = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")]


def written(k: int = 1) -> Problem:
    return Problem(
        k=k,
        nodes=[{"id": n} for n in "abcd"],
        relations=[{"id": f"r{i}", "tail": t, "head": h} for i, (t, h) in enumerate(EDGES, start=1)],
        anchors=[{"id": "a-a", "node": "a"}],
    )


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_graphs_of_every_kind(kind: Any) -> None:
    graph = kind()
    graph.add_nodes_from("abcd")
    graph.add_edges_from(EDGES)
    made = rrf.from_graph(graph, anchors=["a"])
    for k in (1, 2):
        assert made.margin(k=k).value == pytest.approx(written().margin(k=k).value)
    if graph.is_directed():
        assert {(r.tail, r.head) for r in made.relations} == set(EDGES)


def test_a_directed_graph_is_the_written_problem() -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from("abcd")
    graph.add_edges_from(sorted(EDGES))
    same = written().model_copy(update={"relations": [
        {"id": f"r{i}", "tail": t, "head": h} for i, (t, h) in enumerate(sorted(EDGES), start=1)
    ], "k": 2})  # fmt: skip
    assert rrf.from_graph(graph, anchors=["a"], k=2) == same


def test_attributes_are_those_of_nodes_and_relations() -> None:
    graph = nx.MultiDiGraph()
    graph.add_node(0, dim=np.int64(2), metric=np.eye(2) * 2)
    graph.add_node((1, "x"), cost=0.5, prompt="why?")
    graph.add_edge(0, (1, "x"), id="first", transport={"select": [1]}, weight=np.float64(2.0), family="f", cost=1.0)
    graph.add_edge(
        0, (1, "x"), transport={"matrix": [[1.0, 2.0]]}, weight=2.0, family="f", requires=["first"], metric=3.0
    )
    made = rrf.from_graph(graph, anchors=[{"id": "v", "node": "0", "value": [1.0, 2.0]}, Anchor(id="w", node="0")])
    assert [node.id for node in made.nodes] == ["0", "(1, 'x')"]
    assert made.nodes[0].metric == ((2.0, 0.0), (0.0, 2.0))
    assert [r.id for r in made.relations] == ["first", "r2"]
    assert [a.id for a in made.anchors] == ["v", "w"]
    assert made.family_size["f"] == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda g: g.add_edge("a", "b", wieght=2.0),
            "edge 'a' - 'b': unknown attribute 'wieght'; did you mean 'weight'?",
        ),
        (lambda g: g.add_edge("a", "b", tail="b"), "edge 'a' - 'b': unknown attribute 'tail'"),
        (lambda g: g.add_node("a", dims=2), "node 'a': unknown attribute 'dims'; did you mean 'dim'?"),
        (lambda g: g.add_edge(1, "1"), "node '1': this id stands twice"),
        (lambda g: None, "nodes: the field is empty"),
        (lambda g: g.add_edge("a", "b", weight=float("nan")), "relation 'r1': weight must be a finite number"),
    ],
)
def test_wrong_graphs(make: Any, message: str) -> None:
    graph = nx.Graph()
    make(graph)
    with pytest.raises(InputError) as caught:
        rrf.from_graph(graph)
    assert str(caught.value).startswith(message)


def test_attributes_that_mean_nothing_here_are_ignored_with_one_note() -> None:
    club = nx.karate_club_graph()  # nodes have a club, edges a weight
    with pytest.warns(UserWarning, match="^graph: ignored, as it means nothing here: node attribute 'club'$") as noted:
        made = rrf.from_graph(nx.Graph(club.subgraph(range(6))), anchors=[0], k=1)
    assert len(noted) == 1
    assert noted[0].filename == __file__
    assert {r.weight for r in made.relations} == {3.0, 4.0, 5.0, 6.0}
    with pytest.warns(UserWarning, match="edge attribute 'color'"):
        rrf.from_graph(nx.Graph([("a", "b", {"color": "red"})]))


def test_what_is_no_graph() -> None:
    for thing in ("graph", None, 3, {"nodes": []}):
        with pytest.raises(InputError, match="graph: must be a networkx graph"):
            rrf.from_graph(thing)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="anchor 'a-9': unknown node '9'"):
        rrf.from_graph(nx.path_graph(3), anchors=[9])
    with pytest.raises(InputError, match="unknown key 'kk'"):
        rrf.from_graph(nx.path_graph(3), kk=2)


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array, lambda m: m.tolist()]
)
def test_a_raw_matrix(form: Any) -> None:
    B = written().operator().matrix.toarray()
    given = form(B)
    before = np.array(B)
    made = rrf.from_matrix(given, names=list("abcd"))
    for k in (1, 2):
        assert made.margin(k=k).value == pytest.approx(written().margin(k=k).value)
        assert made.margin(k=k).support == written().margin(k=k).support
    assert np.array_equal(given.toarray() if sparse.issparse(given) else given, before)  # the caller's stays as it was


@pytest.mark.parametrize("seed", range(6))
def test_groups_as_sizes_and_as_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(9, 7)) * (rng.random((9, 7)) < 0.6)
    B[3] = 0.0
    sizes = [2, 1, 3, 1]
    by_size = rrf.from_matrix(B, sizes)
    assert (by_size.operator().matrix.toarray() == B[[0, 1, 2, 4, 5, 6, 7, 8]]).all()
    shuffle = rng.permutation(7)
    lists = [np.flatnonzero(np.isin(shuffle, part)).tolist() for part in np.split(np.arange(7), np.cumsum(sizes)[:-1])]
    by_list = rrf.from_matrix(B[:, shuffle], lists)
    assert [n.dim for n in by_list.nodes] == sizes
    assert by_list.margin().value == pytest.approx(by_size.margin().value)


def test_whole_numbers_duplicates_and_empty_rows() -> None:
    assert rrf.from_matrix(np.array([[1, 2], [0, 0]])).operator().matrix.toarray().tolist() == [[1.0, 2.0]]
    twice = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    assert rrf.from_matrix(twice).operator().matrix.toarray().tolist() == [[0.0, 3.0]]
    assert rrf.from_matrix(np.zeros((0, 3))).margin().value == 0.0


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        ("x", {}, "matrix: must be a rows × coordinates matrix of real numbers, not str"),
        (None, {}, "matrix: must be"),
        (np.zeros(3), {}, "matrix: must be"),
        (np.zeros((2, 2, 2)), {}, "matrix: must be"),
        ([[1j]], {}, "matrix: must be"),
        (sparse.csr_array(np.array([[1j]])), {}, "matrix: must be"),
        ([["a"]], {}, "matrix: must be"),
        ([[10**400]], {}, "matrix: must be"),
        ([[1, 2], [3]], {}, "matrix: the rows differ in length"),
        ([[1, np.nan]], {}, "matrix: holds a NaN or an infinity"),
        ([[1, np.inf]], {}, "matrix: holds a NaN or an infinity"),
        (np.zeros((3, 0)), {}, "groups: the field is empty"),
        (np.eye(3), {"groups": [1, 1]}, "groups: the sizes add up to 2, but the matrix has 3 columns"),
        (np.eye(3), {"groups": [[0], [1, 1]]}, "groups: the lists must name each"),
        (np.eye(3), {"groups": [0, 3]}, "groups: node 0 has size 0"),
        (np.eye(3), {"groups": 3}, ""),
        (np.eye(3), {"names": ["a"]}, "names: 1 given for 3 nodes"),
        (np.eye(2), {"names": ["a", "a"]}, "node 'a': this id stands twice"),
        (np.eye(2), {"k": 0}, "[problem]: k must be"),
    ],
)
def test_wrong_matrices(matrix: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        rrf.from_matrix(matrix, **options)
    assert str(caught.value).startswith(message)


def test_operators_come_back_from_npz(tmp_path: Path) -> None:
    problem = Problem(
        nodes=[{"id": "é", "dim": 2, "metric": 4.0}, {"id": "b"}, {"id": "later", "cost": 1.0}],
        relations=[
            {"id": "r", "tail": "é", "head": "b", "transport": {"select": [1]}, "offset": 0.5, "uncertainty": 0.1}
        ],
        anchors=[{"id": "x", "node": "é", "value": [1.0, 2.0], "sigma": 0.5}, {"id": "y", "node": "b"}],
    )
    path = tmp_path / "B.npz"
    rrf.save_operator(problem.operator(), path)
    again = rrf.load_operator(path, k=1, name="mine")
    old, new = problem.operator(), again.operator()
    assert again.name == "mine"
    assert np.array_equal(new.matrix.toarray(), old.matrix.toarray())
    assert np.array_equal(new.target, old.target, equal_nan=True)
    assert (new.node_ids, new.block_ids) == (old.node_ids, old.block_ids)
    assert np.array_equal(new.radii, old.radii)
    assert again.margin().value == problem.margin().value
    assert [p.name for p in tmp_path.iterdir()] == ["B.npz"]


def test_npz_written_by_hand_and_by_scipy(tmp_path: Path) -> None:
    B = np.array([[1.0, -1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
    path = tmp_path / "B.npz"
    np.savez(path, B=B)
    assert rrf.load_operator(path) == rrf.from_matrix(B)
    np.savez(path, B=B, groups=np.array([1, 2]))
    assert rrf.load_operator(path) == rrf.from_matrix(B, [1, 2])
    for form in (sparse.csr_array, sparse.csc_array):
        sparse.save_npz(path, form(B))
        assert rrf.load_operator(path) == rrf.from_matrix(B)


GOOD: dict[str, Any] = {
    "data": np.ones(3), "indices": np.array([0, 1, 2]), "indptr": np.array([0, 1, 2, 3]), "shape": np.array([3, 3]),
    "node_offsets": np.array([0, 1, 3]), "node_ids": np.array(["a", "b"]), "block_offsets": np.array([0, 2, 3]),
    "block_ids": np.array(["x", "y"]), "radii": np.zeros(2), "target": np.zeros(3),
}  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"indices": np.array([0, 1, 9])}, "don't fit together"),
        ({"indices": np.array([0, 1, -2])}, "don't fit together"),
        ({"indptr": np.array([0, 7, 2, 3])}, "don't fit together"),
        ({"indptr": np.array([0, 1, 2, 2**40])}, "don't fit together"),
        ({"shape": np.array([3])}, "don't fit together"),
        ({"shape": np.array([-3, 3])}, "don't fit together"),
        ({"data": np.array([1.0, np.nan, 1.0])}, "holds a NaN"),
        ({"data": np.array(["a", "b", "c"])}, ""),
        ({"node_offsets": np.array([0, 1, 2])}, "groups: the sizes add up to 2"),
        ({"node_offsets": np.array([0, 3, 1])}, "groups: "),
        ({"node_ids": np.array(["a"])}, "names: 1 given for 2 nodes"),
        ({"block_offsets": np.array([0, 2, 9])}, "must cover the rows"),
        ({"block_offsets": np.array([0, 3, 3])}, "must cover the rows"),
        ({"block_offsets": np.array([1, 2, 3])}, "must cover the rows"),
        ({"block_ids": np.array(["x"])}, "don't fit together"),
        ({"block_ids": np.array(["x", "x"])}, "anchor 'x': this id stands twice"),
        ({"radii": np.array([-1.0, 0.0])}, "anchor 'x': uncertainty must be"),
        ({"target": np.zeros(2)}, "must cover the rows"),
        ({"target": None}, "no array 'target'"),
        ({"data": None}, "no array 'data'; expected an operator file or an array B"),
        ({"format": np.array("other/9")}, "format 'other/9' is not one that can be read here"),
        ({"B": np.eye(2)[0]}, "matrix: must be"),
        ({"B": np.eye(2), "groups": np.array([0.5, 1.5])}, "groups: "),
    ],
)
def test_stored_arrays_are_not_trusted(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    path = tmp_path / "B.npz"
    arrays = {name: value for name, value in {**GOOD, **bad}.items() if value is not None}
    np.savez(path, **arrays)
    with pytest.raises(InputError) as caught:
        rrf.load_operator(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_what_is_no_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "good.npz", **GOOD)
    assert rrf.load_operator(tmp_path / "good.npz").margin().value == 1.0
    whole = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "torn.npz").write_bytes(whole[:200] + b"\xff" * 40 + whole[240:])
    np.save(tmp_path / "one.npy", np.eye(2))
    np.savez(tmp_path / "pickled.npz", B=np.array([{}], dtype=object), allow_pickle=True)
    for name in ("text.npz", "empty.npz", "half.npz", "torn.npz", "one.npy", "pickled.npz"):
        with pytest.raises(InputError, match=r"not a readable \.npz of plain arrays"):
            rrf.load_operator(tmp_path / name)
    with pytest.raises(InputError, match="no such file"):
        rrf.load_operator(tmp_path / "none.npz")
    with pytest.raises(InputError, match="is a directory"):
        rrf.load_operator(tmp_path)
    with pytest.raises(InputError, match="can't be written"):
        rrf.save_operator(written().operator(), tmp_path / "none" / "B.npz")


def test_a_graph_with_a_sum_beside_its_edges() -> None:
    graph = nx.path_graph(3)
    problem = rrf.from_graph(graph, relations=[{"id": "s", "sum": ["0", "1"], "head": "2"}])
    assert [relation.id for relation in problem.relations] == ["r1", "r2", "s"]
    assert problem.operator().matrix.toarray()[2].tolist() == [-1.0, -1.0, 1.0]
    graph.edges[0, 1]["sum"] = ["0"]
    with pytest.raises(rrf.InputError, match="unknown attribute 'sum'"):
        rrf.from_graph(graph)


FILE = """
[problem]
k = 1
delta = 5.0

[[nodes]]
id = "net"

[[nodes]]
id = "gross"

[[relations]]
id = "vat"
tail = "net"
head = "gross"
transport = {{ scale = 1.19 }}
sigma = 0.1

[[anchors]]
id = "label net"
node = "net"
value = [100.0]
{one}

[[anchors]]
id = "label gross"
node = "gross"
value = [119.0]
{other}

{noise}
"""
LOG = 'estimated_from = "log.csv"'
TOGETHER = f'[[noise]]\nid = "annotator"\nblocks = ["label net", "label gross"]\n{LOG}'


def logged_written(folder: Path, draws: np.ndarray, *, one: str = "", other: str = "", noise: str = TOGETHER) -> Path:
    """A problem file and its log: draws are (ids, repeats, 2), as what both labels said."""
    rows = ["id,node,repeat,value"]
    for item, repeats in enumerate(draws):
        for repeat, pair in enumerate(repeats, start=1):
            rows += [
                f"i{item},{name},{repeat},{value!r}"
                for name, value in zip(("label net", "label gross"), pair.tolist(), strict=True)
            ]
    (folder / "log.csv").write_text("\n".join(rows))
    (folder / "problem.toml").write_text(FILE.format(one=one, other=other, noise=noise))
    return folder / "problem.toml"


def drawn(seed: int, *, ids: int = 5, repeats: int = 30, covariance: np.ndarray | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.array([[0.01, 0.006], [0.006, 0.02]]) if covariance is None else covariance)
    return rng.normal(100, 10, (ids, 1, 2)) + rng.normal(size=(ids, repeats, 2)) @ root.T


def test_the_covariance_is_that_around_the_mean_of_each_id(tmp_path: Path) -> None:
    draws = drawn(0)
    problem = rrf.load(logged_written(tmp_path, draws))
    away = (draws - draws.mean(axis=1, keepdims=True)).reshape(-1, 2)
    wanted = away.T @ away / (5 * 29)
    assert np.array(problem.noise[0].covariance) == pytest.approx(wanted)
    assert problem.noise[0].estimated_from == 146
    assert [problem.block_by_id[n].estimated_from for n in ("label net", "label gross")] == [146, 146]
    assert problem.block_by_id["label net"].sigma == pytest.approx(wanted[0, 0] ** 0.5)
    assert rrf.loads(rrf.dumps(problem)) == problem  # the numbers stand in the document, not the log


def test_each_by_itself(tmp_path: Path) -> None:
    problem = rrf.load(logged_written(tmp_path, drawn(0), one=LOG, other="sigma = 0.1", noise=""))
    block = problem.block_by_id["label net"]
    assert (block.estimated_from, problem.estimated) == (146, frozenset(["label net"]))
    factor = inflation(rows=1, repeats=146, confidence=estimate_confidence(problem, 1))
    white = problem.operator().matrix.toarray()
    row = problem.structure.operator.block_index["label net"]
    assert np.abs(white[row]).max() == pytest.approx(1 / ((block.sigma or 0.0) * factor**0.5))


def test_rows_of_a_relation_are_made_of_the_answers_of_its_nodes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    answers = rng.normal(size=(40, 2))
    lines = [
        f'{{"id": "a", "node": "{n}", "repeat": {r + 1}, "value": {float(answers[r, c])!r}}}'
        for r in range(40)
        for c, n in enumerate(("x", "y"))
    ]
    lines.append('{"id": "a", "node": "x", "repeat": 41, "status": "refusal"}')
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    text = (
        '[[nodes]]\nid = "x"\n[[nodes]]\nid = "y"\n[[relations]]\nid = "r"\ntail = "x"\nhead = "y"\ntransport = { scale'
        ' = 2.0 }\nestimated_from = "log.jsonl"\n'
    )
    (tmp_path / "p.toml").write_text(text)
    block = rrf.load(tmp_path / "p.toml").block_by_id["r"]
    assert block.sigma == pytest.approx(np.std(answers[:, 1] - 2 * answers[:, 0], ddof=1))
    assert block.estimated_from == 40


def test_what_was_raised_covers_the_truth_of_most_logs(tmp_path: Path) -> None:
    truth = np.array([[0.01, 0.006], [0.006, 0.02]])
    missed = 0
    for seed in range(40):
        problem = rrf.load(logged_written(tmp_path, drawn(seed, ids=2, repeats=20)))
        operator = problem.operator()
        labels = [operator.rows_of(name).toarray() for name in ("label net", "label gross")]
        left = np.diag([float(np.abs(rows).max()) for rows in labels])
        missed += np.linalg.eigvalsh(left @ truth @ left.T)[-1] > 1.0
    assert missed <= 2  # at most 2.5 % of all logs, by the promise


def test_a_certificate_carries_the_estimate_and_is_verified(tmp_path: Path) -> None:
    problem = rrf.load(logged_written(tmp_path, drawn(1)))
    made = rrf.certify(problem)
    estimated = made.document["noise"]["estimated"]
    assert [(e["rows"], e["repeats"]) for e in estimated["blocks"]] == [(2, 146), (2, 146)]
    assert rrf.verify(made).valid
    known = problem.model_copy(
        update={
            "anchors": tuple(a.model_copy(update={"estimated_from": None}) for a in problem.anchors),
            "noise": tuple(n.model_copy(update={"estimated_from": None}) for n in problem.noise),
        }
    )
    assert problem.margin().value < known.margin().value
    few = rrf.load(logged_written(tmp_path, drawn(1, repeats=8)))
    assert few.margin().value < problem.margin().value
    forged = json.loads(json.dumps(made.document))
    forged["noise"]["estimated"]["blocks"][0]["repeats"] = 20
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    assert not rrf.verify(tmp_path / "forged.json").valid


@pytest.mark.parametrize(
    ("draws", "changes", "message"),
    [
        (drawn(0, repeats=1), {}, "no id with two repeats"),
        (np.ones((2, 9, 2)), {}, "its repeats never differ"),
        (drawn(0), {"one": f"sigma = 0.1\n{LOG}", "noise": ""}, "the log says what the noise is; leave sigma out"),
        (drawn(0), {"one": LOG}, "the noise of 'label net' is estimated twice"),
        (drawn(0), {"noise": TOGETHER.replace("label net", "label nett")}, "unknown block 'label nett'"),
        (drawn(0), {"noise": TOGETHER.replace("log.csv", "none.csv")}, "none.csv"),
    ],
)
def test_what_a_log_can_not_say_is_one_line(
    tmp_path: Path, draws: np.ndarray, changes: dict[str, str], message: str
) -> None:
    path = logged_written(tmp_path, draws, **changes)
    with pytest.raises(rrf.InputError, match=message) as caught:
        rrf.load(path)
    assert "\n" not in str(caught.value)


def scattered(folder: Path, values: np.ndarray, extra: str = "") -> Path:
    """A node whose σ is to be estimated; values are (ids, repeats)."""
    rows = ["id,node,repeat,value"]
    for item, repeats in enumerate(values.tolist()):
        rows += [f"{item},x,{repeat},{value!r}" for repeat, value in enumerate(repeats, start=1)]
    (folder / "log.csv").write_text("\n".join(rows) + "\n")
    path = folder / "scatter.toml"
    node = f'[[nodes]]\nid = "x"\n{LOG}\nagain = 0.1\nrepeats = 2\n{extra}\n'
    path.write_text(f'[problem]\nk = 1\n{node}[[anchors]]\nid = "a"\nnode = "x"\n')
    return path


def test_the_scatter_of_a_node_comes_from_a_log_and_is_raised(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=(6, 9))
    problem = rrf.load(scattered(tmp_path, values))
    node = problem.nodes[0]
    spread = float(np.sum((values - values.mean(axis=1, keepdims=True)) ** 2) / (6 * 8))
    assert node.estimated_from == 49
    assert node.sigma == pytest.approx(spread**0.5)
    factor = inflation(rows=1, repeats=49, confidence=estimate_confidence(problem, 1))
    answers = problem.design().radius(problem).answers
    assert answers is not None
    assert answers.nodes["x"] == pytest.approx((spread * factor / 2) ** 0.5)  # asked twice
    made = rrf.certify(problem)
    assert rrf.verify(made).valid
    (entry,) = made.document["noise"]["estimated"]["nodes"]
    assert entry["inflation"] == pytest.approx(factor)


@pytest.mark.parametrize(("key", "value"), [("inflation", 1.01), ("rows", 0), ("node", "y"), ("confidence", 1.0)])
def test_a_forged_scatter_is_refused(tmp_path: Path, key: str, value: object) -> None:
    from rrf_design.checker._steps import check_noise

    made = rrf.certify(rrf.load(scattered(tmp_path, np.random.default_rng(2).normal(size=(6, 9)))))
    document = json.loads(json.dumps(made.document))
    document["noise"]["estimated"]["nodes"][0][key] = value
    with pytest.raises(rrf.RRFError, match=r"noise\.estimated"):
        check_noise(document, made.record)


@pytest.mark.parametrize(
    ("extra", "message"), [("sigma = 0.1", "leave sigma out"), ("metric = 2.0", "leave metric out")]
)
def test_what_a_node_with_a_log_may_not_say(tmp_path: Path, extra: str, message: str) -> None:
    with pytest.raises(rrf.InputError, match=message):
        rrf.load(scattered(tmp_path, np.random.default_rng(2).normal(size=(6, 9)), extra))
    with pytest.raises(rrf.InputError, match="estimated_from speaks of sigma; give it"):
        rrf.Problem(nodes=[{"id": "x", "estimated_from": 9}])


def test_too_few_repeats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rrf.InputError, match="4 repeats are too few to bound the covariance of 2 rows"):
        rrf.load(logged_written(tmp_path, drawn(0, ids=1, repeats=4)))


def test_the_estimate_of_one_number_by_hand() -> None:
    draws = {
        ("a", 1): np.array([1.0]),
        ("a", 2): np.array([3.0]),
        ("b", 1): np.array([10.0]),
        ("b", 2): np.array([10.0]),
    }
    covariance, repeats = estimate(draws)
    assert (covariance.tolist(), repeats) == ([[1.0]], 3)
