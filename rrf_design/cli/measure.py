"""rrf-design measure: what users otherwise guess, from labels: wrong answers, faults of relations,
repeats, judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli import _options as options
from rrf_design.cli._live_models import Store
from rrf_design.cli.output import Printer, say, table

SHOWN = 12
"""So many pairs are shown, those that share most errors first; --json has them all."""


def measure_verb(
    file: Annotated[Path | None, typer.Argument(help="Recipe with a gold column; rrf.toml by default.")] = None,
    data: options.Data = None,
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
    limit: options.Limit = None,
    sample: options.Sample = None,
    seed: options.Seed = 0,
    *,
    printer: Printer,
) -> None:
    """What labels say about answers, relations, repeats and judges: proposals for the recipe, with
    confidence.

    Nothing is taken silently.

    Labels that were looked at here are no evidence for a pilot any more: measure on other items
    (--sample).

    Example: rrf-design measure rrf.toml --responses answers.jsonl

    Example: rrf-design measure --judgements judged.csv
    """
    from rrf_design import measure

    dataset = None
    if judgements is None and (responses is not None or run is not None):
        items = options.Items(data, limit=limit, sample=sample, seed=seed)
        dataset = items.dataset(file or options.default_file())
    found = measure(dataset, responses, judgements=judgements, run=run, store=store, confidence=confidence)
    describe = _describe if "wrong_answers" in found.content else _describe_judges
    printer.result(found.to_json, lambda: describe(found.content, quiet=printer.quiet))


def _describe(found: Mapping[str, Any], *, quiet: bool) -> None:
    from fractions import Fraction

    from rrf_design.checker.promise_words import percent_above, plain_percent

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
    ahead = sorted(found["shared_errors"]["pairs"], key=lambda pair: -float(pair["same_wrong"]))[:SHOWN]
    together = [
        (
            " and ".join(pair["nodes"]),
            f"{pair['both_wrong']} of {pair['items']}",
            str(pair["same_wrong"]),
            percent_above(Fraction(pair["bound"])),
        )
        for pair in ahead
        if pair["both_wrong"]
    ]
    if together:
        table("", ["answers", "both wrong", "the same wrong value", "at most"], together, right=[1, 2, 3])
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
            f"Bounds (at most) hold with confidence {plain_percent(found['confidence'])}, each for itself. For the"
            " recipe, if its author agrees:"
        )
    for words in () if quiet else found["proposals"]:
        say(f"- {words}")


def _describe_judges(found: Mapping[str, Any], *, quiet: bool) -> None:
    from rrf_design.checker.promise_words import number_above, percent_about
    from rrf_design.promises import between

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
