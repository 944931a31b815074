"""rrf-design explain: why is my margin zero, or small?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli.items import Data, ItemId, Limit, Sample, describe_structures, many_items, one_item
from rrf_design.cli.output import (
    AsJson,
    Jobs,
    ProblemFile,
    Quiet,
    Seed,
    Select,
    TimeLimit,
    print_json,
    progress_bar,
    say,
    split_ids,
    table,
    unit_numbers,
)

if TYPE_CHECKING:
    from rrf_design.explaining import Explanation
    from rrf_design.problem import Problem


def register(app: typer.Typer) -> None:
    app.command("explain")(explain_verb)


def explain_verb(
    file: ProblemFile,
    k: Annotated[int | None, typer.Option("--k", help="Corruption budget; default: the problem's.")] = None,
    select: Select = None,
    data: Data = None,
    item: ItemId = None,
    limit: Limit = None,
    sample: Sample = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    time_limit: TimeLimit = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Why is the margin zero, or small: who doesn't see the witness, and the purchases that would mend it.

    Exit code 0: the margin is what the problem asks for (its target, 2ε/δ, or positive when it names neither); 1: it is not. Of a table, the weakest
    structure of its items is explained.

    Example: rrf-design explain problem.toml
    """
    from rrf_design.explaining import explain as explain_design

    many = many_items(file, data, item, limit=limit, sample=sample, seed=seed)
    problem = one_item(file, data, item) if many is None else None
    with progress_bar("margin", quiet=quiet) as progress:

        def solve(one: Problem) -> Explanation:
            return explain_design(one, split_ids(select), k=k, n_jobs=jobs, time_limit=time_limit, progress=progress)

        if many is not None:
            from rrf_design.handover import by_structure

            parts = by_structure(many, solve, lambda explained: explained.margin.value)
            problem, found = parts.worst.problem, parts.worst.result
            enough = all(speaker.result.enough for speaker in parts.speakers)
        else:
            assert problem is not None
            found = solve(problem)
            enough = found.enough
    if as_json:
        print_json(found.to_json() if many is None else parts.to_json())
    else:
        if many is not None:
            describe_structures(parts)
        _describe(problem.name, found)
    raise typer.Exit(0 if enough else 1)


def _describe(name: str, found: Explanation) -> None:
    from rrf_design.explaining import words

    margin = found.margin
    say(
        f"{name}: γ_{margin.k} = {margin.value:.6g} ({margin.status})"
        + ("" if found.wanted is None else f", wanted {found.wanted:.6g}")
    )
    say(words(found))
    rows = [(name, f"{share:.1%}", unit_numbers(margin.witness[name])) for name, share in found.shares.items()]
    table("", ["witness node", "share", "direction"], rows, right=[1])
    if found.sees:
        table(
            "", ["block that sees it", "energy"], [(b, f"{e:.4g}") for b, e in list(found.sees.items())[:8]], right=[1]
        )
    if found.blind:
        more = f" and {len(found.blind) - 8} more" if len(found.blind) > 8 else ""
        say(f"On these nodes, but blind to it: {', '.join(found.blind[:8])}{more}.")
    _offers(found)


def _offers(found: Explanation) -> None:
    from rrf_design.explaining import nothing_helps

    margin = found.margin
    if found.singles:
        rows = [(", ".join(p.ids), f"{p.cost:g}", f"{p.gamma:.6g}") for p in found.singles]
        table("", ["buy", "cost", f"γ_{margin.k} then"], rows, right=[1, 2])
    goal = found.goal
    if found.enough:
        say(f"This is {goal} already.")
    elif found.mend is not None:
        claim = "nothing cheaper reaches it: proven" if found.proven else "not proven to be the cheapest"
        say(
            f"To reach {goal}: buy {', '.join(found.mend.ids)} for {found.mend.cost:g}; γ_{margin.k} = {found.mend.gamma:.6g} then"
            f" ({claim})."
        )
    else:
        say(nothing_helps(found))
