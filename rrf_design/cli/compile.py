"""rrf-design compile: what a recipe means."""

from __future__ import annotations

import typer

from rrf_design.cli import _options as options
from rrf_design.cli.output import Printer


def compile_verb(
    file: options.ProblemFile,
    data: options.Data = None,
    item: options.ItemId = None,
    *,
    printer: Printer,
) -> None:
    """Print the long form of a recipe, or the whole problem of one of its items.

    With --item, prompts and numbers are filled in from the row, and the output is a problem file;
    without, texts stay templates, and the output is the same recipe in its long form. With --data
    and no --item, every row is checked first.

    Example: rrf-design compile rrf.toml --item 007
    """
    from rrf_design.files import dumps, to_document
    from rrf_design.questions import dumps_recipe, load_recipe

    items = options.Items(data)
    if item is not None:
        problem = items.dataset(file).item(item).problem
        printer.result(lambda: to_document(problem), lambda: typer.echo(dumps(problem), nl=False))
        return
    recipe = load_recipe(file) if data is None else items.dataset(file).recipe
    printer.result(recipe.document, lambda: typer.echo(dumps_recipe(recipe), nl=False))
