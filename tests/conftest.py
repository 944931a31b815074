"""Shared by all tests: helper modules that stand beside the tests can be imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

# small.py: random problems and the definition of a best plan; agreeing.py: problem files on which
# every verb must agree
for folder in ("solvers", "rrf_design/planning", "rrf_design"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
