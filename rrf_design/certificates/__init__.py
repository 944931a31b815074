"""What can be promised about a design, in a file that another program re-proves.

`certify` writes a certificate; `verify` re-proves it. Everything that `verify` needs is in
`checker`, which imports nothing of `solvers` and nothing of the rest of this package: the search
for a proof is the checker's own; the format of the record and the exact arithmetic stand there too,
and issuing takes them from it. The other names are imported when first used, so that the checker's
process never loads what it doesn't need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rrf_design._lazy import lazy_names

_HOME = {
    "rrf_design.checker.verifier": "Verification verify",
    "rrf_design.certificates._issue": "Certificate certify",
    "rrf_design.certificates._ladder": "Rung",
    "rrf_design.checker.wording": "Regime",
    "rrf_design.checker.noise": "NoiseKind radius Tolerances Tail",
    "rrf_design.certificates._uncertainty": "Uncertainty bootstrap_radius concentration_radius parser_radius"
    " calibrate read_calibration",
    "rrf_design.certificates.local": "LocalCertificate local_certificate curvature_bound",
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
    from rrf_design.certificates._issue import Certificate, certify
    from rrf_design.certificates._ladder import Rung
    from rrf_design.certificates._uncertainty import (
        Uncertainty,
        bootstrap_radius,
        calibrate,
        concentration_radius,
        parser_radius,
        read_calibration,
    )
    from rrf_design.certificates.local import LocalCertificate, curvature_bound, local_certificate
    from rrf_design.checker.noise import NoiseKind, Tail, Tolerances, radius
    from rrf_design.checker.verifier import Verification, verify
    from rrf_design.checker.wording import Regime

__getattr__, __dir__ = lazy_names(__name__, _HOME)
