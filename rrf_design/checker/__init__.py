"""Re-proving a certificate: what `verify` needs, and nothing else.

This package imports the standard library, numpy, scipy, numba, flint and `rrf_design.errors`: no
solver, and nothing of the code that writes certificates. It could be shipped alone. Issuing imports
from here the form of the record and document, the exact arithmetic and the formulas of radii and
error bounds, and asks `prove_floor` before it claims a bound; so issuer and checker share those,
and the search that finds a margin shares nothing with the search that proves it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rrf_design.checker._forms import written
    from rrf_design.checker._steps import Check
    from rrf_design.checker.verifier import Verification, verify

__all__ = ["Check", "Verification", "verify", "written"]
_HOME = {"Check": "_steps", "Verification": "verifier", "verify": "verifier", "written": "_forms"}


def __getattr__(name: str) -> Any:
    """The verifier when it is asked for: whoever needs a radius or a record only doesn't wait for
    compilers.
    """
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
