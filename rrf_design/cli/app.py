"""All verbs in one typer application. Verb modules import nothing heavy at the top."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Which questions to ask a language model, and which answers to check, so that wrong answers can't hide.",
)


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    if version:
        from rrf_design import __version__

        typer.echo(__version__)
        raise typer.Exit


# Each module has `register(app)`, which adds its verb (or verbs). Order here is the order in --help.
VERBS = ("init", "margin", "explain", "report", "scenario")

for verb in VERBS:
    import_module(f"rrf_design.cli.{verb}").register(app)
