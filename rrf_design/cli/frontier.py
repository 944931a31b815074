"""rrf-design frontier: how does the best margin grow with money?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli import _options as options
from rrf_design.cli.output import Printer, say, table
from rrf_design.cli.plan import SYMBOLS, Jointly, ObjectiveOption, Solver
from rrf_design.documents import sealed, write

if TYPE_CHECKING:
    from rrf_design.planning import Frontier, Point


def frontier_verb(
    file: options.ProblemFile,
    budget: Annotated[float | None, typer.Option("--budget", help="Stop the curve at this cost.")] = None,
    objective: ObjectiveOption = None,
    k: options.Corruptions = None,
    solver: Solver = "ortools",
    jointly: Jointly = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the curve as a JSON document.")] = None,
    seed: options.Seed = 0,
    cluster: options.Cluster = None,
    *,
    effort: options.Work,
    printer: Printer,
) -> None:
    """How does the best margin grow with money: every cost at which a larger margin becomes
    possible.

    Where nodes may be asked `again`: every cost at which a smaller error can be promised, by
    purchases and repeats together.

    Example: rrf-design frontier problem.toml --time-limit 60
    """
    from rrf_design.derive import shared_words
    from rrf_design.files import load
    from rrf_design.planning import frontier

    problem = load(file)
    with options.on_cluster(cluster), printer.progress("frontier") as progress:
        means = effort.means(progress, cluster=cluster) | {"jointly": jointly, "front_end": solver, "seed": seed}
        result = frontier(problem, budget=budget, k=k, objective=objective, **means)
    held = {name for point in result.points for name in problem.design(point.selected).operator.block_ids}
    shared = "" if jointly else shared_words(problem, held, verb="frontier")
    document = sealed("rrf-frontier", result.to_json() | ({"shared_noise": shared} if shared else {}))
    if output is not None:
        write(output, document)
        printer.note(f"written to {output}")
    printer.result(document, lambda: _describe(result, shared))


def _describe(result: Frontier, shared: str) -> None:
    if shared:
        say(shared)
    if result.of_error:
        _say_errors(result)
        return
    say(f"{result.problem}: the largest {SYMBOLS[result.objective]} for k = {result.k} that each amount of money buys")
    rows = [(f"{p.cost:g}", f"{p.value:.6g}", _proven(p), ", ".join(p.selected)) for p in result.points]
    table("", ["cost", SYMBOLS[result.objective], "", "buy"], rows, right=[0, 1])
    limit = "for more money" if result.budget is None else f"within {result.budget:g}"
    say(f"Nothing larger is possible {limit}: proven." if result.complete else "The curve may go on: time ran out.")


def _say_errors(result: Frontier) -> None:
    """The curve where asking again is on sale: what is promised, and which way each point takes to
    it.
    """
    say(f"{result.problem}: the smallest error for k = {result.k} that each amount of money promises")
    rows = []
    for p in result.points:
        asks = [f"ask {name} {times} times" for name, times in p.repeats.items()]
        told = "none" if p.error_bound is None else f"{p.error_bound:.6g}"
        sure = p.error_floor is None or str(p.status) == "optimal"
        proven = "proven best" if sure else f"less than {p.error_floor:.6g} is impossible"
        rows.append((f"{p.cost:g}", told, f"{p.gamma:.6g}", proven, ", ".join([*p.selected, *asks])))
    table("", ["cost", "error", SYMBOLS[result.objective], "", "buy"], rows, right=[0, 1, 2])
    limit = "for more money" if result.budget is None else f"within {result.budget:g}"
    best = all(str(p.status) == "optimal" for p in result.points)
    if result.complete and best:
        say(f"Nothing smaller can be promised {limit}: proven.")
    else:
        say("Smaller errors may be possible where nothing is proven.")


def _proven(point: Point) -> str:
    if str(point.status) == "optimal":
        return "proven best"
    return f"at most {point.upper_bound:.6g} is possible"
