"""rrf-design verify: does the promise hold?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli import _options as options
from rrf_design.cli.output import Printer, note, say, table
from rrf_design.documents import kind_of, read, write_junit
from rrf_design.errors import InputError, Refused


@dataclass(frozen=True, slots=True)
class _Proof:
    """What came of proving a document again, and how it is told."""

    fault: str | None
    found: str
    trusted: str
    document: dict[str, Any]
    checks: Sequence[Any] = ()
    remark: str = ""
    """Said on standard error beside it."""

    def describe(self, *, quiet: bool) -> None:
        if self.checks:
            table("", ["checked", "found"], [(check.name, check.detail) for check in self.checks])
        say(f"valid: {self.found}" if self.fault is None else f"REFUSED: {self.fault}")
        if self.fault is None:
            say(f"Taken on trust: {self.trusted}.")
        if self.remark and not quiet:
            note(self.remark)


def verify_verb(
    certificate: Annotated[Path, typer.Argument(help="The document to prove again.", show_default=False)],
    require: Annotated[
        float | None, typer.Option("--require", help="Also refuse a certificate that proves less than this margin.")
    ] = None,
    delivered: Annotated[
        Path | None,
        typer.Option("--delivered", help="Of an audit or a delivery: also refuse it unless this is its table."),
    ] = None,
    junit: options.Junit = None,
    time_limit: options.TimeLimit = None,
    *,
    printer: Printer,
) -> int:
    """Prove a delivery, a policy, an audit or a certificate again, by code that shares nothing with
    what made it.

    Of a delivery, a policy and an audit: the draw, every count, every test. Of a certificate: the
    margin, from its operator alone, and every other claim.

    Example: rrf-design verify certificate.json
    """
    kind = _kind(certificate)
    if kind is not None and require is not None:
        raise InputError("--require is a margin; policies, audits and deliveries have none")
    if delivered is not None and kind not in ("rrf-audit", "rrf-delivered"):
        what = "a policy" if kind else "no audit"
        raise InputError(f"--delivered is the file that an audit speaks of; {certificate.name} is {what}")
    if kind is None:
        proof = _certificate(certificate, require, time_limit, printer)
    else:
        proof = _promise(certificate, kind, delivered)
    if junit is not None:
        cases = [(check.name, check.seconds, None) for check in proof.checks]
        write_junit(junit, "rrf-design verify", [*cases, (certificate.name, 0.0, proof.fault)])
    printer.result(proof.document, lambda: proof.describe(quiet=printer.quiet))
    return 0 if proof.fault is None else 1


def _certificate(path: Path, require: float | None, time_limit: float | None, printer: Printer) -> _Proof:
    from rrf_design.checker import verify

    with printer.progress("verification") as progress:
        result = verify(path, time_limit=time_limit, progress=progress)
    fault = None if result.valid else result.reason
    if fault is None and require is not None and (result.robust_lower or 0.0) < require:
        fault = f"required {require!r}, proven {result.robust_lower!r}"
    document = {**result.to_json(), "reason": fault or result.reason, "valid": fault is None}
    words = f"γ ≥ {result.gamma_lower!r} re-proved"
    return _Proof(fault, words, result.taken_on_trust, document, result.checks)


PROMISES = ("rrf-policy", "rrf-audit", "rrf-delivered")
CERTIFICATE = "rrf-certificate"


def _kind(path: Path) -> str | None:
    """The format of a document about a whole data set; None for certificates of designs, and for
    damaged documents, which the checker refuses.

    InputError for what is no document that carries a proof.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file")
    try:
        kind = kind_of(read(path))
    except InputError:
        if not path.is_file() or _names_a_proof(path):
            return None
        kind = None
    if kind in PROMISES:
        return kind
    if kind == CERTIFICATE:
        return None
    what = "no document of rrf-design" if kind is None else f"a document {kind!r:.60}, which carries no proof"
    instead = ": verify its policy, or an audit of it" if kind in ("rrf-policy-run", "rrf-delivery", "rrf-run") else ""
    raise InputError(f"{path}: {what}{instead}; verify takes certificates, policies, audits and deliveries")


def _names_a_proof(path: Path) -> bool:
    """Whether a file that can't be read begins like a document that carries a proof."""
    with path.open("rb") as stream:
        head = stream.read(HEAD)
    return any(name.encode() in head for name in (*PROMISES, CERTIFICATE))


HEAD = 1 << 12
"""Bytes; the format stands first in what is written here."""


def _promise(path: Path, kind: str, delivered: Path | None) -> _Proof:
    """A policy or an audit, every draw, count and test of it redone."""
    from rrf_design.checker.looks import check_looks
    from rrf_design.checker.promise_words import policy_words
    from rrf_design.checker.promises import prove_policy

    fault, found, trusted, beside, document = None, "", "", None, {}
    try:
        document = read(path)
        if kind == "rrf-policy":
            policy = prove_policy(document)
            looks = check_looks(policy.document)
            found = f"{policy.tests} tests on {policy.drawn} drawn items redone, {looks}: {policy.sentence}"
            trusted = policy_words(document["seed"], looks=int((document.get("looks") or {"count": 1})["count"]))
        elif kind == "rrf-delivered":
            found, trusted, beside = _verify_delivery(document, delivered)
        else:
            found, trusted, beside = _verify_audit(path, document, delivered)
    except Refused as error:
        fault = str(error)
    told = {"valid": fault is None, "reason": fault or found, "format": kind, "taken_on_trust": trusted}
    told |= {"gamma_lower": None} | ({} if kind == "rrf-policy" else {"delivered": beside})
    changed = f"{document.get('table')!r:.80} beside it is not what was audited: it was changed, or is another file"
    return _Proof(fault, found, trusted, told, remark=changed if fault is None and beside == CHANGED else "")


SAME, CHANGED = "same", "changed"


def _verify_delivery(document: Any, delivered: Path | None) -> tuple[str, str, str | None]:
    """What was redone, what is taken on trust, and whether the table was compared."""
    from rrf_design.checker.delivery import prove_delivery
    from rrf_design.checker.promise_words import delivery_words
    from rrf_design.promises import read_cells

    proven = prove_delivery(document)
    beside = ""
    if delivered is not None:
        prove_delivery(document, read_cells(delivered, document["columns"]))
        beside = f"; {delivered.name} is the table that was handed over"
    found = f"{proven.drawn:,} random draws redone{beside}: {proven.sentence}"
    return found, delivery_words(document["seed"], same=delivered is not None), None if delivered is None else SAME


def _verify_audit(path: Path, document: Any, delivered: Path | None) -> tuple[str, str, str | None]:
    """What was redone, what is taken on trust, and whether the delivered file is what was audited:
    the one that is given, else the one of that name beside the certificate.
    """
    from rrf_design.checker.promise_words import audit_words, percent
    from rrf_design.checker.promises import prove_audit

    audit = prove_audit(document)
    found = (
        f"{audit.drawn:,} draws redone: at most {audit.bound:,} of {audit.population:,} are wrong, confidence"
        f" {percent(audit.confidence)}"
    )
    seed = document["record"]["seed"]
    name = document["table"]
    near = path.parent / name if Path(name).name == name else None
    if delivered is None and (near is None or not near.is_file()):
        return found, audit_words(seed), None
    from rrf_design.promises import check_delivered, compared

    if delivered is not None:
        same = compared(check_delivered(document, delivered))
        return f"{found}; {delivered.name} is what was audited ({same})", audit_words(seed, same=True), SAME
    assert near is not None
    try:
        same = compared(check_delivered(document, near))
    except (InputError, Refused):
        return found, audit_words(seed), CHANGED
    return f"{found}; {name} beside it is what was audited ({same})", audit_words(seed, same=True), SAME
