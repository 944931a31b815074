"""The paper's experiments, the benchmarks, and families of problems with known answers: one small module each.

A scenario is a module `scenarios/some_name.py` that ends with one constant

    SCENARIO = Scenario(
        name="some-name",                       # the module's name with hyphens
        question="What does it find out?",
        full={"seeds": 40, "seed": 0},          # parameters of the published run
        quick={"seeds": 4},                     # what CI changes of them: seconds, not minutes
        expected=(Expectation("key", "what must hold, written down before the run"),),
        parts=parts,                            # (context) -> list of small JSON-able mappings: the units of work
        run=run,                                # (context, part) -> JSON-able value: rows, usually a list of dicts
        report=report,                          # (context, done) -> ScenarioOutcome: tables, figures, verdicts, notes
    )

plus one line in `scenarios.registry.NAMES`. The runner does the rest: it runs the parts (in processes when `--jobs` says
so and the scenario is not `serial`), writes every finished part to a journal at once (so that `--resume` skips it), and
makes CSV, JSON, SVG, one HTML and one Markdown page and the index from what `report` returns. `report` only looks at what
the parts returned, so pages can be made again without running anything. Every expectation gets exactly one verdict;
violations are published like everything else. `parts`, `run` and `report` are plain functions at module level, import heavy
things inside, and use only the public API of `rrf_design` and `solvers`.

Benchmarks set `serial=True`, measure with `scenarios.timing.side_by_side` (two callables in one process, alternating,
median of the ratios) and publish with `scenarios.timing.benchmark_table`, whose columns are the same everywhere.
`scenarios.plots` draws the usual figures.
"""

from __future__ import annotations

from scenarios.base import (
    ConditionStatus,
    ConditionVerdict,
    Context,
    Done,
    Expectation,
    Figure,
    Scenario,
    ScenarioOutcome,
    Table,
)
from scenarios.registry import get, names

__all__ = [
    "ConditionStatus",
    "ConditionVerdict",
    "Context",
    "Done",
    "Expectation",
    "Figure",
    "Scenario",
    "ScenarioOutcome",
    "Table",
    "get",
    "names",
]
