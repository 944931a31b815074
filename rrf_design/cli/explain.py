"""rrf-design explain: why is my margin zero, or small?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rrf_design.cli import _options as options
from rrf_design.cli.output import Printer, results, say, table, unit_numbers, weakest

if TYPE_CHECKING:
    from rrf_design._explain import Explanation
    from rrf_design.problem import Problem


def explain_verb(
    file: options.ProblemFile,
    k: options.Corruptions = None,
    select: options.Select = None,
    *,
    items: options.Items,
    effort: options.Work,
    printer: Printer,
) -> int:
    """Why is the margin zero, or small: who doesn't see the witness, and the purchases that would
    mend it.

    Exit code 0: the margin is what the problem asks for (its target, 2ε/δ, or positive when it
    names neither); 1: it is not. Of a table, the weakest structure of its items is explained.

    Example: rrf-design explain problem.toml
    """
    from rrf_design import explain

    given = items.given(file)
    with printer.progress("margin") as progress:
        found: Any = explain(given, options.split_ids(select), k=k, **effort.means(progress))
    printer.result(found.to_json, lambda: _describe(*weakest(given, found)))
    return 0 if all(one.enough for one in results(found)) else 1


def _singles(found: Explanation) -> None:
    """What single purchases lead to: γ, and beside it what the goal is held against."""
    columns = ["buy", "cost", f"γ_{found.margin.k} then"]
    rows = [[", ".join(p.ids), f"{p.cost:g}", f"{p.gamma:.6g}"] for p in found.singles]
    named = {"uncertainty taken off": "robust_lower", "promised error then": "error_bound"}
    for column, name in named.items():
        figures = [getattr(p, name) for p in found.singles]
        if any(figure is not None for figure in figures):
            columns.append(column)
            rows = [[*row, "" if x is None else f"{x:.6g}"] for row, x in zip(rows, figures, strict=True)]
    table("", columns, rows, right=range(1, len(columns)))


def _describe(problem: Problem, found: Explanation) -> None:
    from rrf_design._explain import nothing_helps, words

    margin = found.margin
    say(
        f"{problem.name}: γ_{margin.k} = {margin.value:.6g} ({margin.status})"
        + (f", {compared}" if (compared := found.standing.compared()) else "")
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
    if found.singles:
        _singles(found)
    goal = found.goal
    if found.enough:
        say(f"This reaches {goal} already.")
    elif found.mend is not None:
        claim = "nothing cheaper reaches it: proven" if found.proven else "not proven to be the cheapest"
        say(
            f"To reach {goal}: buy {', '.join(found.mend.ids)} for {found.mend.cost:g}; γ_{margin.k} ="
            f" {found.mend.gamma:.6g}{found.mend.figures()} then ({claim})."
        )
    else:
        say(nothing_helps(found))
