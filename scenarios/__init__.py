"""The paper's experiments, the benchmarks, and families of problems with known answers: one module
or one small folder each.

A scenario is a module `scenarios/some_name.py` that ends with one constant,

    SCENARIO = Scenario.declared("some-name", parts, run, report)

    parts    context -> small JSON-able mappings: the units of work
    run      context, part -> JSON-able value, usually rows
    report   context, done -> Report: verdicts, tables, figures, notes

a line in `scenarios.registry.NAMES`, and a page `scenarios/protocols/some-name.md` that is written
before the run: the question, what is done, the parameters of the published run and of the quick
size that CI runs, the conditions that must hold, and what each table and picture shows.

The runner does the rest: it runs the parts (in processes when `--jobs` says so and the scenario is
not `serial`), writes every finished part to a journal at once (so that `--resume` skips it), and
makes CSV, JSON, SVG, one HTML and one Markdown page and the index from what `report` returns.
`report` begins with `context.page()` and hands its rows to that builder (`scenarios.kit.report`;
`scenarios.kit.rows` groups, sums and summarises them). It only looks at what the parts returned, so
pages can be made again without running anything. Every condition gets exactly one verdict;
violations are published like everything else. `parts`, `run` and `report` are plain functions at
module level and use only the public API of `rrf_design` and `solvers`. What scenarios share is in
`scenarios.kit`.

Benchmarks set `serial=True`, measure with `scenarios.kit.timing.side_by_side` (two callables in one
process, alternating, median of the ratios) and publish with `page.benchmark`, whose table has the
same columns everywhere.
"""

from __future__ import annotations

from scenarios.kit.report import ConditionStatus, ConditionVerdict, Figure, Report, Table
from scenarios.kit.scenario import Context, Done, Expectation, Scenario
from scenarios.registry import get, names

ScenarioOutcome = Report
"""What a report was called before it was put together step by step; scenarios of others use it."""

__all__ = [
    "ConditionStatus",
    "ConditionVerdict",
    "Context",
    "Done",
    "Expectation",
    "Figure",
    "Report",
    "Scenario",
    "ScenarioOutcome",
    "Table",
    "get",
    "names",
]
