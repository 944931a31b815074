"""rrf-design init: a recipe for a table and a question; or a commented problem file, or a recipe
with its table and recorded answers, to start from.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from importlib.resources import files as resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli._options import BaseUrl
from rrf_design.cli.output import Printer, print_json, say, table
from rrf_design.documents import write_text
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.questions import Dataset

SITUATIONS = {
    "paraphrase": "one question in several wordings, a calculator to check with",
    "units": "one quantity asked for in several units",
    "code": "one function asked for in several wordings, compared on test inputs",
    "claims": "claims and their negations, with people's labels on sale",
}
"""Problem files."""
RECIPES = {
    "documents": "a table of documents: numbers read in several ways, a clerk for what stays in dispute",
    "invoices": "a table of documents: net, tax, total, date and vendor of each, from one question",
    "sums": "a table of word problems: scaled and shifted variants, and exact checks",
    "judges": "a table of comparisons: three judges in both orders, and people's labels",
    "programs": "a table of functions to write: several wordings, and tests",
    "statements": "a table of claims: each with its negation, and people to ask",
}
"""Folders with rrf.toml, a small table and recorded answers."""
KNOWN = {**SITUATIONS, **RECIPES}


def init_verb(
    situation: Annotated[
        str | None,
        typer.Argument(
            help="One of: " + ", ".join(KNOWN) + ".",
            show_default=False,
            autocompletion=lambda incomplete: [name for name in KNOWN if name.startswith(incomplete)],
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help=(
                "The file to write, problem.toml by default; of a recipe the folder, by default called like the"
                " table or the situation."
            ),
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A table, one item a row: write a recipe that asks --ask of every row."),
    ] = None,
    ask: Annotated[str | None, typer.Option("--ask", help="The question; it may name columns: {{ column }}.")] = None,
    choices: Annotated[str | None, typer.Option("--choices", help="The answer is one of these: A,B,C.")] = None,
    tolerance: Annotated[
        float | None, typer.Option("--tolerance", help="The answer is a number, and right if no farther off than this.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--id", help="The column that names a row, or none; guessed by default.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option("--gold", help="The column of the truth, or none; guessed by default.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Who will be asked; also writes two more wordings for review.")
    ] = None,
    base_url: BaseUrl = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    *,
    printer: Printer,
) -> None:
    """Write a recipe for a table and a question, or a commented start for a common situation;
    without one, list them.

    Example: rrf-design init --from tickets.csv --ask "What is the refund?" -o refunds

    Example: rrf-design init paraphrase -o problem.toml

    Example: rrf-design init documents -o invoices
    """
    own = {"choices": choices, "tolerance": tolerance, "id": key, "gold": gold, "model": model, "base-url": base_url}
    if source is not None:
        if situation is not None or ask is None:
            raise InputError('init --from TABLE takes --ask "QUESTION", and no situation')
        guesses: dict[str, Any] = {"tolerance": tolerance, "id": key, "gold": gold}
        guesses |= {"choices": () if choices is None else choices.split(",")}
        _from_table(source, ask, out or Path(source.stem), model, base_url, guesses, force=force, printer=printer)
        return
    for name, value in {"ask": ask, **own}.items():
        if value is not None:
            raise InputError(f"--{name} goes with a table of yours: init --from TABLE --ask QUESTION")
    if situation is None:
        printer.result({"situations": KNOWN}, _list)
        return
    if situation not in KNOWN:
        from rrf_design.files import suggestion

        raise InputError(f"init: no situation {situation!r}{suggestion(situation, KNOWN)} (known: {', '.join(KNOWN)})")
    _start(situation, out, force=force, printer=printer)


def _list() -> None:
    table("", ["situation", "what it is"], list(KNOWN.items()))
    say("Then: rrf-design init documents -o invoices. Or with a table of yours:")
    say('rrf-design init --from TABLE --ask "QUESTION" -o FOLDER')


def _start(situation: str, out: Path | None, *, force: bool, printer: Printer) -> None:
    """A problem file, or the folder of a recipe, to start from."""
    from rrf_design.questions import dataset

    if situation in RECIPES:
        folder = out or Path(situation)
        files = _write_folder(folder, _recipe_files(situation), force=force)
        told = {"folder": str(folder), "files": files, "situation": situation}
        items = dataset(folder / "rrf.toml")
        verb = "repair" if len(items.recipe.fields) > 1 else "deliver"
        next_step = f"rrf-design {verb} {_at(folder, 'rrf.toml')} --responses {_at(folder, 'answers.jsonl')}"
        next_step += " --risk 5% -o delivered.csv" * (verb == "deliver")
        printer.news(f"Wrote {folder}: {', '.join(files)}: {KNOWN[situation]}.")
        _end(told, items, next_step, printer)
        return
    file = out or Path("problem.toml")
    _refuse_existing([file], force=force)
    write_text(file, _template(situation).replace(" FILE ", f" {file} "))
    if printer.as_json:
        print_json({"file": str(file), "situation": situation})
    printer.news(f"Wrote {file}: {KNOWN[situation]}. Read it, then try: rrf-design explain {file}")


def _from_table(
    source: Path,
    ask: str,
    folder: Path,
    model: str | None,
    base_url: str | None,
    guesses: dict[str, Any],
    *,
    force: bool,
    printer: Printer,
) -> None:
    """A recipe for a table of the user's."""
    from rrf_design import models
    from rrf_design.questions.draft import draft_recipe

    _refuse_existing([folder / name for name in ("rrf.toml", "rewordings.toml")], force=force)
    options = {} if base_url is None else {"base_url": base_url}
    entry = None if model is None else {"use": model, **options}
    with nullcontext() if model is None else models.get(model, **options) as adapter:
        draft = draft_recipe(source, ask, folder=folder, model=adapter, entry=entry, **guesses)
    files = _write_folder(folder, draft.files, force=force)
    told = {"folder": str(folder), "files": files, "assumed": list(draft.assumed)}
    printer.news(f"Wrote {folder}: {', '.join(files)}. What was assumed, to be corrected there:")
    for text in draft.assumed:
        printer.news(f"- {text}")
    asked = "" if model is not None else " --model openai:NAME"
    next_step = f"rrf-design deliver {_at(folder, 'rrf.toml')}{asked} --risk 5% -o delivered.csv"
    _end(told, draft.items, next_step, printer)


def _end(told: dict[str, Any], items: Dataset, next_step: str, printer: Printer) -> None:
    """What a run will take, and the next command, with a limit of the money where that is known."""
    from rrf_design.cli.estimate import tell_estimate
    from rrf_design.tables import estimate

    named = bool(items.recipe.models)
    found = estimate(items, None if named else "embedded")
    if found.money.most and "--responses" not in next_step:
        next_step += f" --money {_rounded_up(found.money.most):g}"
    if printer.as_json:
        unknown = {} if named else {"money": {"expected": None, "most": None}, "prices": {}}
        print_json({**told, "estimate": {**found.to_json(), **unknown}, "next": next_step})
    elif not printer.quiet:
        tell_estimate(found, quiet=True, money=named)
        say(f"Next: {next_step}")


def _rounded_up(value: float) -> float:
    """To one digit."""
    step = 10.0 ** math.floor(math.log10(value))
    return float(f"{math.ceil(value / step) * step:.1g}")


def _at(folder: Path, name: str) -> str:
    return shlex.quote(str(folder / name))


def _write_folder(folder: Path, texts: Mapping[str, str], *, force: bool) -> list[str]:
    _refuse_existing([folder / name for name in texts], force=force)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made a folder ({error.strerror})") from None
    for name, text in texts.items():
        write_text(folder / name, text)
    return list(texts)


def _refuse_existing(files: list[Path], *, force: bool) -> None:
    for file in files:
        if file.exists() and not force:
            raise InputError(f"{file}: is there already; choose another name with --out, or overwrite it with --force")


def _template(situation: str) -> str:
    """The text of a problem template."""
    return resources("rrf_design").joinpath("templates", f"{situation}.toml").read_text(encoding="utf-8")


def _recipe_files(situation: str) -> dict[str, str]:
    """The files of a recipe's folder, by name: the recipe first."""
    folder = resources("rrf_design").joinpath("templates", situation)
    found = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.is_file()}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != "rrf.toml", name))}
