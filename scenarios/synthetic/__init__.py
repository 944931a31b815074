"""Path-consistent typed fields with known truth, and the decoders' outcomes on them (paper, "Synthetic theorem-verification protocol")."""

from __future__ import annotations

from scenarios.synthetic.decoders import DecodedField, calibrate, convex, exact
from scenarios.synthetic.field import (
    Corruption,
    SyntheticField,
    complete,
    corrupt,
    generator,
    path,
    random_tree,
    sample_field,
)
from scenarios.synthetic.margins import Measured, measure

__all__ = [
    "Corruption",
    "DecodedField",
    "Measured",
    "SyntheticField",
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
