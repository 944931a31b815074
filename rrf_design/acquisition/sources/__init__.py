"""Where an anchor's value comes from when it is bought (`source` of an anchor in the problem file).

    source = "value"                                     the value in the file, revealed on purchase (also: no source)
    source = "expression: (a + b) * 3"                   exact arithmetic over the node's variables
    source = { tests = [[1], [2]], expected = [1, 4] }   public tests; the node's own program is run on them as evidence
    source = { tests = [[1], [2]], reference = "def solve(n): ..." }   the same, expected by running a reference
    source = { verifier = "openai:NAME", prompt = "...", parser = "integer-last" }   a noisy anchor: declare its sigma
    source = "person" or { person = "What to look at" }  a review queue
    source = { command = ["program", "argument"] }       a program of yours, only when commands are allowed

One file per source; `registry` finds them by name.
"""

from __future__ import annotations

from rrf_design.acquisition.sources.base import (
    NOTHING,
    Asked,
    Attempted,
    Fetched,
    Place,
    Source,
    Toolbox,
    Unreachable,
    ask,
    refuse_unanswered,
)
from rrf_design.acquisition.sources.calibration import VerifierCalibration, calibrate
from rrf_design.acquisition.sources.registry import SOURCES, build, source_class

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
