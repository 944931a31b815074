"""A certificate in memory: the document, the operators it names, and how both are written."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rrf_design.certificates.checker.errors import promised
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.certificates.checker.regime import Regime
from rrf_design.certificates.recording import save_record
from rrf_design.files import write_text
from rrf_design.goal import Standing, reaches


@dataclass(frozen=True)
class Certificate:
    """A certificate in memory. `document` is what is written; `record` the operator it speaks of.

    `verification_seconds` is roughly what checking the certificate will take here (about as long as the search took; it does
    not stand in the document, which is the same for the same design).
    """

    document: dict[str, Any]
    record: OperatorRecord
    required: float | None = None
    path: Path | None = None
    verification_seconds: float | None = None
    standing: Standing | None = None
    """The design held against the problem's goal; None for a certificate that was read from a file."""

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
        bound = promised(self.document["error"])
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
        """Is the required margin proven, uncertainty included, or else the problem's own goal? True where nothing is asked."""
        if self.required is not None:
            return reaches(self.robust_lower, self.required)
        return self.standing is None or not self.standing.goal.named or self.standing.reached

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
            **(
                {}
                if self.standing is None
                else {key: self.standing.to_json()[key] for key in ("wanted", "reached", "epsilon")}
            ),
            "rivals": self.document["rivals"],
            "verification_seconds": self.verification_seconds,
        }

    def save(self, path: str | os.PathLike[str]) -> Certificate:
        """Write the document, and a large operator beside it."""
        path = Path(path)
        claim = self.document["operator"]
        beside = path.parent / claim["file"] if claim["storage"] == "file" else None
        new = beside is not None and not beside.exists()
        try:
            if beside is not None:
                save_record(self.record, beside)
            write_text(path, json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        except BaseException:  # Ctrl-C too: no operator without its certificate
            if beside is not None and new:
                beside.unlink(missing_ok=True)
            raise
        return replace(self, path=path)
