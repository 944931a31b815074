"""What every decoder must do: the conformance suite of the one decoder contract, joined by listing
a method. The JSON of a repair holds everything, in plain types.
"""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing import METHODS, Repair, to_document

ALL = [method for method in METHODS if method != "auto"]


@pytest.mark.parametrize("method", ALL)
class TestEveryDecoder:
    def test_one_outlier_among_four(self, method, equality, answers):
        """The paper's worked example: (42, 42, 47, 42) on a star, and the sign convention ẑ = y −
        ê.
        """
        fixed = rrf.repair(equality("star"), answers(42, 42, 47, 42), method=method)
        assert fixed.support == ("n2",)
        assert fixed.error["n2"] == pytest.approx((5.0,))
        assert fixed.repaired["n2"] == pytest.approx((42.0,))
        assert fixed.repaired["n0"] == (42.0,)
        assert fixed.residual == pytest.approx(0.0, abs=1e-6)

    @pytest.mark.parametrize("size", [5.0, -5.0])
    def test_sign_convention(self, method, size, equality, answers):
        """Whatever the method and the sign: repaired = response − error, and the residual is that
        of the repaired field.
        """
        problem = equality("complete", epsilon=0.1)
        responses = answers(10.0, 10.0 + size, 10.0, 10.0)
        fixed = rrf.repair(problem, responses, method=method)
        for node, error in fixed.error.items():
            assert fixed.repaired[node][0] == pytest.approx(responses[node] - error[0])
        operator = problem.operator()
        left = operator.matrix @ operator.stack(fixed.repaired) - operator.target
        assert np.linalg.norm(left) == pytest.approx(fixed.residual, abs=1e-9)
        assert fixed.error["n1"][0] == pytest.approx(size, abs=0.2)

    def test_consistent_answers_are_left_alone(self, method, equality, answers):
        fixed = rrf.repair(equality("complete"), answers(7, 7, 7, 7), method=method)
        assert fixed.support == ()
        assert fixed.repaired == answers((7.0,), (7.0,), (7.0,), (7.0,))

    def test_an_answer_that_is_missing_is_never_zero(self, method, equality, answers):
        fixed = rrf.repair(equality("complete"), answers(7, None, 7, 7), method=method)
        assert fixed.erased == {"n1": "missing"}
        assert fixed.repaired["n1"] == pytest.approx((7.0,))
        assert "n1" not in fixed.support

    def test_an_erased_node_that_nothing_reaches_has_no_value(self, method, equality, answers):
        problem = equality("triangle")
        if method in ("discrete", "min-sum"):
            with pytest.raises(rrf.InputError, match="'n3' has no candidate"):
                rrf.repair(problem, answers(7, 7, 7, None), method=method)
            return
        fixed = rrf.repair(problem, answers(7, 7, 7, None), method=method)
        assert fixed.repaired["n3"] is None
        assert not fixed.guaranteed

    def test_typed_relations(self, method):
        problem = rrf.Problem(
            nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}, {"id": "c", "dim": 2}, {"id": "d", "dim": 2}],
            relations=[
                {"id": "ab", "tail": "a", "head": "b", "transport": {"scale": 3.0}, "offset": [1.0, 2.0]},
                {"id": "ac", "tail": "a", "head": "c", "transport": {"permute": [1, 0]}},
                {"id": "ad", "tail": "a", "head": "d", "transport": {"matrix": [[1.0, 1.0], [0.0, 1.0]]}},
            ],
        )
        valid = {"a": (1.0, 2.0), "b": (4.0, 8.0), "c": (2.0, 1.0), "d": (3.0, 2.0)}
        fixed = rrf.repair(problem, {**valid, "c": (2.0, 9.0)}, method=method)
        if method == "convex":  # a positive margin is no promise for the relaxation
            assert fixed.certainty in ("bounded", "heuristic")
            return
        for node, value in valid.items():
            assert fixed.repaired[node] == pytest.approx(value)

    def test_result_is_frozen_and_is_json(self, method, equality, answers):
        fixed = rrf.repair(equality("star"), answers(42, 42, 47, 42), method=method, seed=3)
        with pytest.raises(FrozenInstanceError):
            fixed.residual = 0.0
        document = json.loads(json.dumps(to_document(fixed), allow_nan=False))
        assert document["format"] == "rrf-repair"
        assert document["version"] == 2
        assert document["problem"] == rrf.digest(equality("star"))
        assert {"repaired", "support", "residual", "gamma", "error_bound", "method"} <= set(document)
        recorded = document["diagnostics"]
        assert recorded["seed"] == 3
        assert {"objective", "relation_residual", "anchor_residual", "active_groups", "gap", "seconds"} <= set(recorded)

    def test_only_a_method_that_proves_something_guarantees(self, method, equality, answers):
        fixed = rrf.repair(equality("star"), answers(42, 42, 47, 42), method=method)
        if method in ("exact", "convex", "discrete"):
            assert fixed.guaranteed
        else:
            assert fixed.certainty == "heuristic"
            assert not fixed.guaranteed
            assert fixed.error_bound is None

    def test_blind_to_the_kernel_of_the_relations(self, method, equality, answers):
        """A shared shift lies in ker D: the same edits are made, and the shifted truth is missed by
        exactly the shift.
        """
        problem = equality("complete", k=1)
        base = rrf.repair(problem, answers(1, 1, 4, 1), method=method)
        shifted = rrf.repair(problem, answers(101, 101, 104, 101), method=method)
        assert base.support == shifted.support == ("n2",)
        for node in base.repaired:
            assert shifted.repaired[node][0] - base.repaired[node][0] == pytest.approx(100.0)


def test_everything_is_there_and_plain(equality, answers):
    fixed = rrf.repair(equality("pairs"), answers(1, 1, 3, 1), truth=answers(1, 1, 3, 3))
    document = to_document(fixed)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    names = {field.name for field in fields(Repair)} - {"problem_digest"}
    assert set(document) == names | {"format", "version", "problem", "guaranteed"}
    assert document["certainty"] == "ambiguous"
    assert document["failures"] == ["zero or low margin"]
    assert document["alternatives"][0]["support"] in (["n2"], ["n3"])


def test_infinities_are_null(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 1, 1, 1))
    assert fixed.diagnostics.best_smaller == float("inf")
    assert to_document(fixed)["diagnostics"]["best_smaller"] is None
