"""rrf-design verify: does the promise hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rrf_design.cli.output import AsJson, Quiet, TimeLimit, print_json, progress_bar, say, table


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def verify(
    certificate: Annotated[Path, typer.Argument(help="Certificate to re-prove.", show_default=False)],
    require: Annotated[
        float | None, typer.Option("--require", help="Also refuse a certificate that proves less than this margin.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the outcome as JUnit XML.")] = None,
    time_limit: TimeLimit = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Re-prove a certificate from its operator alone, with none of the code that made it.

    Example: rrf-design verify certificate.json
    """
    from rrf_design.certificates.verify import verify as prove

    with progress_bar("verification", quiet=quiet) as progress:
        result = prove(certificate, time_limit=time_limit, progress=progress)
    fault = None if result.valid else result.reason
    if fault is None and require is not None and (result.robust_lower or 0.0) < require:
        fault = f"required {require!r}, proven {result.robust_lower!r}"
    if junit is not None:
        from rrf_design.cli.junit import write_junit

        cases = [(check.name, check.seconds, None) for check in result.checks]
        last = (certificate.name, 0.0, fault)
        write_junit(junit, "rrf-design verify", [*cases, last])
    if as_json:
        print_json({**result.to_json(), "reason": fault or result.reason, "valid": fault is None})
    else:
        table("", ["checked", "found"], [(check.name, check.detail) for check in result.checks])
        say(f"valid: γ ≥ {result.gamma_lower!r} re-proved" if fault is None else f"REFUSED: {fault}")
    raise typer.Exit(0 if fault is None else 1)
