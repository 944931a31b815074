"""rrf-design measure: what users otherwise guess, from labels: wrong answers, faults of relations, repeats, judges."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli.items import Data, Limit, Sample
from rrf_design.cli.live_models import Store
from rrf_design.cli.output import AsJson, Quiet, Seed, default_file, print_json, say, table


def register(app: typer.Typer) -> None:
    app.command("measure")(measure_verb)


def measure_verb(
    file: Annotated[Path | None, typer.Argument(help="Recipe with a gold column; rrf.toml by default.")] = None,
    data: Data = None,
    responses: Annotated[
        Path | None, typer.Option("--responses", "-r", help="Recorded answers, one a row (.jsonl, .csv ...).")
    ] = None,
    judgements: Annotated[
        Path | None, typer.Option("--judgements", help="A table: id, judge, value, truth and perhaps position.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="Measure the verifiers of this run (or last) against the recipe's gold.")
    ] = None,
    store: Store = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Of every bound and interval, each for itself.")
    ] = 0.95,
    limit: Limit = None,
    sample: Sample = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """What labels say about answers, relations, repeats and judges: proposals for the recipe, with confidence.

    Nothing is taken silently.

    Labels that were looked at here are no evidence for a pilot any more: measure on other items (--sample).

    Example: rrf-design measure rrf.toml --responses answers.jsonl

    Example: rrf-design measure --judgements judged.csv
    """
    from rrf_design.documents import sealed
    from rrf_design.errors import InputError

    if not 0.0 < confidence < 1.0:
        raise InputError(f"--confidence {confidence:g}: it lies between 0 and 1")
    if sum(given is not None for given in (responses, judgements, run)) != 1:
        raise InputError("give --responses or --run with a recipe, or --judgements with a table of judgements")
    if responses is None:
        from rrf_design.promises.judging import judgements_of, measure_judges, read_judgements

        if judgements is not None:
            listed = read_judgements(judgements)
        else:
            from rrf_design.acquisition import read_run
            from rrf_design.cli.items import open_dataset

            listed = judgements_of(read_run(str(run), store=store), open_dataset(file or default_file(), data))
        found = sealed("rrf-measurement", measure_judges(listed, confidence=confidence))
        print_json(found) if as_json else _describe_judges(found, quiet=quiet)
        return
    content = _of_answers(file or default_file(), data, responses, confidence, limit=limit, sample=sample, seed=seed)
    found = sealed("rrf-measurement", content)
    print_json(found) if as_json else _describe(found, quiet=quiet)


def _of_answers(
    file: Path, data: Any, responses: Path, confidence: float, *, limit: int | None, sample: int | None, seed: int
) -> dict[str, Any]:
    from rrf_design.cli.items import open_dataset
    from rrf_design.errors import InputError
    from rrf_design.promises.measuring import measured
    from rrf_design.promises.sheets import read_sheet
    from rrf_design.promises.truths import GoldRule, read_truth
    from rrf_design.questions.answers import RecordedAnswers

    dataset = open_dataset(file, data, limit=limit, sample=sample, seed=seed)
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    with RecordedAnswers(dataset, responses, checks=True) as answers:
        sheet = read_sheet(dataset, answers, nodes)
    rule = GoldRule.of(dataset.recipe.data)
    if rule.column is None:
        raise InputError(f"{dataset.recipe.name}: nothing says what is true; name the column with gold in [data]")
    truths = [read_truth(row.item.gold, row.parser, rule.within(row.shape.problem.delta)) for row in sheet.rows]
    labelled = [place for place, truth in enumerate(truths) if truth is not None]
    if not labelled:
        raise InputError(f"{dataset.recipe.name}: the column {rule.column!r} is empty in every row")
    found = measured(sheet.only(labelled), [t for t in truths if t is not None], dataset.recipe, confidence)
    return {"confidence": confidence, "items": len(labelled), **found}


def _describe(found: dict[str, Any], *, quiet: bool) -> None:
    from fractions import Fraction

    from rrf_design.risk.sentences import percent_above, plain_percent

    wrong = found["wrong_answers"]
    asked = {node: wrong["items"] - marks.count("-") for node, marks in wrong["by_node"].items()}
    rows = [
        (entry["node"], f"{entry['wrong']} of {asked[entry['node']]}", percent_above(Fraction(entry["bound"])))
        for entry in wrong["nodes"]
    ]
    table("", ["answer", "wrong", "at most"], rows, right=[1, 2])
    lines = [
        (
            entry["relation"],
            f"{entry['broken']} of {entry['both_read']}",
            "–" if entry["faults"] is None else f"{entry['faults']} of {entry['known']}",
            "–" if entry["bound"] is None else percent_above(Fraction(entry["bound"])),
        )
        for entry in found["relations"]
    ]
    if lines:
        table("", ["relation", "broken", "its own fault", "at most"], lines, right=[1, 2, 3])
    orders = [
        (
            " / ".join(entry["nodes"]),
            f"{entry['changed']} of {entry['both_read']}",
            ", ".join(f"{count} {way}" for way, count in entry["ways"].items()) or "–",
            f"{entry['p']:.2g}",
        )
        for entry in found["orders"]
    ]
    if orders:
        table("", ["in two orders", "changed", "which way", "p"], orders, right=[1, 3])
    if not quiet:
        say(
            f"Bounds (at most) hold with confidence {plain_percent(found['confidence'])}, each for itself. For the recipe, if its author agrees:"
        )
    for words in () if quiet else found["proposals"]:
        say(f"- {words}")


def _describe_judges(found: dict[str, Any], *, quiet: bool) -> None:
    from rrf_design.promises.judging import between
    from rrf_design.risk.sentences import number_above, percent_about

    rows = [
        (
            judge["judge"],
            str(judge["judged"]),
            "–" if "rate" not in judge else percent_about(judge["rate"]),
            "–" if "interval" not in judge else " to ".join(between(judge["interval"])),
            "–" if "sigma" not in judge else number_above(judge["sigma"]["upper"]),
        )
        for judge in found["judges"]
    ]
    table("", ["judge", "judged", "right", "between", "σ at most"], rows, right=[1, 2, 3, 4])
    for pair in found["agreement"]:
        low, high = between(pair["interval"])
        names = " and ".join(pair["judges"])
        say(f"{names} agree in {pair['agree']} of {pair['items']} items (between {low} and {high})")
    for words in () if quiet else found["proposals"]:
        say(words)
