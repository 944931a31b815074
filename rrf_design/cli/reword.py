"""rrf-design reword: have a model write other wordings of a recipe's questions, once, into a file
for review.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli.options import BaseUrl, default_file
from rrf_design.cli.output import Printer, print_json
from rrf_design.documents import write_text
from rrf_design.errors import InputError


def reword_verb(
    file: Annotated[Path | None, typer.Argument(help="Recipe in the short form; rrf.toml by default.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the wordings are written (.toml).")] = Path(
        "rewordings.toml"
    ),
    model: Annotated[str, typer.Option("--model", help="Who writes them.")] = "embedded",
    base_url: BaseUrl = None,
    count: Annotated[int, typer.Option("--count", help="Wordings of each question.", min=1)] = 3,
    *,
    printer: Printer,
) -> int:
    """Have a model write other wordings of a recipe's questions, once, into a file for review.

    Each is checked: numbers, placeholders, option letters and JSON keys must survive. The recipe
    uses those that somebody marks as reviewed once [answer] says rewordings = "FILE".

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


def _checked(path: Path, output: Path) -> Any:
    """The recipe's document; every fault of it is said before anybody is asked.

    It may name the file that is written here, which is not there yet.
    """
    from rrf_design.files import parse_text, read_source
    from rrf_design.questions.recipe import recipe_from_document

    try:
        document = parse_text(read_source(path), path.suffix.lower())
        answer = document.get("answer") if isinstance(document, dict) else None
        own = answer if isinstance(answer, dict) else {}
        named = own.get("rewordings")
        if isinstance(named, str) and (path.parent / named).resolve() == output.resolve():
            document = {**document, "answer": {key: value for key, value in own.items() if key != "rewordings"}}
        recipe_from_document(document, name=path.name, folder=path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return document
