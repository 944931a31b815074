"""rrf-design init: a commented problem file, or a recipe with its table and recorded answers, to
start from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rrf_design.cli.options import AsJson, Quiet
from rrf_design.cli.output import print_json, say, table
from rrf_design.errors import InputError

SITUATIONS = {
    "paraphrase": "one question in several wordings, a calculator to check with",
    "units": "one quantity asked for in several units",
    "code": "one function asked for in several wordings, compared on test inputs",
    "claims": "claims and their negations, with people's labels on sale",
}
"""Problem files."""
RECIPES = {
    "documents": "a table of documents: numbers read in several ways, a clerk for what stays in dispute",
    "sums": "a table of word problems: scaled and shifted variants, and exact checks",
    "judges": "a table of comparisons: three judges in both orders, and people's labels",
    "programs": "a table of functions to write: several wordings, and tests",
    "statements": "a table of claims: each with its negation, and people to ask",
}
"""Folders with rrf.toml, a small table and recorded answers."""


def init_verb(
    situation: Annotated[
        str | None,
        typer.Argument(
            help="One of: " + ", ".join([*SITUATIONS, *RECIPES]) + ".",
            show_default=False,
            autocompletion=lambda incomplete: [name for name in (*SITUATIONS, *RECIPES) if name.startswith(incomplete)],
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help=(
                "The file to write, problem.toml by default; of a recipe the folder, by default called like the"
                " situation."
            ),
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented problem file, or a recipe with a table, for a common situation; without
    one, list them.

    Example: rrf-design init paraphrase -o problem.toml

    Example: rrf-design init documents -o invoices
    """
    from rrf_design.documents import write_text
    from rrf_design.files import suggestion

    known = {**SITUATIONS, **RECIPES}
    if situation is None:
        if as_json:
            print_json({"situations": known})
        else:
            table("", ["situation", "what it is"], list(known.items()))
            say("Then: rrf-design init paraphrase -o problem.toml, or rrf-design init documents -o invoices")
        raise typer.Exit(0)
    if situation not in known:
        raise InputError(f"init: no situation {situation!r}{suggestion(situation, known)} (known: {', '.join(known)})")
    if situation in RECIPES:
        folder = out or Path(situation)
        files = _write_folder(situation, folder, force=force)
        told, words = {"folder": str(folder), "files": files}, f"{folder}: {', '.join(files)}"
        next_step = f"cd {folder} && rrf-design compile"
    else:
        file = out or Path("problem.toml")
        _refuse_existing([file], force=force)
        write_text(file, template(situation).replace(" FILE ", f" {file} "))
        told, words, next_step = {"file": str(file)}, str(file), f"rrf-design explain {file}"
    if as_json:
        print_json({**told, "situation": situation})
    elif not quiet:
        say(f"Wrote {words}: {known[situation]}. Read it, then try: {next_step}")


def _write_folder(situation: str, folder: Path, *, force: bool) -> list[str]:
    from rrf_design.documents import write_text

    texts = recipe_files(situation)
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


def template(situation: str) -> str:
    """The text of a problem template."""
    from importlib.resources import files

    return files("rrf_design").joinpath("templates", f"{situation}.toml").read_text(encoding="utf-8")


def recipe_files(situation: str) -> dict[str, str]:
    """The files of a recipe's folder, by name: the recipe first."""
    from importlib.resources import files

    folder = files("rrf_design").joinpath("templates", situation)
    found = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.is_file()}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != "rrf.toml", name))}
