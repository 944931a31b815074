"""All verbs in one typer application. Verb modules import nothing heavy at the top."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup


class Verbs(TyperGroup):
    """All verbs; Ctrl-C in any of them tells the best bounds so far before the process ends with exit code 130."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            from rrf_design.cli.output import tell_interrupted

            tell_interrupted(stop)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The first paragraph of each verb's help, whole: a question cut off in the middle teaches nothing."""
        verbs = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, " ".join((verb.help or "").split("\n\n")[0].split())) for name, verb in verbs if verb is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = typer.Typer(
    cls=Verbs,
    context_settings={"max_content_width": 110},
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Which questions to ask a language model, and which answers to check, so that wrong answers can't hide.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from rrf_design import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


# Each module has `register(app)`, which adds its verb (or verbs). Order here is the order in --help.
VERBS = (
    "init",
    "margin",
    "explain",
    "plan",
    "frontier",
    "certify",
    "verify",
    "repair",
    "acquire",
    "runs",
    "parsers",
    "report",
    "demo",
    "scenario",
)

for verb in VERBS:
    import_module(f"rrf_design.cli.{verb}").register(app)
