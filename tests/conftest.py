"""Shared by all tests: helper modules that stand beside the tests can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("solvers", "rrf_design/planning"):  # small.py: random problems and the definition of a best plan
    sys.path.insert(0, str(Path(__file__).parent / folder))
