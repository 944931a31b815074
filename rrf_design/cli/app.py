"""All verbs in one typer application.

A verb's module is imported when the verb is called, so that `--help` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup


class Verb(NamedTuple):
    """Where a verb lives, and its line in `rrf-design --help`: the first paragraph of its own help
    (a test says so).
    """

    module: str
    line: str


# Order here is the order in --help. A verb is the function NAME_verb of its module, or the module's
# `group` of several.
VERBS = {
    "init": Verb(
        "init",
        "Write a recipe for a table and a question, or a commented start for a common situation; without one, list"
        " them.",
    ),
    "compile": Verb("compile", "Print the long form of a recipe, or the whole problem of one of its items."),
    "reword": Verb(
        "reword", "Have a model write other wordings of a recipe's questions, once, into a file for review."
    ),
    "import": Verb(
        "imports", "Read answers that exist already from another tool's log into rows that repair and acquire take."
    ),
    "margin": Verb("margin", "How observable is a design: its margin γ_k, and the witness that is hardest to see."),
    "explain": Verb(
        "explain",
        "Why is the margin zero, or small: who doesn't see the witness, and the purchases that would mend it.",
    ),
    "plan": Verb("plan", "What should I buy: the largest margin for a budget, or the cheapest design for a target."),
    "frontier": Verb(
        "frontier", "How does the best margin grow with money: every cost at which a larger margin becomes possible."
    ),
    "certify": Verb("certify", "Prove a lower bound on the margin, and write the proof down for anybody to check."),
    "verify": Verb(
        "verify",
        "Re-prove a certificate from its operator alone, by a search that shares nothing with the one that found it.",
    ),
    "repair": Verb("repair", "Which responses were wrong, by how much, what they become, and how sure that is."),
    "estimate": Verb("estimate", "Calls, tokens and money of a run over a table, before the first call."),
    "acquire": Verb("acquire", "Run the loop, live: buy answers and checks until a stopping rule fires, then repair."),
    "deliver": Verb(
        "deliver",
        "Hand over a table of which at most a share can be wrong: people look at the doubtful rows, then at random"
        " ones, until that is proven.",
    ),
    "pilot": Verb(
        "pilot",
        "How should the table be run: the cheapest policy that is proven to keep the risk, on random items with known"
        " truth.",
    ),
    "audit": Verb(
        "audit",
        "How many of the delivered values are wrong, at most: items drawn at random and checked, a bound that holds at"
        " any stop.",
    ),
    "measure": Verb(
        "measure",
        "What labels say about answers, relations, repeats and judges: proposals for the recipe, with confidence.",
    ),
    "runs": Verb("runs", "What have I run? Newest first."),
    "show": Verb("runs", "What did a run buy, and what came of it? Read from the journal; nothing is asked or bought."),
    "cache": Verb("cache", "Answers kept across runs: list them, or forget them."),
    "parsers": Verb(
        "parsers", "How much depends on the parser: read the same answers with several, and see where they part."
    ),
    "report": Verb("report", "Write one self-contained HTML page that works offline and prints well."),
    "studio": Verb("studio", "Look at documents, tables and runs in a browser, and let people answer what is open."),
    "demo": Verb(
        "demo",
        "Ask a very small model easy questions in several wordings, and find out which answers are wrong.",
    ),
    "scenario": Verb("scenario", "Reproduce the paper's experiments, and more."),
}

START = """Start here:

\b
  rrf-design init paraphrase -o problem.toml      a commented problem file to edit
  rrf-design explain problem.toml                 why its margin is zero, and what would help
  rrf-design plan problem.toml -o plan.json       what to buy
  rrf-design certify problem.toml --plan plan.json -o certificate.json
  rrf-design report problem.toml -o design.html   a page to look at

Every verb has --help with an example, and --json for programs."""


class Verbs(TyperGroup):
    """All verbs; Ctrl-C in any of them tells the best bounds so far before the process ends with
    exit code 130.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

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
                from rrf_design.cli.options import flattened

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
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.line) for name, verb in VERBS.items()])


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
    cls=Verbs,
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


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass
