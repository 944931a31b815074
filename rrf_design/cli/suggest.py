"""rrf-design suggest: other ways of asking a recipe's questions, as entries on sale; and wordings
by a model, once, for review.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli._options import BaseUrl, Data, Items, default_file
from rrf_design.cli.output import Printer, print_json, table
from rrf_design.documents import write, write_text
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.questions.recipe import RecipeFile

WORDINGS = Path("rewordings.toml")
Language = Annotated[
    str | None, typer.Option("--language", help="The model writes the questions in this language, as in German.")
]


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
    language: Language = None,
    responses: Annotated[
        Path | None,
        typer.Option(
            "--responses",
            "-r",
            help="Recorded programs: look for inputs on which they differ although they agree on all tests; -o is then"
            " a folder with a problem for each such row.",
        ),
    ] = None,
    data: Data = None,
    *,
    printer: Printer,
) -> int:
    """Propose other ways of asking a recipe's questions, with price and reason, as entries on sale.

    Each is a transformation of the catalogue: the other question, and how its answer must change.
    plan and acquire choose among them. With --only wording a model writes wordings for review.
    With --responses, of programs: inputs on which those differ that agree on all tests.

    Example: rrf-design suggest rrf.toml -o more.toml

    Example: rrf-design suggest rrf.toml --responses answers.jsonl -o apart/
    """
    from rrf_design.files import parse_text, read_source
    from rrf_design.questions.recipe import RecipeFile, recipe_from_document
    from rrf_design.questions.rewording import dumps_suggestions, suggestions
    from rrf_design.transforms import names

    path = file or default_file()
    if language is not None and model is None and only != "wording":
        raise InputError("--language: a model writes it; say who with --model, as in --model embedded")
    if responses is not None:
        return _separating(path, responses, data, output, printer)
    if only == "wording":
        return reword_verb(path, output or WORDINGS, model or "embedded", base_url, count, language, printer=printer)
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
    numbers = _number_columns(parts, path.parent)
    more: list[dict[str, Any]] = []
    if model is not None:
        from rrf_design import models
        from rrf_design.questions.rewording import write_rewordings

        with models.get(model, **({} if base_url is None else {"base_url": base_url})) as adapter:
            more = write_rewordings(parts.ask, adapter, count=count, language=language)
    if output is not None:
        text = read_source(path)
        whole = text if path.suffix.lower() == ".toml" else None
        if whole is None:
            raise InputError(f"{path}: candidates are added to a recipe in TOML; leave -o out to see them")
        whole = f"{whole.rstrip()}\n\n{dumps_suggestions(found, more, parts, numbers)}"
        recipe_from_document(parse_text(whole, ".toml"), name=output.name, folder=path.parent)
        write_text(output, whole)
    if printer.as_json:
        listed = [{**one.entry, "reason": one.reason} for one in found]
        print_json({"candidates": listed, "wordings": more, "file": None if output is None else str(output)})
        return 0 if found else 1
    if output is None:
        print(dumps_suggestions(found, more, parts, numbers))
    kinds = ", ".join(dict.fromkeys(one.transform for one in found))
    where = "" if output is None else f"{output}: "
    printer.news(f"{where}{len(found)} candidates on sale ({kinds or 'nothing fits'}); plan and acquire choose.")
    if model is not None:
        kept = sum("lost" not in entry for entry in more)
        printer.news(f"{kept} of {len(more)} wordings by {model} kept what the answer hangs on; read them.")
    return 0 if found else 1


LOOKED_AT = 20
"""Rows of a table, before a column counts as one of numbers."""


def _number_columns(parts: RecipeFile, folder: Path) -> list[str]:
    """Columns of the recipe's table that hold plain numbers in its first rows; none where the table
    is not there.
    """
    from itertools import islice

    from rrf_design.questions.tables import RowFaults, open_table
    from rrf_design.questions.templates import strict_number

    named = parts.data
    if named.table is None or not (folder / named.table).is_file():
        return []
    table = open_table(folder / named.table, separator=named.separator, encoding=named.encoding)
    rows = [row.cells for row in islice(table.rows(RowFaults(table.name)), LOOKED_AT)]

    def number(cell: Any) -> bool:
        try:
            return strict_number(cell) == strict_number(cell)
        except ValueError:
            return False

    return [name for name in (rows[0] if rows else ()) if name != named.id and all(number(r.get(name)) for r in rows)]


def _separating(file: Path, responses: Path, data: Path | None, output: Path | None, printer: Printer) -> int:
    """Inputs that part recorded programs, row by row; with a folder also the problems that hold
    them.
    """
    from rrf_design import save
    from rrf_design.questions.answers import RecordedAnswers
    from rrf_design.questions.rewording import separated

    dataset = Items(data).dataset(file)
    found: list[dict[str, Any]] = []
    with RecordedAnswers(dataset, responses) as answers:
        for item, problem in dataset.items():
            texts = {node: one.text for node, one in answers.of(item).items() if one.text is not None}
            parted = separated(problem, texts)
            for one in () if parted is None else parted.inputs:
                found.append({"id": item, "arguments": list(one.arguments), "outputs": dict(one.outputs)})
            if parted is not None and output is not None:
                stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in item)
                output.mkdir(parents=True, exist_ok=True)
                save(parted.problem, output / f"{stem}.toml")
                write(output / f"{stem}.answers.json", texts)
                found[-1]["file"] = str(output / f"{stem}.toml")
    if printer.as_json:
        print_json({"separating": found})
    else:
        rows = [
            (one["id"], str(one["arguments"]), ", ".join(f"{k}: {v}" for k, v in one["outputs"].items()))
            for one in found
        ]
        table("", ["row", "arguments", "what programs return that agree on all tests"], rows)
    rows_found = len({one["id"] for one in found})
    where = "" if output is None else f"{output}: "
    printer.news(f"{where}{rows_found} of {len(dataset)} rows; where no input was found, that proves nothing.")
    return 0 if found else 1


def reword_verb(
    file: Annotated[Path | None, typer.Argument(help="Recipe in the short form; rrf.toml by default.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the wordings are written (.toml).")] = WORDINGS,
    model: Annotated[str, typer.Option("--model", help="Who writes them.")] = "embedded",
    base_url: BaseUrl = None,
    count: Annotated[int, typer.Option("--count", help="Wordings of each question.", min=1)] = 3,
    language: Language = None,
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
        entries = write_rewordings(parts.ask, adapter, count=count, language=language)
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
