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
    from rrf_design.checker._protection import ProtectionClaim, prove_protection
    from rrf_design.checker._steps import Check
    from rrf_design.checker._tails import PromiseScope, at_most, audit_bound, tolerated
    from rrf_design.checker.verifier import Verification, verify

__all__ = [
    "Check",
    "PromiseScope",
    "ProtectionClaim",
    "Verification",
    "at_most",
    "audit_bound",
    "prove_protection",
    "tolerated",
    "verify",
    "written",
]
_HOMES = {
    "_forms": "written",
    "_protection": "ProtectionClaim prove_protection",
    "_steps": "Check",
    "_tails": "PromiseScope at_most audit_bound tolerated",
    "verifier": "Verification verify",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """The verifier when it is asked for: whoever needs a radius or a record only doesn't wait for
    compilers.
    """
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
