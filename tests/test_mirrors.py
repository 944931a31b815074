"""Tests mirror the source: a module has a test file of its name, in the folder of its name."""

from __future__ import annotations

from pathlib import Path

HOUSE = Path(__file__).parents[1]

WITHOUT = """
rrf_design/acquisition/classes rrf_design/acquisition/header
rrf_design/acquisition/locks rrf_design/acquisition/sources/base rrf_design/acquisition/sources/calibration
rrf_design/acquisition/sources/command rrf_design/acquisition/sources/computed rrf_design/acquisition/sources/labelled
rrf_design/acquisition/sources/person rrf_design/acquisition/sources/registry rrf_design/acquisition/sources/revealed
rrf_design/acquisition/sources/tested rrf_design/acquisition/sources/verifier rrf_design/cli/app rrf_design/cli/audit
rrf_design/cli/estimate rrf_design/cli/live_models rrf_design/cli/under_policy rrf_design/handover/bench
rrf_design/handover/delivered rrf_design/handover/moulds rrf_design/handover/readings rrf_design/handover/rows
rrf_design/handover/spool rrf_design/planning/arena rrf_design/planning/contract rrf_design/planning/local
rrf_design/planning/outcome rrf_design/planning/proof/bounds rrf_design/planning/proof/cuts
rrf_design/planning/proof/hull_pool rrf_design/planning/proof/master rrf_design/planning/proof/weak
rrf_design/planning/reaching rrf_design/planning/supports rrf_design/planning/tracked
rrf_design/promises/measuring rrf_design/promises/reviews rrf_design/responses/imports/archive
rrf_design/responses/imports/inspect_logs rrf_design/responses/imports/lm_eval
rrf_design/responses/imports/openai_batch rrf_design/responses/imports/promptfoo rrf_design/responses/imports/records
rrf_design/responses/reviewed rrf_design/responses/sandbox/benchmark rrf_design/responses/sandbox/records
rrf_design/responses/sandbox/worker rrf_design/responses/sandbox/zygote rrf_design/responses/statuses
solvers/bounds/result solvers/decoding/result solvers/kernels/block solvers/kernels/dense solvers/kernels/emit
solvers/kernels/exchange solvers/kernels/gather solvers/kernels/growth solvers/kernels/linalg solvers/kernels/sparse
solvers/kernels/sparse_block solvers/kernels/suspects
rrf_design/certificates/checker/sampled
"""
"""Modules that are tested through others only. The list gets shorter: nothing is added to it."""


def modules_without_a_test() -> set[str]:
    found = set()
    for folder in ("rrf_design", "solvers"):
        for path in (HOUSE / folder).rglob("*.py"):
            module = path.relative_to(HOUSE)
            mirror = HOUSE / "tests" / module.parent / f"test_{path.stem.lstrip('_')}.py"
            if path.name != "__init__.py" and not mirror.exists():
                found.add(str(module.with_suffix("")))
    return found


def test_every_module_has_its_test_but_for_a_list_that_gets_shorter() -> None:
    assert modules_without_a_test() - set(WITHOUT.split()) == set()
