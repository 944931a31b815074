"""rrf-design audit: how many of the delivered values are wrong, at most?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli import _options as options
from rrf_design.cli._live_models import Store
from rrf_design.cli.output import Printer, note, say
from rrf_design.cli.pilot import told_by_people
from rrf_design.documents import read, write
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.promises import Audit
    from rrf_design.questions import Dataset


def audit_verb(
    run: Annotated[
        str,
        typer.Argument(
            help=(
                "What was delivered: the table (.csv, .jsonl, .parquet ...) or document (.json) of repair or acquire,"
                " or a run of the journal (last)."
            ),
            show_default=False,
        ),
    ],
    recipe: Annotated[
        Path | None,
        typer.Option("--recipe", help="Its [data] and [promise]: ids, gold, tolerance, risk, size of the audit."),
    ] = None,
    data: options.Data = None,
    store: Store = None,
    gold: Annotated[str | None, typer.Option("--gold", help="Column of the truth, if not the recipe's.")] = None,
    tolerance: Annotated[
        float | None, typer.Option("--tolerance", help="A value this close to the truth is right.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of ids; default: the recipe's, else row numbers.")
    ] = None,
    labels: Annotated[
        int | None, typer.Option("--labels", help="Items to draw in all; default: [promise] audit, else 60.")
    ] = None,
    risk: Annotated[
        float | None, typer.Option("--risk", help="Exit with 1 unless at most this share is wrong.")
    ] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", help="Default: [promise], else 0.95.")] = None,
    review: options.ReviewPlace = None,
    review_file: options.ReviewWritten = None,
    resume: Annotated[bool, typer.Option("--resume", help="Read back what people wrote into the review file.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the certificate here (.json).")] = None,
    seed: options.Seed = 0,
    *,
    printer: Printer,
) -> int:
    """How many of the delivered values are wrong, at most: items drawn at random and checked, a
    bound that holds at any stop.

    An audit of the same deliveries in -o is gone on with: its draws count. Exit code 1 while labels
    are missing, and where the bound does not keep the risk.

    Example: rrf-design audit delivered.csv --recipe rrf.toml --labels 60 -o audit.json
    """
    from rrf_design.promises import audit, write_reviews
    from rrf_design.questions.recipe import load_recipe
    from rrf_design.studio.labels import review_file as review_labels

    known = None if recipe is None else load_recipe(recipe)
    review = review or review_file
    if resume and review is None and output is None:
        raise InputError("--resume reads what people wrote; name the file with --review")
    with review_labels(review, "audit", blind=True) as place:
        said = told_by_people(place, resume=resume)
        found = audit(
            run,
            _asked(run, recipe, data, quiet=printer.quiet or printer.as_json),
            recipe=known,
            labels=labels,
            risk=risk,
            confidence=confidence,
            truths=said,
            gold=gold,
            tolerance=tolerance,
            id_column=id_column,
            seed=seed,
            store=store,
            before=read(output, what="audit") if output is not None and output.is_file() else None,
        )
        if output is not None:
            write(output, found.document)
        if place is not None and found.waiting:
            write_reviews(place, found.questions)
    printer.result(found.to_json, lambda: _describe(found, review, quiet=printer.quiet))
    return 0 if not found.waiting and found.document["holds"] is not False else 1


def _asked(run: str, recipe: Path | None, data: Path | None, *, quiet: bool) -> Dataset | None:
    """The items as they were asked.

    An audit needs the delivered table alone, so a recipe whose table is elsewhere is said, not
    refused; a run needs the table it was made from.
    """
    path = Path(run)
    is_table = (path.exists() or path.suffix != "") and path.suffix.lower() != ".json"
    if data is not None and is_table:
        raise InputError(f"--data is the table that a run was made from; {run} is a table itself, with its own rows")
    if recipe is None:
        return None
    try:
        found = options.Items(data).dataset(recipe)
        len(found)
    except InputError as error:
        if not is_table:
            raise
        if not quiet:
            note(
                f"{error}; people are asked without the recipe's questions, and words are compared as they are written"
            )
        return None
    return found


def _describe(found: Audit, review: str | None, *, quiet: bool) -> None:
    from rrf_design.checker.promise_words import audited_risk

    document, wrong = found.document, found.document["wrong_items"]
    say(found.sentence)
    if not quiet and wrong:
        say(f"Wrong: {', '.join(wrong[:12])}{' …' if len(wrong) > 12 else ''}")
    if found.waiting:
        say(_waiting(found, review))
    if document["risk"] is not None:
        seen = {key: document[key] for key in ("holds", "population", "wrong")}
        say(audited_risk(document["risk"], **seen, waiting=bool(found.waiting)))


def _waiting(found: Audit, review: str | None) -> str:
    """What people have to do; labels behind a gap do not count before it is filled, or those could
    be left out that displease.
    """
    from rrf_design.studio.labels import how_to_answer

    waiting, behind = len(found.waiting), found.behind
    items = "1 drawn item waits for its" if waiting == 1 else f"{waiting:,} drawn items wait for their"
    later = f" (labels count in the order of the draw: {behind:,} behind it are not counted yet)" if behind else ""
    return f"{items} truth{later}: {how_to_answer(review)}, then repeat with --resume"
