"""Path-consistent typed fields with known truth, and the decoders' outcomes on them (paper, "Synthetic theorem-verification protocol")."""

from __future__ import annotations

from scenarios.synthetic.decoders import Repaired, calibrate, convex, exact
from scenarios.synthetic.field import Corruption, Field, complete, corrupt, generator, path, random_tree, sample_field
from scenarios.synthetic.margins import Measured, measure

__all__ = [
    "Corruption",
    "Field",
    "Measured",
    "Repaired",
    "calibrate",
    "complete",
    "convex",
    "corrupt",
    "exact",
    "generator",
    "measure",
    "path",
    "random_tree",
    "sample_field",
]
