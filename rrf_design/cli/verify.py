"""rrf-design verify: does the promise hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli.options import AsJson, Quiet, TimeLimit
from rrf_design.cli.output import note, print_json, progress_bar, say, table


def verify_verb(
    certificate: Annotated[Path, typer.Argument(help="Certificate to re-prove.", show_default=False)],
    require: Annotated[
        float | None, typer.Option("--require", help="Also refuse a certificate that proves less than this margin.")
    ] = None,
    delivered: Annotated[
        Path | None,
        typer.Option("--delivered", help="Of an audit: also refuse it unless this file is what was audited."),
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the outcome as JUnit XML.")] = None,
    time_limit: TimeLimit = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Re-prove a certificate from its operator alone, by a search that shares nothing with the one
    that found it.

    A policy of `pilot` and a certificate of `audit` are re-proved too: the draw, every count, every
    test.

    Example: rrf-design verify certificate.json
    """
    from rrf_design.errors import InputError

    kind = _promise_kind(certificate)
    if kind is not None:
        if require is not None:
            raise InputError("--require is a margin; policies and audits have none")
        _verify_promise(certificate, kind, delivered, junit=junit, as_json=as_json)
    if delivered is not None:
        raise InputError(f"--delivered is the file that an audit speaks of; {certificate.name} is no audit")
    from rrf_design.checker import verify as prove

    with progress_bar("verification", quiet=quiet) as progress:
        result = prove(certificate, time_limit=time_limit, progress=progress)
    fault = None if result.valid else result.reason
    if fault is None and require is not None and (result.robust_lower or 0.0) < require:
        fault = f"required {require!r}, proven {result.robust_lower!r}"
    if junit is not None:
        from rrf_design.documents import write_junit

        cases = [(check.name, check.seconds, None) for check in result.checks]
        last = (certificate.name, 0.0, fault)
        write_junit(junit, "rrf-design verify", [*cases, last])
    if as_json:
        print_json({**result.to_json(), "reason": fault or result.reason, "valid": fault is None})
    else:
        if result.checks:
            table("", ["checked", "found"], [(check.name, check.detail) for check in result.checks])
        say(f"valid: γ ≥ {result.gamma_lower!r} re-proved" if fault is None else f"REFUSED: {fault}")
        if fault is None:
            say(f"Taken on trust: {result.taken_on_trust}.")
        elif not result.checks and not quiet:
            note(
                "certificates, policies and audits carry proofs; the result of a run does not: verify its policy, or an"
                " audit of it"
            )
    raise typer.Exit(0 if fault is None else 1)


def _promise_kind(path: Path) -> str | None:
    """The format of a document about a whole data set; None for certificates of designs and for
    what can't be read, which its checker refuses.
    """
    from rrf_design.documents import kind_of, read
    from rrf_design.errors import InputError

    try:
        kind = kind_of(read(path))
    except InputError:
        return None
    return kind if kind in ("rrf-policy", "rrf-audit") else None


def _verify_promise(path: Path, kind: str, delivered: Path | None, *, junit: Path | None, as_json: bool) -> None:
    from rrf_design.checker.promise_words import policy_words
    from rrf_design.checker.promises import prove_policy
    from rrf_design.documents import read
    from rrf_design.errors import InputError, Refused
    from rrf_design.promises.looks import check_looks

    if delivered is not None and kind != "rrf-audit":
        raise InputError(f"--delivered is the file that an audit speaks of; {path.name} is a policy")
    fault, found, trusted, beside = None, "", "", None
    try:
        document = read(path)
        if kind == "rrf-policy":
            policy = prove_policy(document)
            looks = check_looks(policy.document)
            found = f"{policy.tests} tests on {policy.drawn} drawn items redone, {looks}: {policy.sentence}"
            trusted = policy_words(document["seed"], looks=int((document.get("looks") or {"count": 1})["count"]))
        else:
            found, trusted, beside = _verify_audit(path, document, delivered)
    except Refused as error:
        fault = str(error)
    if junit is not None:
        from rrf_design.documents import write_junit

        write_junit(junit, "rrf-design verify", [(path.name, 0.0, fault)])
    if as_json:
        print_json(
            {
                "valid": fault is None,
                "reason": fault or found,
                "format": kind,
                "taken_on_trust": trusted,
                "gamma_lower": None,
                **({} if kind == "rrf-policy" else {"delivered": beside}),
            }
        )
    else:
        say(f"REFUSED: {fault}" if fault is not None else f"valid: {found}")
        if fault is None:
            say(f"Taken on trust: {trusted}.")
            if beside == CHANGED:
                note(f"{document['table']!r:.80} beside it is not what was audited: it was changed, or is another file")
    raise typer.Exit(0 if fault is None else 1)


SAME, CHANGED = "same", "changed"


def _verify_audit(path: Path, document: Any, delivered: Path | None) -> tuple[str, str, str | None]:
    """What was redone, what is taken on trust, and whether the delivered file is what was audited:
    the one that is given, else the one of that name beside the certificate.
    """
    from rrf_design.checker.promise_words import audit_words, percent
    from rrf_design.checker.promises import prove_audit
    from rrf_design.errors import InputError, Refused

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
    from rrf_design.promises.audits import check_delivered, compared

    if delivered is not None:
        same = compared(check_delivered(document, delivered))
        return f"{found}; {delivered.name} is what was audited ({same})", audit_words(seed, same=True), SAME
    assert near is not None
    try:
        same = compared(check_delivered(document, near))
    except (InputError, Refused):
        return found, audit_words(seed), CHANGED
    return f"{found}; {name} beside it is what was audited ({same})", audit_words(seed, same=True), SAME
