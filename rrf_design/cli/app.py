"""All verbs in one typer application.

A verb's module is imported when the verb is called, so that `--help` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup


class _Verb(NamedTuple):
    """Where a verb lives, and its line in `rrf-design --help`: the first paragraph of its own help
    (a test says so).
    """

    module: str
    line: str


# A verb is the function NAME_verb of its module, or the module's `group` of several.
VERBS = {
    "init": _Verb(
        "init",
        "Write a recipe for a table and a question, or a commented start for a common situation; without one, list"
        " them.",
    ),
    "compile": _Verb("compile", "Print the long form of a recipe, or the whole problem of one of its items."),
    "suggest": _Verb(
        "suggest", "Propose other ways of asking a recipe's questions, with price and reason, as entries on sale."
    ),
    "reword": _Verb(
        "suggest", "Have a model write other wordings of a recipe's questions, once, into a file for review."
    ),
    "import": _Verb(
        "imports", "Read answers that exist already from another tool's log into rows that repair and acquire take."
    ),
    "margin": _Verb("margin", "How observable is a design: its margin γ_k, and the witness that is hardest to see."),
    "explain": _Verb(
        "explain",
        "Why is the margin zero, or small: who doesn't see the witness, and the purchases that would mend it.",
    ),
    "plan": _Verb("plan", "What should I buy: the largest margin for a budget, or the cheapest design for a target."),
    "frontier": _Verb(
        "frontier", "How does the best margin grow with money: every cost at which a larger margin becomes possible."
    ),
    "certify": _Verb("certify", "Prove a lower bound on the margin, and write the proof down for anybody to check."),
    "verify": _Verb(
        "verify",
        "Prove a delivery, a policy, an audit or a certificate again, by code that shares nothing with what made it.",
    ),
    "repair": _Verb("repair", "Which responses were wrong, by how much, what they become, and how sure that is."),
    "estimate": _Verb("estimate", "Calls, tokens and money of a run over a table, before the first call."),
    "acquire": _Verb("acquire", "Run the loop, live: buy answers and checks until a stopping rule fires, then repair."),
    "deliver": _Verb(
        "deliver",
        "Hand over a table of which at most a share can be wrong: people look at the doubtful rows, then at random"
        " ones, until that is proven.",
    ),
    "pilot": _Verb(
        "pilot",
        "How should the table be run: the cheapest policy that is proven to keep the risk, on random items with known"
        " truth.",
    ),
    "audit": _Verb(
        "audit",
        "How many of the delivered values are wrong, at most: items drawn at random and checked, a bound that holds at"
        " any stop.",
    ),
    "measure": _Verb(
        "measure",
        "What labels say about answers, relations, repeats and judges: proposals for the recipe, with confidence.",
    ),
    "runs": _Verb("runs", "What have I run? Newest first."),
    "show": _Verb(
        "runs", "What did a run buy, and what came of it? Read from the journal; nothing is asked or bought."
    ),
    "cache": _Verb("cache", "Answers kept across runs: list them, or forget them."),
    "parsers": _Verb(
        "parsers", "How much depends on the parser: read the same answers with several, and see where they part."
    ),
    "report": _Verb("report", "Write one self-contained HTML page that works offline and prints well."),
    "studio": _Verb("studio", "Look at documents, tables and runs in a browser, and let people answer what is open."),
    "demo": _Verb(
        "demo",
        "Ask a very small model easy questions in several wordings, and find out which answers are wrong.",
    ),
    "scenario": _Verb("scenario", "Reproduce the paper's experiments, and more."),
}

FIRST = "From a table to one that may be handed over"
GROUPS = {
    FIRST: "init estimate deliver studio verify",
    "Recipes and answers": "compile suggest reword import parsers",
    "The parts of a delivery": "repair acquire pilot audit measure",
    "What a design can promise": "margin explain plan frontier certify",
    "Runs and pages": "runs show report cache",
    "Examples": "demo scenario",
}
"""The order in --help: the first group with what its verbs do, the others by name; --help-all says
it of all. A verb of no group stands last.
"""
START = """Start here, with a table of yours (or one of ours: rrf-design init documents):

\b
  rrf-design init --from invoices.csv --ask "Gross total of {{ text }}?" -o invoices
  rrf-design estimate invoices/rrf.toml           what it will take, before the first call
  rrf-design deliver invoices/rrf.toml --risk 5% -o delivered.csv -o proof.json
  rrf-design verify proof.json --delivered delivered.csv
  rrf-design studio                               a page to look at it, and to answer what is open

--help-all lists every verb with what it does. Every verb has --help with an example, and --json for programs."""


class _Verbs(TyperGroup):
    """All verbs; Ctrl-C in any of them tells the best bounds so far before the process ends with
    exit code 130.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for _, names in _grouped() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            for known in VERBS:  # so that the nearest of all can be suggested
                self.get_command(ctx, known)
            return None
        if cmd_name not in self.commands:
            module = import_module(f"rrf_design.cli.{VERBS[cmd_name].module}")
            local = typer.Typer(rich_markup_mode=None)
            if group := getattr(module, "group", None):
                local.add_typer(group, name=cmd_name)
            else:
                from rrf_design.cli._options import flattened

                local.command(cmd_name)(flattened(getattr(module, f"{cmd_name}_verb")))
            self.commands.update(typer.main.get_group(local).commands)
            _let_values_be_left_out(self.commands[cmd_name])
        return self.commands[cmd_name]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            from rrf_design.cli.output import tell_interrupted

            tell_interrupted(stop)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each verb's line, whole: a question cut off in the middle teaches nothing."""
        groups = _grouped()
        every = ctx.meta.get(EVERY, False)
        for title, names in groups if every else groups[:1]:
            with formatter.section(title):
                formatter.write_dl([(name, VERBS[name].line) for name in names])
        if not every:
            with formatter.section("More verbs"):
                formatter.write_dl([(title, ", ".join(names)) for title, names in groups[1:]])


EVERY = "rrf_design.every_verb"


def _grouped() -> list[tuple[str, list[str]]]:
    """The verbs under their titles."""
    groups = [(title, names.split()) for title, names in GROUPS.items()]
    placed = {name for _, names in groups for name in names}
    others = [name for name in VERBS if name not in placed]
    return [*groups, ("Others", others)] if others else groups


def _let_values_be_left_out(command: Any) -> None:
    """Options whose metavar is [RUN] mean the last run where no value follows."""
    names = {name for one in command.params if one.metavar == "[RUN]" for name in one.opts}
    if not names:
        return
    parse = command.parse_args

    def completed(context: Any, words: list[str]) -> Any:
        found: list[str] = []
        for word, following in zip(words, [*words[1:], "-"], strict=True):
            found += [word, "last"] if word in names and following.startswith("-") else [word]
        return parse(context, found)

    command.parse_args = completed


app = typer.Typer(
    cls=_Verbs,
    context_settings={"max_content_width": 110},
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Which questions to ask a language model, and which answers to check, so that wrong answers can't hide.",
    epilog=START,
)


def _version(wanted: bool) -> None:
    if wanted:
        from rrf_design import __version__

        typer.echo(__version__)
        raise typer.Exit


def _every_verb(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta[EVERY] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
    help_all: Annotated[
        bool, typer.Option("--help-all", help="Every verb, and stop.", is_eager=True, callback=_every_verb)
    ] = False,
) -> None:
    pass
