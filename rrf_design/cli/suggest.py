"""rrf-design suggest: other ways of asking a recipe's questions, as entries on sale; and wordings
by a model, once, for review.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli._options import BaseUrl, default_file
from rrf_design.cli.output import Printer, print_json
from rrf_design.documents import write_text
from rrf_design.errors import InputError

WORDINGS = Path("rewordings.toml")


def suggest_verb(
    file: Annotated[Path | None, typer.Argument(help="Recipe in the short form; rrf.toml by default.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the recipe is written with the candidates as entries on sale; with --only wording: the file"
            " for review (rewordings.toml).",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Who writes wordings beside the catalogue's; nobody by default.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", help="These transformations alone, parted by commas.")] = None,
    base_url: BaseUrl = None,
    count: Annotated[int, typer.Option("--count", help="Wordings of each question by the model.", min=1)] = 3,
    *,
    printer: Printer,
) -> int:
    """Propose other ways of asking a recipe's questions, with price and reason, as entries on sale.

    Each is a transformation of the catalogue: the other question, and how its answer must change.
    plan and acquire choose among them. With --only wording a model writes wordings for review.

    Example: rrf-design suggest rrf.toml -o more.toml
    """
    from rrf_design.files import parse_text, read_source
    from rrf_design.questions.recipe import RecipeFile, recipe_from_document
    from rrf_design.questions.rewording import dumps_suggestions, suggestions
    from rrf_design.transforms import names

    path = file or default_file()
    if only == "wording":
        return reword_verb(path, output or WORDINGS, model or "embedded", base_url, count, printer=printer)
    wanted = None if only is None else [name.strip() for name in only.split(",")]
    for name in wanted or ():
        if name not in names():
            raise InputError(f"--only: no transformation is called {name!r}; known: {', '.join(names())}")
    if output is not None and output.suffix.lower() not in (".toml",):
        raise InputError(f"{output}: the recipe with its candidates is written as TOML; end the name in .toml")
    parts = RecipeFile.model_validate(_checked(path, None))
    if not parts.ask:
        raise InputError(f"{path}: suggestions are for recipes in the short form, with [[ask]]")
    found = [one for one in suggestions(parts) if wanted is None or one.transform in wanted]
    more: list[dict[str, Any]] = []
    if model is not None:
        from rrf_design import models
        from rrf_design.questions.rewording import write_rewordings

        with models.get(model, **({} if base_url is None else {"base_url": base_url})) as adapter:
            more = write_rewordings(parts.ask, adapter, count=count)
    if output is not None:
        text = read_source(path)
        whole = text if path.suffix.lower() == ".toml" else None
        if whole is None:
            raise InputError(f"{path}: candidates are added to a recipe in TOML; leave -o out to see them")
        whole = f"{whole.rstrip()}\n\n{dumps_suggestions(found, more, parts)}"
        recipe_from_document(parse_text(whole, ".toml"), name=output.name, folder=path.parent)
        write_text(output, whole)
    if printer.as_json:
        listed = [{**one.entry, "reason": one.reason} for one in found]
        print_json({"candidates": listed, "wordings": more, "file": None if output is None else str(output)})
        return 0 if found else 1
    if output is None:
        print(dumps_suggestions(found, more, parts))
    kinds = ", ".join(dict.fromkeys(one.transform for one in found))
    where = "" if output is None else f"{output}: "
    printer.news(f"{where}{len(found)} candidates on sale ({kinds or 'nothing fits'}); plan and acquire choose.")
    return 0 if found else 1


def reword_verb(
    file: Annotated[Path | None, typer.Argument(help="Recipe in the short form; rrf.toml by default.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the wordings are written (.toml).")] = WORDINGS,
    model: Annotated[str, typer.Option("--model", help="Who writes them.")] = "embedded",
    base_url: BaseUrl = None,
    count: Annotated[int, typer.Option("--count", help="Wordings of each question.", min=1)] = 3,
    *,
    printer: Printer,
) -> int:
    """Have a model write other wordings of a recipe's questions, once, into a file for review.

    The same as suggest --only wording. Each is checked: numbers, placeholders, option letters and
    JSON keys must survive. The recipe uses those that somebody marks as reviewed once [answer] says
    rewordings = "FILE".

    Example: rrf-design reword rrf.toml --model embedded -o rewordings.toml
    """
    from rrf_design import models
    from rrf_design.questions.recipe import RecipeFile
    from rrf_design.questions.rewording import dumps_rewordings, write_rewordings

    path = file or default_file()
    if output.exists():
        raise InputError(f"{output}: it exists, and somebody may have reviewed it; give another name")
    if output.suffix.lower() != ".toml":
        raise InputError(f"{output}: rewordings are written as TOML; end the name in .toml")
    parts = RecipeFile.model_validate(_checked(path, output))
    if not parts.ask:
        raise InputError(f"{path}: rewordings are for recipes in the short form, with [[ask]]")
    options = {} if base_url is None else {"base_url": base_url}
    with models.get(model, **options) as adapter:
        entries = write_rewordings(parts.ask, adapter, count=count)
    write_text(output, dumps_rewordings(entries, path.name))
    usable = sum("lost" not in entry for entry in entries)
    if printer.as_json:
        print_json({"rewordings": entries, "usable": usable, "file": str(output)})
    lost = len(entries) - usable
    printer.news(f"{output}: {usable} wordings to review; {lost} more lost something the answer hangs on.")
    return 0 if usable else 1


def _checked(path: Path, output: Path | None) -> Any:
    """The recipe's document; every fault of it is said before anybody is asked.

    It may name the file of rewordings that is written here, which is not there yet.
    """
    from rrf_design.files import parse_text, read_source
    from rrf_design.questions.recipe import recipe_from_document

    try:
        document = parse_text(read_source(path), path.suffix.lower())
        answer = document.get("answer") if isinstance(document, dict) else None
        own = answer if isinstance(answer, dict) else {}
        named = own.get("rewordings")
        if isinstance(named, str) and output is not None and (path.parent / named).resolve() == output.resolve():
            document = {**document, "answer": {key: value for key, value in own.items() if key != "rewordings"}}
        recipe_from_document(document, name=path.name, folder=path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return document
