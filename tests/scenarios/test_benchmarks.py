"""Benchmarks at a tiny size, which judges no speed; their fields, ratios and figures."""

from __future__ import annotations

import io
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
import scenarios
from rrf_design.errors import InputError
from scenarios.benchmark_certificates import SCENARIO
from scenarios.benchmark_planning import sparse_field
from scenarios.benchmark_planning.larger_plans import larger_field
from scenarios.benchmark_repair import FAMILIES, Loop, sample
from scenarios.benchmark_versions import ROOMS, report, run, works
from scenarios.certificate_ladder import problem
from scenarios.kit.large_supports import FAMILIES as FAMILIES_of_large_supports
from scenarios.kit.large_supports import judge_large, large_rows, measured, regular_graph, small_field
from scenarios.kit.report import ConditionStatus, ConditionVerdict, Report
from scenarios.kit.runner import run_scenario
from scenarios.kit.scenario import Context, Done
from scenarios.kit.timing import Benchmark, benchmark_table, side_by_side
from scenarios.planner_comparison import METHODS, counterexample, random_field
from solvers.decoding import decode_support


def tiny(name: str, folder: Path, changes: dict[str, object]) -> Report:
    """What a scenario reports of a run that is smaller than its quick one."""
    scenario = scenarios.get(name)
    context = Context(scenario.parameters(quick=True, changes=changes), True, folder)
    done = [Done(part, json.loads(json.dumps(scenario.run(context, part))), 0.0) for part in scenario.parts(context)]
    outcome = scenario.report(context, done)
    scenario.check(outcome)
    return outcome


def test_tiny_run_of_benchmark_certificates(tmp_path):
    wide = [{"rows": 10, "nodes": 12, "size": 8}, {"nodes": 12, "degree": 3, "size": 4, "unit": 2, "deliver": 3}]
    changes = {"fields": [["dense", 6, 1, 1], ["graph", 7, 1, 1]], "large": 20, "timed": [["graph", 50]], "wide": wide}
    outcome = tiny("benchmark-certificates", tmp_path, changes)
    assert {verdict.key: verdict.status for verdict in outcome.verdicts} == {
        "dense": ConditionStatus.NOT_JUDGED,
        "graph": ConditionStatus.NOT_JUDGED,
        "large": ConditionStatus.NOT_JUDGED,
        "rigour": ConditionStatus.NOT_JUDGED,
        "supports": ConditionStatus.NOT_JUDGED,
        "valid": ConditionStatus.MET,
    }
    assert len(outcome.tables[1].rows) == 2
    wide_rows = [dict(zip(outcome.tables[2].columns, row, strict=True)) for row in outcome.tables[2].rows]
    assert [row["verify_says"] for row in wide_rows] == ["every claim was re-proved"] * 2
    assert wide_rows[1]["field"] == "graph of 12 nodes, degree 3, one value in 3 delivered, units of 2"


def test_a_refused_certificate_is_counted(tmp_path):
    context = Context(SCENARIO.parameters(quick=True), True, tmp_path)
    row = {"nodes": 4, "dim": 1, "k": 1, "rung": "exact", "solve_seconds": 1.0, "verify_seconds": 7.0, "ratio": 7.0}
    row = {**row, "lowest": 7.0, "highest": 7.0}
    large = {"kind": "large", "nodes": 9, "k": 1, "valid": True, "certify_seconds": 1.0, "verify_seconds": 99.0}
    large["margin_seconds"] = 1.0
    cost = {"field": "dense 9", "cost": 0.5, "proofs": 1.0, "seconds": 3.0, "status": "exact"}
    done = [
        Done({"kind": "dense"}, {**row, "kind": "dense", "valid": False}, 0.0),
        Done({"kind": "graph"}, {**row, "kind": "graph", "valid": True}, 0.0),
        Done({"kind": "large"}, large, 0.0),
        Done({"kind": "rigour"}, cost, 0.0),
        Done({"kind": "wide"}, {**row, "field": "dense", "valid": True}, 0.0),
    ]
    verdicts = {verdict.key: verdict.status for verdict in SCENARIO.report(context, done).verdicts}
    assert verdicts["valid"] is ConditionStatus.VIOLATED
    full = SCENARIO.report(Context(SCENARIO.parameters(), False, tmp_path), done)
    assert all(verdict.status is ConditionStatus.VIOLATED for verdict in full.verdicts)


def test_tiny_run_of_benchmark_planning(tmp_path):
    changes = {
        "nodes": 7,
        "chords": 6,
        "large": 8,
        "sparse": 700,
        "purchases": 3,
        "items": 10,
        "larger-share": 0.03,
        "larger-seconds": 2.0,
    }
    outcome = tiny("benchmark-planning", tmp_path, changes)
    assert {verdict.status for verdict in outcome.verdicts} == {ConditionStatus.NOT_JUDGED}


def test_the_sparse_field_has_what_it_says():
    problem = sparse_field(300)
    assert len(problem.on_sale) == 300
    assert problem.k == 1


def test_the_larger_field_has_what_it_says():
    problem = larger_field(1, 200, k=1)
    assert len(problem.blocks) == 799
    assert len(problem.on_sale) == 66 + 400 + 200
    assert {node.dim for node in larger_field(1, 24, k=2, dim=3).nodes} == {3}


@pytest.mark.parametrize("family", FAMILIES)
def test_loop_and_search_find_the_planted_error(family):
    instance = sample(family, 16, seed=3)
    dense = instance.matrix if isinstance(instance.matrix, np.ndarray) else instance.matrix.toarray()
    groups = np.split(np.arange(dense.shape[1]), 16)
    assert Loop(dense, groups, instance.syndrome, 1)() == instance.wrong
    found = decode_support(instance.matrix, instance.dims, syndrome=instance.syndrome, k=2, epsilon=instance.epsilon)
    assert found.support == instance.wrong


def test_tiny_run_of_benchmark_repair(tmp_path):
    changes = {"nodes": 12, "large": 20, "fields": 40, "strides": dict.fromkeys(FAMILIES, 1)}
    outcome = tiny("benchmark-repair", tmp_path, changes)
    assert {verdict.key: verdict.status for verdict in outcome.verdicts} == {
        "graph": ConditionStatus.NOT_JUDGED,
        "typed": ConditionStatus.NOT_JUDGED,
        "dense": ConditionStatus.NOT_JUDGED,
        "right": ConditionStatus.MET,
    }
    assert len(outcome.tables[1].rows) == len(FAMILIES)


def test_tiny_run_of_planner_comparison(tmp_path):
    changes = {"nodes": 7, "chords": 6, "draws": 1, "cells": [[1, 8]]}
    outcome = tiny("planner-comparison", tmp_path, changes)
    assert {verdict.status for verdict in outcome.verdicts} == {ConditionStatus.MET}
    assert len(outcome.tables[0].rows) == len(METHODS)


def test_fields_are_as_described():
    problem = random_field(3, nodes=24, chords=40, anchors=24, k=2)
    assert len(problem.on_sale) == 64
    assert sum(block.owned for block in problem.blocks) == 15
    assert {problem.block_by_id[name].cost for name in problem.on_sale} == {1.0, 2.0, 3.0}
    assert counterexample("six pairs").margin().value == 0.0


def test_fields() -> None:
    graph = problem("graph", 8, 2, 0)
    assert rrf.dumps(graph) == rrf.dumps(problem("graph", 8, 2, 0))
    assert len(graph.anchors) == 8
    assert problem("dense", 4, 1, 0).operator().shape == (8, 4)


def test_a_small_run_meets_its_conditions(tmp_path: Path) -> None:
    published = run_scenario(
        scenarios.get("certificate-ladder"),
        tmp_path,
        quick=True,
        changes={"fields": [["graph", 5, 1, 1]], "seconds": 1.0},
    )
    assert not published.violated


def done(work: str, *, now: float, before: float, same: bool = True) -> Done:
    value = {
        "work": work,
        "versions": ["0.2.0", "0.1.0"],
        "found": ["1", "1" if same else "2"],
        "now": [now] * 3,
        "before": [before] * 3,
    }
    return Done({"work": work}, value, 1.0)


def judged(before: str, *parts: Done) -> dict[str, ConditionStatus]:
    context = Context({"before": before, "rounds": 3}, quick=False, directory=Path())
    outcome = report(context, parts)
    scenarios.get("benchmark-versions").check(outcome)
    return {verdict.key: verdict.status for verdict in outcome.verdicts}


def test_a_work_that_became_slower_is_a_violation_of_its_room() -> None:
    parts = [done(f"{room}, some", now=1.0, before=1.0) for room in ROOMS]
    assert set(judged("there", *parts).values()) == {ConditionStatus.MET}
    slower = judged("there", *parts, done("plan, other", now=1.2, before=1.0))
    assert [key for key, status in slower.items() if status is ConditionStatus.VIOLATED] == ["plan"]


def test_another_answer_is_a_violation() -> None:
    parts = [done(f"{room}, some", now=1.0, before=1.0, same=room != "repair") for room in ROOMS]
    assert judged("there", *parts)["same"] is ConditionStatus.VIOLATED


def test_nothing_is_judged_of_a_version_beside_itself() -> None:
    parts = [done(f"{room}, some", now=2.0, before=1.0) for room in ROOMS]
    assert {status for key, status in judged("", *parts).items() if key != "same"} == {ConditionStatus.NOT_JUDGED}


def test_a_folder_without_the_package_is_named(tmp_path: Path) -> None:
    context = Context({"before": str(tmp_path), "rounds": 1}, quick=True, directory=tmp_path)
    with pytest.raises(InputError, match="no checkout of the package"):
        run(context, {"work": next(iter(works.QUICK))})


def test_every_room_has_its_works() -> None:
    for room in ROOMS:
        assert any(name.startswith(room) for name in works.FULL)


def test_a_worker_tells_its_version_and_then_a_line_for_every_round() -> None:
    out = io.StringIO()
    works.serve("margin, dense 16, k = 2", ["again", "again"], out)
    first, *rounds = [json.loads(line) for line in out.getvalue().splitlines()]
    assert set(first) == {"version"}
    assert [round_["found"] for round_ in rounds] == [rounds[0]["found"]] * 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that moves only when the work says so."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_ratio_is_the_median_of_rounds(clock: list[float]) -> None:
    spikes = itertools.chain([3.0, 3.0, 30.0], itertools.repeat(3.0))

    def work() -> None:
        clock[0] += 1.0

    def baseline() -> None:
        clock[0] += next(spikes)

    ratio = side_by_side(work, baseline, rounds=5, baseline_scale=2.0)
    assert ratio.median == 6.0
    assert ratio.highest == 60.0
    assert ratio.work_seconds == 1.0


def test_short_work_is_repeated(clock: list[float]) -> None:
    calls = [0]

    def work() -> None:
        calls[0] += 1
        clock[0] += 0.001

    ratio = side_by_side(work, work, rounds=1, at_least=0.1, warm=False)
    assert ratio.median == pytest.approx(1.0)
    assert calls[0] >= 200


def test_verdicts_of_figures() -> None:
    fast = Benchmark("fast", "ours", "theirs", 30.0, at_least=20.0)
    slow = Benchmark(
        "slow",
        "ours",
        "theirs",
        3.0,
        at_most=2.3,
    )
    assert fast.verdict().status is ConditionStatus.MET
    assert slow.verdict().status is ConditionStatus.VIOLATED
    assert slow.verdict(quick=True).status is ConditionStatus.NOT_JUDGED
    table = benchmark_table([fast, slow])
    assert [row[table.columns.index("met")] for row in table.rows] == ["yes", "no"]


def test_a_regular_graph_has_its_relations_and_anchors() -> None:
    plain = regular_graph(20, 3, seed=1)
    assert plain.shape == (30 + 2, 20)
    assert np.allclose(plain[:30].sum(axis=1), 0.0)
    assert np.allclose(plain[30:].sum(axis=1), 1.0)
    typed = regular_graph(20, 3, dim=2, seed=1)
    assert typed.shape == (2 * (30 + 2), 40)
    assert np.allclose((typed @ typed.T).diagonal()[:60], 2.0)


@pytest.mark.parametrize("seed", range(len(FAMILIES_of_large_supports)))
def test_small_fields_are_small_and_repeatable(seed: int) -> None:
    matrix = small_field(seed)
    assert matrix.shape[1] in (9, 10)
    assert np.array_equal(matrix, small_field(seed))


def _judged(rows: list[dict[str, Any]]) -> list[ConditionVerdict]:
    page = Report(quick=True)
    judge_large(page, rows)
    return page.verdicts


def test_an_instance_is_measured_and_judged() -> None:
    instance = {"kind": "large", "nodes": 12, "degree": 3, "size": 7, "limit": 60.0, "unlimited": True}
    row = measured(instance, regular_graph(12, 3))
    assert row["limited"]["status"] == row["before"]["status"] == "exact"
    verdicts = {verdict.key: verdict for verdict in _judged([row])}
    assert verdicts["large"].status == "met"
    table = large_rows([row])
    assert table[0]["lower_by_upper"] == pytest.approx(1.0)
    wrong = {**row, "before": {**row["before"], "gamma": 2.0 * row["before"]["gamma"]}}
    late = {**row, "limited": {**row["limited"], "status": "bounded"}}
    for other in (wrong, late):
        assert _judged([other])[0].status == "violated"


def test_what_is_not_proven_in_time_is_called_no_bound() -> None:
    instance = {"nodes": 20, "degree": 3, "size": 8, "limit": 30.0, "exact": False, "oracle": False}
    row = measured(instance, regular_graph(20, 3))
    assert "before" not in row
    assert large_rows([row])[0]["before_status"] is None
    unproven = {**row, "limited": {**row["limited"], "status": "bounded", "share": 0.0}}
    bounded = {**row, "limited": {**row["limited"], "status": "bounded", "share": 0.25}}
    assert [shown["status"] for shown in large_rows([row, unproven, bounded])] == ["exact", "no bound", "bounded"]
    assert _judged([row, unproven])[0].status == "met"
