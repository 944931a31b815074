"""rrf-design margin: how observable is this design?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli.output import (
    AsJson,
    Jobs,
    ProblemFile,
    Quiet,
    Select,
    TimeLimit,
    print_json,
    progress_bar,
    say,
    split_ids,
    table,
)

if TYPE_CHECKING:
    from rrf_design.margins import DesignMargin


def register(app: typer.Typer) -> None:
    app.command("margin")(margin)


def margin(
    file: ProblemFile,
    k: Annotated[int | None, typer.Option("--k", help="Corruption budget; default: the problem's.")] = None,
    select: Select = None,
    everything: Annotated[bool, typer.Option("--all", help="Add everything that is on sale.")] = False,
    jobs: Jobs = 1,
    time_limit: TimeLimit = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """How observable is a design: its margin γ_k, and the witness that is hardest to see.

    Example: rrf-design margin problem.toml --select a3
    """
    from rrf_design.errors import InputError
    from rrf_design.files import load

    if select is not None and everything:
        raise InputError("give --select or --all, not both")
    problem = load(file)
    chosen = "all" if everything else split_ids(select)
    with progress_bar("margin", quiet=quiet) as progress:
        result = problem.margin(chosen, k=k, n_jobs=jobs, time_limit=time_limit, progress=progress)
    if as_json:
        print_json(result.to_json())
    else:
        _describe(problem.name, result)
    raise typer.Exit(0)


def _describe(name: str, result: DesignMargin) -> None:
    say(
        f"{name}: γ_{result.k} = {result.value:.6g}  ({result.status}; proven between {result.lower:.9g} and {result.upper:.9g})"
    )
    shares = {node: sum(x * x for x in part) for node, part in result.witness.items()}
    rows = [(n, f"{s:.1%}", ", ".join(f"{x:.4g}" for x in result.witness[n][:6])) for n, s in shares.items()]
    table("", ["witness node", "share", "direction"], rows, right=[1])
    seen = result.seen_by()
    scale = max(seen.values(), default=0.0)
    eyes = sorted(
        (name for name, e in seen.items() if e > 1e-9 * max(scale, 1e-30) and e > 1e-18), key=lambda n: -seen[n]
    )
    table("", ["block that sees it", "energy"], [(b, f"{seen[b]:.4g}") for b in eyes[:12]], right=[1])
    say(_meaning(result, len(seen) - len(eyes)))


def _meaning(result: DesignMargin, blind: int) -> str:
    nodes = ", ".join(result.support)
    if result.value == 0.0:
        return (
            f"No method can guarantee to find {result.k} wrong answer{'s' if result.k > 1 else ''}: an error on {nodes} along the"
            f" witness changes nothing that this design measures ({blind} blocks are blind to it). Buy a block that sees it."
        )
    return (
        f"Any {result.k} wrong answer{'s' if result.k > 1 else ''} can be found; noise of size ε can hide an error of up to"
        f" 2ε/γ = {2 / result.value:.4g} ε, most easily on {nodes} ({blind} blocks are blind to that direction)."
    )
