"""Blocks, the field they make, and expressions with their gradients."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from flint import arb
from pydantic import ValidationError

import rrf_design as rrf
from rrf_design import Anchor, InputError, Node, Problem, Relation, Transport
from rrf_design.autodiff import value_and_jacobian
from rrf_design.blocks import Nonlinear
from rrf_design.field import DEEPEST, MOST_COORDINATES

TRANSPORTS = [
    ("identity", 3, 3, np.eye(3)),
    ({}, 2, 2, np.eye(2)),
    ({"scale": -2.5}, 2, 2, -2.5 * np.eye(2)),
    ({"scale": 0}, 1, 1, np.zeros((1, 1))),
    ({"permute": [2, 0, 1]}, 3, 3, np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])),
    ({"select": [2, 0]}, 3, 2, np.array([[0, 0, 1], [1, 0, 0]])),
    ({"select": [0, 0, 1]}, 2, 3, np.array([[1, 0], [1, 0], [0, 1]])),
    ({"matrix": [[1, 2, 3], [4, 5, 6]]}, 3, 2, np.array([[1, 2, 3], [4, 5, 6]])),
]


@pytest.mark.parametrize(("given", "tail_dim", "head_dim", "matrix"), TRANSPORTS)
def test_a_transport_as_a_matrix(given: Any, tail_dim: int, head_dim: int, matrix: np.ndarray) -> None:
    transport = Transport.model_validate(given)
    assert np.array_equal(transport.as_matrix(tail_dim=tail_dim, head_dim=head_dim), matrix)
    assert Transport.model_validate(transport.model_dump()) == transport
    rows, columns, values = transport.entries(tail_dim=tail_dim, head_dim=head_dim)
    together = np.zeros((head_dim, tail_dim))
    together[rows, columns] = values
    assert np.array_equal(together, matrix)


@pytest.mark.parametrize(("given", "tail_dim", "head_dim", "matrix"), TRANSPORTS)
def test_an_answer_is_carried_as_the_matrix_says(given: Any, tail_dim: int, head_dim: int, matrix: np.ndarray) -> None:
    transport = Transport.model_validate(given)
    relation = Relation(id="r", tail="t", head="h", transport=transport, offset=0.5)
    said = tuple(float(3 + i) for i in range(tail_dim))
    there = relation.carry(said, 7.0)
    assert transport.entrywise == (there is not None)
    assert there is None or there == tuple(matrix @ np.array(said) + 7.0)
    if transport.invertible:
        assert relation.carry(there, 7.0, back=True) == said
    else:
        assert relation.carry(tuple(map(float, range(head_dim))), back=True) is None
    assert relation.carry("yes") == ("yes" if transport.kind == "identity" else None)


@pytest.mark.parametrize(
    ("given", "kind"),
    [("identity", "identity"), ({"scale": 0.0}, "scale"), ({"permute": []}, "permute"), ({"select": [0]}, "select")],
)
def test_the_kind_of_a_transport(given: Any, kind: str) -> None:
    assert Transport.model_validate(given).kind == kind


def two(relation: dict[str, Any] | None = None, anchor: dict[str, Any] | None = None, **settings: Any) -> Problem:
    """One relation from p (2 coordinates) to q (2) and one anchor on p; s has one coordinate."""
    return Problem(
        nodes=[{"id": "p", "dim": 2}, {"id": "q", "dim": 2}, {"id": "s"}],
        relations=[{"id": "r", "tail": "p", "head": "q", **(relation or {})}],
        anchors=[{"id": "a", "node": "p", **(anchor or {})}],
        **settings,
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"transport": "identiy"}, "unknown transport 'identiy'; use"),
        ({"transport": 3}, "transport must be a table, not 3"),
        ({"transport": {"scale": float("nan")}}, "transport.scale must be a finite number"),
        ({"transport": {"scale": "3"}}, "transport.scale must be a number"),
        ({"transport": {"scal": 1.0}}, "unknown key 'scal'; did you mean 'scale'?"),
        ({"transport": {"scale": 1.0, "permute": [0, 1]}}, "a transport is one map, not scale and permute"),
        ({"transport": {"matrix": [[1.0]]}}, "is 1×1, but maps dimension 2 to 2 and so must be 2×2"),
        ({"transport": {"matrix": []}}, "non-empty list of rows of one length"),
        ({"transport": {"matrix": [[1.0, 2.0], [1.0]]}}, "non-empty list of rows of one length"),
        ({"transport": {"matrix": [[1.0, True], [1.0, 0.0]]}}, "transport.matrix[0][1] must be a number, not True"),
        ({"transport": {"permute": [0, 0]}}, "[0, 0] is not a permutation of 0..1"),
        ({"transport": {"permute": [0, 1, 2]}}, "permute has length 3, but the fibers have dimension 2"),
        ({"transport": {"permute": [1.0, 0]}}, "transport.permute[0] must be a whole number"),
        ({"transport": {"select": [0]}}, "select = [0] must name 2 coordinates of the tail"),
        ({"transport": {"select": [0, 2]}}, "each below 2"),
        ({"transport": {"select": [-1, 0]}}, "transport.select[0] must be greater than or equal to 0"),
        ({"head": "s"}, "transport identity needs equal dimensions, but the tail has 2 and the head 1"),
        ({"head": "s", "transport": {"permute": [1, 0]}}, "transport permute needs equal dimensions"),
        ({"head": "s", "transport": {"select": [2]}}, "each below 2"),
        ({"head": "qq"}, "unknown node 'qq'; did you mean 'q'?"),
        ({"tail": "nowhere"}, "unknown node 'nowhere'"),
        ({"offset": [1.0]}, "offset has length 1, but the block has 2 rows"),
        ({"offset": float("inf")}, "offset must be a finite number"),
        ({"offset": [0.0, float("nan")]}, "offset[1] must be a finite number"),
        ({"offset": "0"}, "offset must be a number"),
        ({"weight": 0}, "weight must be greater than 0, not 0"),
        ({"weight": -1.0}, "weight must be greater than 0"),
        ({"weight": float("inf")}, "weight must be a finite number"),
        ({"sigma": 0}, "sigma must be greater than 0"),
        ({"sigma": 1.0, "metric": 1.0}, "give only one of sigma and metric"),
        ({"covariance": [[1.0]]}, "covariance must be 2×2"),
        ({"covariance": [[1.0, 0.1], [0.2, 1.0]]}, "covariance is not symmetric"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "covariance is not positive semidefinite"),
        (
            {"covariance": [[0.0, 0.0], [0.0, 0.0]]},
            "covariance is zero; leave it out, or give [problem] a variance_floor",
        ),
        ({"covariance": [[1.0, 2.0], [float("nan"), 1.0]]}, "covariance[1][0] must be a finite number"),
        ({"metric": [[1.0, 2.0], [2.0, 1.0]]}, "metric is not positive definite"),
        ({"uncertainty": -1e-9}, "uncertainty must be greater than or equal to 0"),
        ({"cost": -1}, "cost must be greater than or equal to 0"),
        ({"requires": ["b"]}, "requires names the unknown block 'b'"),
        ({"requires": "a"}, "requires must be a list"),
        ({"excludes": ["p"]}, "excludes names the unknown block 'p'"),
        ({"family": ""}, "family must be non-empty text"),
        ({"famly": "x"}, "unknown key 'famly'; did you mean 'family'?"),
        ({"sigma": 1e-320}, "too large for floating point"),
        ({"transport": {"scale": 1e300}, "sigma": 1e-300}, "too large for floating point"),
        ({"offset": 1e300, "sigma": 1e-300}, "too large for floating point"),
        ({"transport": {"scale": 1e151}}, "too large for floating point"),  # the square of a row
    ],
)
def test_what_a_relation_refuses(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        two(bad)
    assert str(caught.value).startswith("relation 'r': ")
    assert message in str(caught.value)


def several(**relation: Any) -> Problem:
    """One relation among a, b, c (one coordinate each), p, q (two) and s (three)."""
    nodes = [{"id": name} for name in "abc"] + [{"id": "p", "dim": 2}, {"id": "q", "dim": 2}, {"id": "s", "dim": 3}]
    return Problem(nodes=nodes, relations=[{"id": "r", **relation}])


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({"sum": ["a", "b"], "head": "c"}, {"a": [[-1]], "b": [[-1]], "c": [[1]]}),
        ({"sum": ["a"], "head": "c"}, {"a": [[-1]], "c": [[1]]}),
        ({"sum": ["p", "a"], "head": "c"}, {"p": [[-1, -1]], "a": [[-1]], "c": [[1]]}),
        ({"sum": ["p"], "head": "q"}, {"p": [[-1, 0], [0, -1]], "q": [[1, 0], [0, 1]]}),
        ({"difference": ["a", "b"], "head": "c"}, {"a": [[-1]], "b": [[1]], "c": [[1]]}),
        ({"rows": {"a": [[2], [0]], "p": [[1, 1], [0, 3]]}}, {"a": [[2], [0]], "p": [[1, 1], [0, 3]]}),
        ({"rows": {"b": [[1]]}}, {"b": [[1]]}),
    ],
)
def test_relations_among_several_nodes(given: Any, rows: dict[str, Any]) -> None:
    problem = several(**given, offset=7.0)
    (relation,) = problem.relations
    assert relation.pair is None
    assert relation.nodes == tuple(rows)
    found = problem.operator()
    assert found.block_kinds == ("relation",)
    assert (found.target == 7.0).all()
    wide = np.zeros((len(next(iter(rows.values()))), 10))
    for name, part in rows.items():
        wide[:, found.groups[found.node_index[name]]] = part
    assert np.array_equal(found.matrix.toarray(), wide)
    assert rrf.loads(rrf.dumps(problem)) == problem
    assert rrf.loads(rrf.dumps(problem, "json"), "json") == problem


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({}, "tail is missing (or sum, difference or rows"),
        ({"head": "a"}, "tail is missing"),
        ({"tail": "a"}, "head is missing"),
        ({"sum": ["a", "b"]}, "head is missing"),
        ({"tail": "a", "sum": ["b"], "head": "c"}, "a relation has one form: give only one of tail and sum"),
        ({"sum": ["b"], "rows": {"a": [[1]]}}, "give only one of sum and rows"),
        ({"sum": [], "head": "c"}, "sum must name at least one node"),
        ({"sum": "a", "head": "c"}, "sum must be a list"),
        ({"sum": ["a", "a"], "head": "c"}, "names a node twice"),
        ({"sum": ["a", "c"], "head": "c"}, "names a node twice"),
        ({"sum": ["a", "bb"], "head": "c"}, "unknown node 'bb'; did you mean 'b'?"),
        ({"sum": ["a", "s"], "head": "q"}, "'a' has dimension 1, but the head 'q' has 2"),
        ({"sum": ["a", "b"], "head": "c", "transport": {"scale": 2}}, "transport goes with tail and head"),
        ({"sum": ["a"], "head": "c", "offset": [1.0, 2.0]}, "offset has length 2, but the block has 1 rows"),
        ({"difference": ["a"], "head": "c"}, "difference must name two nodes, not 1"),
        ({"difference": ["p", "a"], "head": "c"}, "'p' has dimension 2, but a difference needs that of the head, 1"),
        ({"rows": {}}, "rows must give every node a non-empty list of rows"),
        ({"rows": {"a": []}}, "rows must give every node a non-empty list of rows"),
        ({"rows": {"a": [[1]], "b": [[1], [2]]}}, "as many rows for every node, not a 1, b 2"),
        ({"rows": {"a": [[1, 2]]}}, "rows of 'a' have length 2, but the node has dimension 1"),
        ({"rows": {"a": [[1]], "zz": [[1]]}}, "unknown node 'zz'"),
        ({"rows": {"a": [[1]]}, "head": "b"}, "rows name all their nodes; leave head out"),
        ({"rows": {"a": [[float("nan")]]}}, "rows.a[0][0] must be a finite number"),
        ({"rows": [[1.0]]}, "rows must be a table"),
        ({"sums": ["a"], "head": "c"}, "unknown key 'sums'; did you mean 'sum'?"),
    ],
)
def test_what_a_relation_among_several_refuses(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        several(**bad)
    assert str(caught.value).startswith("relation 'r': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"rows": "ident"}, "rows = 'ident'; use \"identity\" or a list of rows"),
        ({"rows": []}, "rows must be a non-empty list of rows of one length"),
        ({"rows": [[1.0, 2.0], [1.0]]}, "rows must be a non-empty list of rows of one length"),
        ({"rows": [[]]}, "rows have length 0, but the node has dimension 2"),
        ({"rows": [[1.0]]}, "rows have length 1, but the node has dimension 2"),
        ({"rows": [1.0, 2.0]}, "rows[0] must be a list"),
        ({"rows": [[1.0, float("-inf")]]}, "rows[0][1] must be a finite number"),
        ({"value": 1.0}, "value is one number, but the block has 2 rows; give a list"),
        ({"value": [1.0]}, "value has length 1, but the block has 2 rows"),
        ({"value": [1.0, float("nan")]}, "value[1] must be a finite number"),
        ({"nodes": ["q"]}, "give exactly one of node and nodes"),
        ({"node": None}, "give exactly one of node and nodes"),
        ({"node": None, "nodes": []}, "nodes must name at least one node"),
        ({"node": None, "nodes": ["p", "p"]}, "none of them twice"),
        ({"node": None, "nodes": ["p", "q"], "rows": [[1.0, 0.0]]}, "the nodes together have dimension 4"),
        ({"node": "P"}, "unknown node 'P'"),
        ({"source": 3}, "source must be text"),
        ({"valeu": 3}, "unknown key 'valeu'; did you mean 'value'?"),
    ],
)
def test_what_an_anchor_refuses(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        two(anchor=bad)
    assert str(caught.value).startswith("anchor 'a': ")
    assert message in str(caught.value)


def test_a_family_has_one_weight() -> None:
    with pytest.raises(
        InputError, match=r"anchor 'a': weight 2.0 differs from the weight 1.0 of 'r' in the same family 'f'"
    ):
        two({"family": "f"}, {"family": "f", "weight": 2.0})


def test_identity_rows_and_family_names() -> None:
    problem = two({"family": "a"})
    assert sorted(problem.family_size.values()) == [1, 1]
    assert Anchor(id="a", node="p", rows="identity") == Anchor(id="a", node="p")


def test_blocks_name_their_nodes() -> None:
    assert Relation(id="r", tail="x", head="y").nodes == ("x", "y")
    assert Relation(id="r", tail="x", head="x").nodes == ("x",)
    assert Anchor(id="a", node="x").nodes == ("x",)
    assert Anchor(id="a", nodes=["y", "x"]).nodes == ("y", "x")


def test_a_sum_waits_for_all_its_nodes_and_is_uncertain_on_all_of_them() -> None:
    problem = Problem(
        epsilon=0.1,
        amplitude=10.0,
        nodes=[{"id": "net"}, {"id": "tax", "cost": 1.0}, {"id": "total"}, {"id": "again"}],
        relations=[
            {"id": "up", "sum": ["net", "tax"], "head": "total", "uncertainty": 0.01},
            {"id": "rate", "rows": {"net": [[0.19]], "tax": [[-1.0]]}},
            {"id": "same", "tail": "total", "head": "again"},
        ],
        anchors=[{"id": "label", "node": "net", "cost": 2.0}],
    )
    assert problem.design().operator.block_ids == ("same",)
    opened = problem.design(["tax"])
    assert opened.operator.block_ids == ("up", "rate", "same")
    assert opened.operator.uncertain == {"up": ("net", "tax", "total")}
    assert opened.standing(problem).radius.total == pytest.approx(0.1 + 0.01 * 10.0)
    assert problem.margin().value == 0.0
    assert problem.margin(["tax"]).value > 0.0
    bought = rrf.plan(problem, target=0.1)
    assert bought.selected == ("tax",)
    assert bought.status == "optimal"
    curve = rrf.frontier(problem)
    assert [point.selected for point in curve.points][:2] == [(), ("tax",)]


@pytest.mark.parametrize("method", ["exact", "convex", "discrete"])
@pytest.mark.parametrize("wrong", ["net", "tax", "total", "again"])
def test_every_repair_knows_sums(method: str, wrong: str) -> None:
    problem = Problem(
        delta=0.1,
        epsilon=0.001,
        nodes=[{"id": name} for name in ("net", "tax", "total", "again")],
        relations=[
            {"id": "up", "sum": ["net", "tax"], "head": "total"},
            {"id": "rate", "rows": {"net": [[0.19]], "tax": [[-1.0]]}},
            {"id": "same", "tail": "total", "head": "again"},
            {"id": "down", "difference": ["again", "tax"], "head": "net"},
        ],
    )
    truth = {"net": 100.0, "tax": 19.0, "total": 119.0, "again": 119.0}
    fixed = rrf.repair(problem, {**truth, wrong: 50.0}, method=method)
    assert fixed.verdict == "consistent"
    assert fixed.support == (wrong,)
    assert fixed.repaired[wrong] == pytest.approx((truth[wrong],), abs=0.05)


FORMS: list[dict[str, Any]] = [
    {"product": ["a", "b", "c"], "head": "d", "weight": 4.0},
    {"power": {"a": 2.0, "b": -1.5, "c": 0.5}, "factor": 3.0, "head": "d"},
    {"threshold": "a", "at": 5.0, "head": "b"},
    {"threshold": "a", "at": 0.1, "head": "b"},
    {"clause": ["a", "not b", "c"]},
]
PLACE = {name: i for i, name in enumerate("abcd")}


@pytest.mark.parametrize("form", FORMS)
def test_rows_and_second_derivatives(form: dict[str, Any]) -> None:
    entry = Nonlinear(id="x", **form)

    def rows(z: Any) -> Any:
        return np.array(entry.rows({name: z[i] for name, i in PLACE.items()}))

    center = np.array([1.25, 0.75, 2.0, 3.0])
    balls = [arb(float(x), 1e-3) for x in center]
    found = entry.hessians({name: balls[i] for name, i in PLACE.items()}, PLACE)
    jacobian = value_and_jacobian(rows, center)[1]
    assert len(found) == entry.height == len(jacobian)
    step = 1e-6
    for i in range(4):
        moved = value_and_jacobian(rows, center + step * np.eye(4)[i])[1]
        for row in range(entry.height):
            for j in range(4):
                bound = found[row][i][j]
                true = abs(moved[row, j] - jacobian[row, j]) / step
                assert true <= float(arb(bound).abs_upper()) * (1 + 1e-3) + 1e-6


def test_where_a_threshold_bends_nothing_is_bounded() -> None:
    entry = Nonlinear(id="x", threshold="a", at=1.0, head="b")
    balls = {name: arb(1.0, 0.5) for name in "ab"}
    assert not entry.hessians(balls, {"a": 0, "b": 1})[0][0][0].is_finite()


def meaning(form: dict[str, Any], **values: float) -> bool:
    return not any(Nonlinear(id="x", **form).rows(values))


def test_what_they_mean() -> None:
    assert meaning({"product": ["a", "b"], "head": "c"}, a=2, b=3, c=6)
    assert not meaning({"product": ["a", "b"], "head": "c"}, a=2, b=3, c=5)
    assert meaning({"power": {"a": 2.0}, "factor": 0.5, "head": "b"}, a=4, b=8)
    for score, passed in ((60.0, 1.0), (50.0, 1.0), (50.0, 0.0), (40.0, 0.0)):  # at the threshold itself either fits
        assert meaning({"threshold": "a", "at": 50.0, "head": "b"}, a=score, b=passed)
    assert not meaning({"threshold": "a", "at": 50.0, "head": "b"}, a=40.0, b=1.0)
    assert meaning({"clause": ["a", "not b"]}, a=0, b=0)
    assert not meaning({"clause": ["a", "not b"]}, a=0, b=1)


def problem(form: dict[str, Any], **settings: Any) -> rrf.Problem:
    return rrf.Problem(nodes=[{"id": name} for name in "abc"], nonlinear=[{"id": "x", **form}], **settings)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({}, "give one of product, power, threshold and clause, not none"),
        ({"product": ["a"], "clause": ["b"]}, "not product and clause"),
        ({"product": ["a"]}, "head is missing"),
        ({"product": [], "head": "a"}, "product"),
        ({"clause": ["a"], "head": "b"}, "a clause has no head"),
        ({"threshold": "a", "head": "b"}, "at goes with threshold"),
        ({"product": ["a"], "at": 1.0, "head": "b"}, "at goes with threshold"),
        ({"product": ["a"], "factor": 2.0, "head": "b"}, "factor goes with power"),
        ({"product": ["a", "a"], "head": "b"}, "names a node twice"),
        ({"product": ["a", "zz"], "head": "b"}, "unknown node 'zz'"),
        ({"produkt": ["a"], "head": "b"}, "unknown key 'produkt'; did you mean 'product'?"),
    ],
)
def test_what_is_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(rrf.InputError) as caught:
        problem(bad)
    assert str(caught.value).startswith("nonlinear 'x': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tail": 0.1}, "tail does not go with nonlinear relations"),
        ({"anchors": [{"id": "y", "node": "a", "cost": 1.0}]}, "leave out cost"),
        ({"anchors": [{"id": "y", "node": "a", "uncertainty": 1.0}]}, "leave out uncertainty"),
        ({"nodes": [{"id": "a", "dim": 2}, {"id": "b"}]}, "plain numbers; leave out dim"),
    ],
)
def test_what_does_not_go_together(settings: dict[str, Any], message: str) -> None:
    given = {"nodes": [{"id": "a"}, {"id": "b"}], "nonlinear": [{"id": "x", "product": ["a"], "head": "b"}], **settings}
    with pytest.raises(rrf.InputError, match=message):
        rrf.Problem(**given)
    with pytest.raises(rrf.InputError, match="local_radius goes with nonlinear relations"):
        rrf.Problem(nodes=[{"id": "a"}], local_radius=1.0)


def test_global_claims_are_refused_in_one_line_and_files_keep_them() -> None:
    field = problem({"power": {"a": 2.0}, "head": "b"}, local_radius=0.5)
    assert rrf.loads(rrf.dumps(field)) == field
    for verb in (field.margin, lambda: rrf.plan(field, budget=1.0), lambda: rrf.certify(field)):
        with pytest.raises(rrf.InputError, match="nonlinear 'x': margins, plans and certificates speak of all fields"):
            verb()


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_node_has_defaults_and_never_changes() -> None:
    node = Node(id="a")
    assert (node.dim, node.cost, node.metric, node.prompt) == (1, None, None, None)
    with pytest.raises(ValidationError):
        Node(id="a").dim = 2  # type: ignore[misc]


def test_whole_numbers_stand_for_floats() -> None:
    node = Node(id="a", cost=1, metric=2)
    assert (node.cost, node.metric) == (1.0, 2.0)
    assert isinstance(node.cost, float)
    assert isinstance(node.metric, float)


@pytest.mark.parametrize("table", [{}, {"type": "number", "of": [1, 2.5, True, "é\n", {"x": []}]}, deep(DEEPEST)])
def test_tables_of_plain_data(table: dict[str, Any]) -> None:
    assert Node(id="a", parser=table, variables=table).parser == table


def test_tuples_in_tables_become_lists_as_a_file_would_give_them() -> None:
    assert Node(id="a", variables={"x": (1, (2,))}).variables == {"x": [1, [2]]}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"variables": {"x": None}}, "leave the key out"),
        ({"variables": {"x": float("nan")}}, "not nan"),
        ({"variables": {"x": float("inf")}}, "not inf"),
        ({"variables": {"x": 2**63}}, "only text, finite numbers"),
        ({"variables": {"x": datetime.date(2020, 1, 1)}}, "only text"),
        ({"variables": {"x": "\ud800"}}, "valid Unicode"),
        ({"variables": {"\udfff": 1}}, "valid Unicode"),
        ({"variables": {"x": {3: 1}}}, "keys must be text, not 3"),
        ({"variables": deep(DEEPEST + 2)}, f"nested more than {DEEPEST} deep"),
        ({"parser": {"x": float("nan")}}, "parser: only text"),
        ({"parser": 3}, "parser must be text"),
        ({"variables": "x"}, "variables must be a table"),
        ({"dim": 0}, "dim must be greater than or equal to 1, not 0"),
        ({"dim": MOST_COORDINATES + 1}, f"dim must be less than or equal to {MOST_COORDINATES}"),
        ({"dim": True}, "dim must be a whole number, not True"),
        ({"dim": 1.0}, "dim must be a whole number, not 1.0"),
        ({"dim": "1"}, "dim must be a whole number"),
        ({"cost": -0.5}, "cost must be greater than or equal to 0, not -0.5"),
        ({"cost": True}, "cost must be a number, not True"),
        ({"cost": float("nan")}, "cost must be a finite number, not nan"),
        ({"cost": 10**400}, "cost must be a number"),
        ({"metric": 0.0}, "metric must be greater than 0"),
        ({"metric": [[1.0, 0.0]]}, "metric must be 1×1"),
        ({"metric": [[-1.0]]}, "metric is not positive definite"),
        ({"dim": 2, "metric": [[1.0, 0.5], [0.4, 1.0]]}, "metric is not symmetric"),
        ({"dim": 2, "metric": [[1.0, 2.0], [2.0, 1.0]]}, "metric is not positive definite"),
        ({"dim": 2, "metric": [[1.0, float("nan")], [2.0, 1.0]]}, r"metric[0][1] must be a finite number"),
        ({"prompt": ""}, "prompt must be non-empty text"),
        ({"max_tokens": 0}, "max_tokens must be greater"),
        ({"dims": 2}, "unknown key 'dims'; did you mean 'dim'?"),
    ],
)
def test_what_a_node_refuses(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Problem(nodes=[{"id": "ok"}, {"id": "wrong", **bad}])
    assert str(caught.value).startswith("node 'wrong': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def everything(z):
    a, b, c = z[0], z[1], z[2]
    return [
        a + b - c * 2 + 1,
        3 - a / b,
        2 / c + a * b * c,
        a**3 + a**0 + b**c + 2**a,
        np.sin(a) * np.cos(b) + np.exp(c) / np.log(a + 2),
        np.sqrt(b) - np.tanh(c),
        np.sum(z * z) + np.dot(z, z[::-1]),
        -a,
    ]


@pytest.mark.parametrize("seed", range(5))
def test_against_complex_steps(seed):
    point = 0.5 + np.random.default_rng(seed).random(3)
    values, jacobian = value_and_jacobian(everything, point)
    np.testing.assert_allclose(values, np.array(everything(point), dtype=float))
    for i in range(3):
        step = point.astype(complex)
        step[i] += 1e-30j
        np.testing.assert_allclose(jacobian[:, i], np.imag(np.array(everything(step))) / 1e-30, rtol=1e-10, atol=1e-12)


def test_constants_have_no_gradient_and_absolute_values_have_one():
    values, jacobian = value_and_jacobian(lambda z: [7.0, abs(z[0])], np.array([-2.0]))
    np.testing.assert_allclose(values, [7.0, 2.0])
    np.testing.assert_allclose(jacobian, [[0.0], [-1.0]])
