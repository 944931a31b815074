"""rrf-design verify: does the promise hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rrf_design.cli.output import AsJson, Quiet, TimeLimit, print_json, progress_bar, say, table


def register(app: typer.Typer) -> None:
    app.command("verify")(verify_verb)


def verify_verb(
    certificate: Annotated[Path, typer.Argument(help="Certificate to re-prove.", show_default=False)],
    require: Annotated[
        float | None, typer.Option("--require", help="Also refuse a certificate that proves less than this margin.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the outcome as JUnit XML.")] = None,
    time_limit: TimeLimit = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Re-prove a certificate from its operator alone, by a search that shares nothing with the one that found it.

    A policy of `pilot` and a certificate of `audit` are re-proved too: the draw, every count, every test.

    Example: rrf-design verify certificate.json
    """
    from rrf_design.certificates.checker import verify as prove

    kind = _promise_kind(certificate)
    if kind is not None:
        _verify_promise(certificate, kind, require=require, junit=junit, as_json=as_json)
    with progress_bar("verification", quiet=quiet) as progress:
        result = prove(certificate, time_limit=time_limit, progress=progress)
    fault = None if result.valid else result.reason
    if fault is None and require is not None and (result.robust_lower or 0.0) < require:
        fault = f"required {require!r}, proven {result.robust_lower!r}"
    if junit is not None:
        from rrf_design.documents.junit import write_junit

        cases = [(check.name, check.seconds, None) for check in result.checks]
        last = (certificate.name, 0.0, fault)
        write_junit(junit, "rrf-design verify", [*cases, last])
    if as_json:
        print_json({**result.to_json(), "reason": fault or result.reason, "valid": fault is None})
    else:
        table("", ["checked", "found"], [(check.name, check.detail) for check in result.checks])
        say(f"valid: γ ≥ {result.gamma_lower!r} re-proved" if fault is None else f"REFUSED: {fault}")
        if fault is None:
            say(f"Taken on trust: {result.taken_on_trust}.")
    raise typer.Exit(0 if fault is None else 1)


def _promise_kind(path: Path) -> str | None:
    """The format of a document about a whole data set; None for certificates of designs and for what can't be read, which its checker refuses."""
    from rrf_design.documents import kind_of, read
    from rrf_design.errors import InputError

    try:
        kind = kind_of(read(path))
    except InputError:
        return None
    return kind if kind in ("rrf-policy", "rrf-audit") else None


def _seed(seed: int) -> str:
    """The seed that nobody chose leaves least to trust."""
    return f"seed {seed}{', the default' if seed == 0 else ', which somebody chose'}"


def _verify_promise(path: Path, kind: str, *, require: float | None, junit: Path | None, as_json: bool) -> None:
    from rrf_design.documents import read
    from rrf_design.errors import InputError, Refused
    from rrf_design.promises import prove_audit_document, prove_policy
    from rrf_design.promises.policy_forms import audit_words, policy_words

    if require is not None:
        raise InputError("--require is a margin; policies and audits have none")
    fault, found, trusted = None, "", ""
    try:
        document = read(path)
        if kind == "rrf-policy":
            policy = prove_policy(document)
            found = f"{len(policy.choice.policies)} tests on {policy.choice.scope.piloted} drawn items redone: {policy.sentence}"
            trusted = policy_words(_seed(document["seed"]))
        else:
            audit = prove_audit_document(document)
            found = f"{audit.drawn} draws redone: at most {audit.bound} of {audit.population} are wrong, confidence {float(audit.confidence)!r}"
            trusted = audit_words(document["record"]["seed"])
    except Refused as error:
        fault = str(error)
    if junit is not None:
        from rrf_design.documents.junit import write_junit

        write_junit(junit, "rrf-design verify", [(path.name, 0.0, fault)])
    if as_json:
        print_json(
            {
                "valid": fault is None,
                "reason": fault or found,
                "format": kind,
                "taken_on_trust": trusted,
                "gamma_lower": None,
            }
        )
    else:
        say(f"REFUSED: {fault}" if fault is not None else f"valid: {found}")
        if fault is None:
            say(f"Taken on trust: {trusted}.")
    raise typer.Exit(0 if fault is None else 1)
