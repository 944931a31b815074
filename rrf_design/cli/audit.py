"""rrf-design audit: how many of the delivered values are wrong, at most?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli.items import Data
from rrf_design.cli.live_models import Store
from rrf_design.cli.output import AsJson, Quiet, Seed, note, print_json, say

if TYPE_CHECKING:
    from rrf_design.promises.auditing import AuditState
    from rrf_design.promises.delivered_tables import DeliveredTable
    from rrf_design.questions import Dataset


NO_TRUTH = (
    "whose word is the truth? name a gold column (--gold, or [data] of --recipe), or ask people with --review-file"
)


def register(app: typer.Typer) -> None:
    app.command("audit")(audit_verb)


def audit_verb(
    run: Annotated[
        str,
        typer.Argument(
            help="What was delivered: the table (.csv, .jsonl, .parquet ...) or document (.json) of repair or acquire, or a run of the journal (last).",
            show_default=False,
        ),
    ],
    recipe: Annotated[
        Path | None,
        typer.Option("--recipe", help="Its [data] and [promise]: ids, gold, tolerance, risk, size of the audit."),
    ] = None,
    data: Data = None,
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
    review_file: Annotated[
        Path | None, typer.Option("--review-file", help="Truth by people: written for them, read back with --resume.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Read back what people wrote into the review file.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the certificate here (.json).")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """How many of the delivered values are wrong, at most: items drawn at random and checked, a bound that holds at any stop.

    An audit of the same deliveries in -o is gone on with: its draws count. Exit code 1 while labels are missing, and where the bound does not keep the risk.

    Example: rrf-design audit delivered.csv --recipe rrf.toml --labels 60 -o audit.json
    """
    from rrf_design.documents import read, write
    from rrf_design.errors import InputError
    from rrf_design.promises import GoldRule, audit_document, draw_audit
    from rrf_design.promises.draws_beside import refuse_another_draw
    from rrf_design.promises.reviews import check_review_file, read_reviews, write_reviews
    from rrf_design.promises.truths import EXACT_CHECKS
    from rrf_design.questions.recipe import load_recipe
    from rrf_design.risk.sentences import audited_risk

    known = None if recipe is None else load_recipe(recipe)
    promise = None if known is None else known.promise
    own = GoldRule() if known is None else GoldRule.of(known.data, tolerance=_delta(known.long))
    rule = GoldRule(gold or own.column, own.tolerance if tolerance is None else tolerance, own.separator)
    size = labels if labels is not None else 60 if promise is None or promise.audit is None else promise.audit
    wanted = risk if risk is not None else None if promise is None else promise.risk
    sure = confidence if confidence is not None else 0.95 if promise is None else promise.confidence
    if rule.column is None and review_file is None and recipe is None:
        raise InputError(NO_TRUTH)
    if resume and review_file is None and output is None:
        raise InputError("--resume reads what people wrote; name the file with --review-file")
    if review_file is not None:
        check_review_file(review_file)
    table = _delivered(run, recipe, data, store, id_column or (None if known is None else known.data.id))
    before = read(output, what="audit") if output is not None and output.is_file() else None
    if output is not None:
        refuse_another_draw(output, table.digest, seed, confidence=sure)
    said = read_reviews(review_file, only=table.ids) if resume and review_file is not None else {}
    items = _asked(recipe, data, quiet=quiet or as_json)
    state = draw_audit(table, size, seed=seed, rule=rule, reviews=said, before=before, confidence=sure, asked=items)
    source = rule.words(len(said)) or ("" if len(state.waiting) == len(state.places) else EXACT_CHECKS)
    waiting = set(state.waiting)
    if waiting and review_file is None:
        if rule.column is None:
            raise InputError(f"no exact check of the recipe knows the value of {state.waiting[0]!r}: {NO_TRUTH}")
        raise InputError(
            f"{len(waiting)} drawn items have no truth in column {rule.column!r}, {state.waiting[0]!r} among them; ask people with --review-file"
        )
    document = audit_document(state, confidence=sure, risk=wanted, truth=source)
    if output is not None:
        write(output, document)
    if waiting and review_file is not None:
        places = [place for place in state.places if table.ids[place] in waiting or table.ids[place] in said]
        asked = _questions(items, [table.ids[at] for at in places])
        write_reviews(
            review_file,
            [
                (name, asked.get(name, f"What is right about {name}?"), table.shown(at, without=rule.column))
                for at, name in ((at, table.ids[at]) for at in places)
            ],
        )
    if as_json:
        print_json({**document, "waiting": len(waiting)})
    else:
        say(document["sentence"])
        if not quiet and document["wrong_items"]:
            say(f"Wrong: {', '.join(document['wrong_items'][:12])}{' …' if len(document['wrong_items']) > 12 else ''}")
        if waiting:
            say(_waiting(state, document, review_file))
        if document["risk"] is not None:
            seen = {key: document[key] for key in ("holds", "population", "wrong")}
            say(audited_risk(document["risk"], **seen, waiting=bool(waiting)))
    raise typer.Exit(0 if not waiting and document["holds"] is not False else 1)


def _asked(recipe: Path | None, data: Path | None, *, quiet: bool) -> Dataset | None:
    """The items as they were asked. An audit needs the delivered table alone, so a recipe whose table is elsewhere is said, not refused."""
    from rrf_design.cli.items import open_dataset
    from rrf_design.errors import InputError

    if recipe is None:
        return None
    try:
        found = open_dataset(recipe, data)
        len(found)
    except InputError as error:
        if not quiet:
            note(
                f"{error}; people are asked without the recipe's questions, and words are compared as they are written"
            )
        return None
    return found


def _questions(items: Dataset | None, names: Sequence[str]) -> dict[str, str]:
    """What the recipe has a person asked about each of them; nothing where it has nobody asked."""
    from rrf_design.promises.reviews import person_question

    known = [name for name in names if items is not None and name in items]
    asked = {name: person_question(items[name]) for name in known} if items is not None else {}
    return {name: words for name, words in asked.items() if words is not None}


def _waiting(state: AuditState, document: Mapping[str, Any], review_file: Path | None) -> str:
    """What people have to do; labels behind a gap do not count before it is filled, or those could be left out that displease."""
    waiting = len(state.waiting)
    items = "1 drawn item waits for its" if waiting == 1 else f"{waiting:,} drawn items wait for their"
    behind = len(state.places) - waiting - int(document["drawn"])
    later = f" (labels count in the order of the draw: {behind:,} behind it are not counted yet)" if behind else ""
    return f"{items} truth{later}: fill in the column value in {review_file} (? where nobody can tell), then repeat with --resume"


def _delivered(
    run: str, recipe: Path | None, data: Path | None, store: str | None, id_column: str | None
) -> DeliveredTable:
    """The rows that were handed over, from wherever they are."""
    from rrf_design.cli.items import open_dataset
    from rrf_design.documents import read
    from rrf_design.errors import InputError
    from rrf_design.promises import read_delivered
    from rrf_design.promises.delivered_tables import delivered_items, read_run_document

    path = Path(run)
    is_file = path.exists() or path.suffix != ""
    if is_file and store is not None:
        raise InputError(f"--store names the journal of a run, and {run} is a file: leave one of them out")
    if is_file and path.suffix.lower() != ".json":
        if data is not None:
            raise InputError(
                f"--data is the table that a run was made from; {run} is a table itself, with its own rows"
            )
        return read_delivered(path, id_column=id_column)
    if recipe is None:
        raise InputError(f"{run}: a run is audited with the recipe and table it was made from; give --recipe")
    dataset = open_dataset(recipe, data)
    if is_file:
        return read_run_document(read(path, what="run"), path.name, dataset)
    from rrf_design.acquisition import read_run
    from rrf_design.handover import delivery_of

    found = read_run(run, store=store)
    if {entry.item for entry in found.items} != set(dataset):
        raise InputError(
            f"run {found.run}: its items are not those of the table; audit it with the table it was made from. What a policy delivered is in"
            " the table or document of acquire --policy, not in a run of the journal"
        )
    return delivered_items(f"run {found.run}", dataset, delivery_of(dataset, found).cells())


def _delta(long: object) -> float | None:
    """The tolerance of the recipe's answer, where it is a number for all rows."""
    problem = long.get("problem") if isinstance(long, dict) else None
    delta = problem.get("delta") if isinstance(problem, dict) else None
    return float(delta) if isinstance(delta, int | float) and not isinstance(delta, bool) else None
