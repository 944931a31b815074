"""rrf-design init: a commented problem file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rrf_design.cli.output import AsJson, Quiet, print_json, say, table

SITUATIONS = {
    "paraphrase": "one question in several wordings, a calculator to check with",
    "units": "one quantity asked for in several units",
    "code": "one function asked for in several wordings, compared on test inputs",
    "claims": "claims and their negations, with people's labels on sale",
}


def register(app: typer.Typer) -> None:
    app.command("init")(init)


def init(
    situation: Annotated[
        str | None,
        typer.Argument(
            help="One of: " + ", ".join(SITUATIONS) + ".",
            show_default=False,
            autocompletion=lambda incomplete: [name for name in SITUATIONS if name.startswith(incomplete)],
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("problem.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented problem file for a common situation; without one, list them.

    Example: rrf-design init paraphrase -o problem.toml
    """
    from rrf_design.errors import InputError
    from rrf_design.files import suggestion, write_text

    if situation is None:
        if as_json:
            print_json({"situations": SITUATIONS})
        else:
            table("", ["situation", "what it is"], list(SITUATIONS.items()))
            say("Then: rrf-design init paraphrase -o problem.toml")
        raise typer.Exit(0)
    if situation not in SITUATIONS:
        raise InputError(
            f"init: no situation {situation!r}{suggestion(situation, SITUATIONS)} (known: {', '.join(SITUATIONS)})"
        )
    if out.exists() and not force:
        raise InputError(f"{out}: is there already; choose another name with --out, or overwrite it with --force")
    write_text(out, template(situation).replace(" FILE ", f" {out} "))
    if as_json:
        print_json({"file": str(out), "situation": situation})
    elif not quiet:
        say(f"Wrote {out}: {SITUATIONS[situation]}. Read it, then try: rrf-design explain {out}")


def template(situation: str) -> str:
    """The text of a template."""
    from importlib.resources import files

    return files("rrf_design").joinpath("templates", f"{situation}.toml").read_text(encoding="utf-8")
