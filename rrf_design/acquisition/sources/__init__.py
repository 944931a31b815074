"""Where an anchor's value comes from when it is bought (`source` of an anchor in the problem file).

`source = "value"`, or none: the value in the file, revealed on purchase.
`source = "expression: (a + b) * 3"`: exact arithmetic over the node's variables.
`source = { tests = [[1], [2]], expected = [1, 4] }`: public tests; the node's own program is run on
them as evidence. With `reference = "def solve(n): ..."` running that says what is expected.
`source = { verifier = "openai:NAME", prompt = "...", parser = "integer-last" }`: a noisy anchor,
which declares its sigma.
`source = "person"` or `{ person = "What to look at" }`: a review queue.
`source = { command = ["program", "argument"] }`: a program of yours, where commands are allowed.

A new source is a class (`base.Source`) and a line in `base.SOURCES`.
"""

from __future__ import annotations

from rrf_design.acquisition.sources.base import (
    NOTHING,
    SOURCES,
    Asked,
    Attempted,
    Fetched,
    Place,
    Source,
    Toolbox,
    Unreachable,
    ask,
    build,
    refuse_unanswered,
    source_class,
)
from rrf_design.acquisition.sources.calibration import VerifierCalibration, calibrate

__all__ = [
    "NOTHING",
    "SOURCES",
    "Asked",
    "Attempted",
    "Fetched",
    "Place",
    "Source",
    "Toolbox",
    "Unreachable",
    "VerifierCalibration",
    "ask",
    "build",
    "calibrate",
    "refuse_unanswered",
    "source_class",
]
