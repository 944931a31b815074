"""Relaxations of γ that enumerate no supports: each value comes with the data another program can prove it from.

These are floating-point results. A `Relaxation` says what it suggests and carries the proof data (weights, a dual
matrix); whoever prints a bound proves it first, with the rounding paid for.
"""

from __future__ import annotations

from solvers.bounds.dominating import dominance
from solvers.bounds.integer_program import FrontEnd, mixed_integer
from solvers.bounds.result import Relaxation
from solvers.bounds.semidefinite_program import semidefinite

__all__ = ["FrontEnd", "Relaxation", "dominance", "mixed_integer", "semidefinite"]
