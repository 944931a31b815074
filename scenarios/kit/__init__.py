"""What scenarios share: one import for what each of them needs, and families of problems.

scenario        what a scenario is, and what was written down before its run
report          the one builder of pages: verdicts, tables, pictures, notes
rows            rows from finished parts, counted, grouped and summarised
runner, pages   running one, resuming it, and writing its data and pages
plots           the usual pictures as SVG text
association     rank association, permutations, bootstrap, prediction
timing          two pieces of work side by side, and the table of a benchmark
typed_fields    the paper's synthetic fields with known truth, and decoders on them
hostile_fields, large_supports   families of fields that are hard on floating point, or large
designs         the ten operator designs on four nodes
exact_elimination, sealing       oracles: exact semidefiniteness; digests for forged documents
rough_server    a chat server that behaves as badly as real ones do
"""

from __future__ import annotations

from scenarios.kit.report import ConditionStatus, ConditionVerdict, Figure, Report, Table
from scenarios.kit.rows import Row, Rows
from scenarios.kit.scenario import Context, Done, Part, Scenario
from scenarios.kit.timing import Benchmark, seconds, side_by_side, single_threaded

__all__ = [
    "Benchmark",
    "ConditionStatus",
    "ConditionVerdict",
    "Context",
    "Done",
    "Figure",
    "Part",
    "Report",
    "Row",
    "Rows",
    "Scenario",
    "Table",
    "seconds",
    "side_by_side",
    "single_threaded",
]
