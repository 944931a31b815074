"""rrf-design deliver: from a table to a table one may hand over, in one pass."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.arguments import share_number
from rrf_design.cli import _options as options
from rrf_design.cli._live_models import Live
from rrf_design.cli.output import Printer, say, table
from rrf_design.documents import write
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.promises import DeliverySession, TestedDelivery
    from rrf_design.questions import Dataset

KEYS = "Type what is right; ? if nobody can tell, /1 to take the first answer shown, /q to stop for now."


def deliver_verb(
    file: options.ProblemFile,
    data: options.Data = None,
    limit: options.Limit = None,
    responses: Annotated[
        Path | None,
        typer.Option("--responses", "-r", help="Recorded answers instead of a model, one a row (.jsonl, .csv ...)."),
    ] = None,
    *,
    live: Live,
    risk: Annotated[
        str | None,
        typer.Option(
            "--risk", help="At most this share of the rows may be wrong: 0.05 or 5%; default: [promise] risk."
        ),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option("--confidence", help="How sure that has to be; default: [promise], else 95%.")
    ] = None,
    review: options.ReviewPlace = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="With a store: take labels as people give them in the studio, and ask on.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="[RUN]", help="Go on with the labels that are there already.")
    ] = None,
    asks: Annotated[
        str | None,
        typer.Option(
            "--asks", help="Answers used or bought of each row: a number, all (default), or auto for the cheapest."
        ),
    ] = None,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="Only say how many looks to expect at several risks; reads no truth.")
    ] = False,
    outputs: options.Outputs = None,
    seed: options.Seed = 0,
    printer: Printer,
) -> int:
    """Hand over a table of which at most a share can be wrong: people look at the doubtful rows,
    then at random ones, until that is proven.

    Labels come from the gold column of [data], from a review file, or from you at the terminal;
    each fixes its row. Exit code 0 when the risk is reached, 1 while rows wait. -o X.json is the
    proof, for rrf-design verify X.json --delivered TABLE.

    Example: rrf-design deliver rrf.toml --data tickets.csv --model openai:NAME --risk 5% -o
    delivered.csv

    Example: rrf-design deliver rrf.toml --responses answers.jsonl --risk 5% --review look.csv
    -o delivered.csv -o proof.json
    """
    from rrf_design.promises import deliver
    from rrf_design.studio.labels import is_store, review_file
    from rrf_design.tables.delivered import check_outputs, spare_inputs

    dataset = options.Items(data, limit=limit).dataset(file)
    shares: dict[str, Any] = {"risk": _share(risk, "--risk"), "confidence": _share(confidence, "--confidence")}
    if forecast:
        return _forecast(dataset, responses, asks, shares, printer)
    check_outputs(outputs or [])
    spare_inputs(outputs or [], dataset, file, responses, data, review)
    alone = dataset.recipe.data.gold is not None and review is None and resume is None
    if wait and not is_store(review):
        raise InputError("--wait: give a store of labels with --review (labels.sqlite), which the studio asks from")
    typed = review is None and not alone and not printer.as_json and sys.stdin.isatty()
    with review_file(review, "deliver", blind=True) as place, _sources(live, printer, responses) as asked:
        result = deliver(
            dataset,
            responses if responses is not None else asked,
            **shares,
            budget=live.budget,
            asks=asks,
            seed=seed,
            record=None if alone else _folder(live.store),
            resume=resume or False,
            review=place,
            ask=_ask if typed else partial(_wait, review, printer) if wait else None,
        )
        _write(result, outputs or [])
    _tell_unused(result, review, printer)
    printer.result(result.to_json, lambda: _describe(result, review, quiet=printer.quiet))
    return 0 if result.reached else 1


def _share(text: str | None, option: str) -> float | None:
    return None if text is None else share_number(text, option)


def _forecast(
    dataset: Dataset, responses: Path | None, asks: str | None, shares: Mapping[str, Any], printer: Printer
) -> int:
    from rrf_design.promises import forecast_delivery

    found = forecast_delivery(dataset, responses, asks=asks, **shares)
    printer.result(found, lambda: _describe_forecast(found))
    return 0 if any(one.get("pays", True) for one in found["risks"]) else 1


def _tell_unused(result: TestedDelivery, review: str | None, printer: Printer) -> None:
    from rrf_design.studio.labels import shown

    if result.unused and review is not None:
        many, first = len(result.unused), result.unused[0]
        printer.note(f"{shown(review)}: {many} values are of rows that nobody was asked about, {first!r} among them")


def _sources(live: Live, printer: Printer, responses: Path | None) -> Any:
    """Who answers; a budget is of answers and labels together, whoever answers."""
    return (
        replace(live, budget=None).models(printer, responses) if responses is not None else live.models(printer, None)
    )


def _folder(store: str | None) -> Path:
    """Where the record of labels lies: beside the journal."""
    from rrf_design.acquisition.stores import store_address

    path = store_address(store).removeprefix("sqlite:///")
    return Path(".") if "://" in path or path == ":memory:" else Path(path).absolute().parent


def _wait(store: str | None, printer: Printer, session: DeliverySession) -> None:
    """Ask in the studio, row after row, until it is proven or somebody stops."""
    from rrf_design.studio.labels import ask_on, shown

    assert store is not None
    printer.note(f"people answer with rrf-design studio {shown(store)}; Ctrl-C stops waiting, --resume goes on")
    ask_on(store, session)


def _ask(session: DeliverySession) -> None:
    """Ask at the terminal, row after row, until it is proven or somebody stops."""
    say(KEYS)
    stage = ""
    while looks := session.next():
        look = looks[0]
        if look.stage != stage:
            stage = look.stage
            say("")
            say(session.progress())
        say("")
        say(f"{look.id} · {look.question}")
        say(look.text)
        shown = list(dict.fromkeys(str(value) for value in (look.answers or {}).values()))
        for number, value in enumerate(shown, start=1):
            say(f"  /{number}  {value}")
        said = _typed(shown)
        if said is None:
            return
        try:
            session.label(look.id, said)
        except InputError as error:
            say(str(error))


def _typed(shown: list[str]) -> str | None:
    """What somebody typed; None where they stop."""
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            return None
        if line == "/q":
            return None
        if line.startswith("/") and line[1:].isdigit() and 1 <= int(line[1:]) <= len(shown):
            return shown[int(line[1:]) - 1]
        if line and not line.startswith("/"):
            return line
        say(KEYS)


def _write(result: TestedDelivery, outputs: list[Path]) -> None:
    from rrf_design.tables.delivered import write_output

    for path in outputs:
        if path.suffix.lower() == ".json":
            write(path, result.document)
        else:
            write_output(path, result.delivery)


def _describe(result: TestedDelivery, review: str | None, *, quiet: bool) -> None:
    from rrf_design.studio.labels import how_to_answer, shown

    say(result.sentence)
    if quiet:
        return
    say(result.cost_sentence)
    if result.reached:
        return
    say(result.progress)
    if result.next and review is not None:
        many = f"{len(result.next):,} rows wait" if len(result.next) != 1 else "1 row waits"
        say(f"{many} in {shown(review)}: {how_to_answer(review)}, then repeat with --resume.")
    elif result.next:
        say("Ask people with --review FILE, or at the terminal; --resume goes on with the labels that are there.")
    elif result.stage == "spent":
        say("The budget is gone before the risk is proven: give a larger --budget, or promise a larger --risk.")


def _about(cost: float) -> str:
    """An estimate has no hundredths."""
    from rrf_design.promises import money

    return money(round(cost) if cost >= 10 else cost)


def _describe_forecast(found: Mapping[str, Any]) -> None:
    rows = []
    for one in found["risks"]:
        if not found["answers_known"]:
            rows.append((f"{one['risk']:.4g}", f"{one['least']:,}", "", "", ""))
            continue
        pays = "yes" if one["pays"] else "no: look at every row"
        cost = _about(one["cost"]) if one["check_everything"] else ""
        rows.append((f"{one['risk']:.4g}", f"{one['looks']:,.0f}", f"{one['likely_most']:,.0f}", cost, pays))
    heads = ["risk", "looks", "at most, 9 in 10", "cost", "pays"]
    if not found["answers_known"]:
        heads = ["risk", "looks, at least", "", "", ""]
    table(f"Looks to expect among {found['rows']:,} rows", heads, rows, right=[0, 1, 2, 3])
    curve, best = found["curve"], found["best"]
    if len(curve) > 1 and any(point["answers_cost"] for point in curve):
        shown = [
            (str(one["answers"]), one["node"], f"{one['looks']:,.0f}", _about(one["answers_cost"]), _about(one["cost"]))
            for one in curve
        ]
        risk = 0.05 if found["risk"] is None else found["risk"]
        heads = ["answers a row", "the last", "looks", "their cost", "with looks"]
        table(f"Answers to buy at a risk of {risk:.4g}", heads, shown, right=[0, 2, 3, 4])
        say(
            f"Cheapest: {best} answer{'s' * (best != 1)} a row (--asks {best}; --asks auto finds it from some rows)."
            " One alone shows no disagreement: its line is a guess."
        )
    say("A forecast from the answers alone: nobody has looked yet, and what agreement hides it can't know.")
