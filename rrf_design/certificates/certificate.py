"""A certificate in memory: the document, the operators it names, and how both are written."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rrf_design.certificates.record import OperatorRecord
from rrf_design.certificates.regime import Regime
from rrf_design.files import write_text


@dataclass(frozen=True)
class Certificate:
    """A certificate in memory. `document` is what is written; `record` the operator it speaks of.

    `bare` is the operator without whitening, where there is whitening; `verification_seconds` roughly what checking the
    certificate will take here (about as long as the search took; it does not stand in the document, which is the same
    for the same design).
    """

    document: dict[str, Any]
    record: OperatorRecord
    required: float | None = None
    path: Path | None = None
    bare: OperatorRecord | None = None
    verification_seconds: float | None = None

    @property
    def gamma_lower(self) -> float:
        return float(self.document["margin"]["lower"])

    @property
    def gamma_upper(self) -> float:
        return float(self.document["margin"]["upper"])

    @property
    def robust_lower(self) -> float:
        return float(self.document["uncertainty"]["robust_lower"])

    @property
    def error_bound(self) -> float | None:
        bound = self.document["error"]["bound"]
        return None if bound is None else float(bound)

    @property
    def regime(self) -> Regime:
        return Regime(self.document["regime"]["name"])

    @property
    def certificate(self) -> Path | dict[str, Any]:
        """Where it was written, or the document."""
        return self.document if self.path is None else self.path

    @property
    def met(self) -> bool:
        """Is the required margin proven, uncertainty included? True where nothing is required."""
        return self.required is None or self.robust_lower >= self.required

    def to_json(self) -> dict[str, Any]:
        return {
            "gamma_lower": self.gamma_lower,
            "gamma_upper": self.gamma_upper,
            "robust_lower": self.robust_lower,
            "error_bound": self.error_bound,
            "regime": str(self.regime),
            "certificate": str(self.path) if self.path is not None else self.document,
            "k": self.document["k"],
            "rung": self.document["margin"]["rung"],
            "status": self.document["margin"]["status"],
            "required": self.required,
            "met": self.met,
            "verification_seconds": self.verification_seconds,
        }

    def save(self, path: str | os.PathLike[str]) -> Certificate:
        """Write the document, and a large operator beside it."""
        path = Path(path)
        claims = [(self.document["operator"], self.record)]
        if self.bare is not None:
            claims.append((self.document["unwhitened"]["operator"], self.bare))
        beside = {path.parent / claim["file"]: record for claim, record in claims if claim["storage"] == "file"}
        new = [place for place in beside if not place.exists()]
        try:
            for place, record in beside.items():
                record.save(place)
            write_text(path, json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        except BaseException:  # Ctrl-C too: no operator without its certificate
            for place in new:
                place.unlink(missing_ok=True)
            raise
        return replace(self, path=path)
