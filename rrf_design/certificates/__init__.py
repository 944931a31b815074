"""What can be promised about a design, in a file that another program re-proves.

`certify` writes a certificate; `verify` re-proves it. Everything that `verify` needs is in `checker`, which imports nothing
of `solvers` and nothing of the rest of this package: the search for a proof is the checker's own; the format of the
record and the exact arithmetic stand there too, and issuing takes them from it. The other names are imported when first
used, so that the checker's process never loads what it doesn't need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Verification": "checker.verifier",
    "verify": "checker.verifier",
    "Certificate": "certificate",
    "certify": "issue",
    "Rung": "ladder",
    "Regime": "checker.regime",
    "NoiseKind": "checker.noise",
    "radius": "checker.noise",
    "Tolerances": "checker.errors",
    "Tail": "checker.errors",
    "Uncertainty": "uncertainty",
    "bootstrap_radius": "uncertainty",
    "concentration_radius": "uncertainty",
    "parser_radius": "uncertainty",
    "calibrate": "calibration",
    "read_calibration": "calibration",
    "LocalCertificate": "local",
    "local_certificate": "local",
    "curvature_bound": "local",
}

__all__ = [
    "Certificate",
    "LocalCertificate",
    "NoiseKind",
    "Regime",
    "Rung",
    "Tail",
    "Tolerances",
    "Uncertainty",
    "Verification",
    "bootstrap_radius",
    "calibrate",
    "certify",
    "concentration_radius",
    "curvature_bound",
    "local_certificate",
    "parser_radius",
    "radius",
    "read_calibration",
    "verify",
]

if TYPE_CHECKING:
    from rrf_design.certificates.calibration import calibrate, read_calibration
    from rrf_design.certificates.certificate import Certificate
    from rrf_design.certificates.checker.errors import Tail, Tolerances
    from rrf_design.certificates.checker.noise import NoiseKind, radius
    from rrf_design.certificates.checker.regime import Regime
    from rrf_design.certificates.checker.verifier import Verification, verify
    from rrf_design.certificates.issue import certify
    from rrf_design.certificates.ladder import Rung
    from rrf_design.certificates.local import LocalCertificate, curvature_bound, local_certificate
    from rrf_design.certificates.uncertainty import Uncertainty, bootstrap_radius, concentration_radius, parser_radius


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rrf_design.certificates' has no attribute {name!r}")
    value = getattr(import_module(f"rrf_design.certificates.{_HOME[name]}"), name)
    globals()[name] = value
    return value
