"""rrf-design plan: what should I buy?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli import _options as options
from rrf_design.cli.output import Printer, say, table
from rrf_design.documents import write
from rrf_design.errors import InputError
from rrf_design.planning.contract import Aim

if TYPE_CHECKING:
    from rrf_design.planning import Plan
    from rrf_design.questions import Dataset
    from rrf_design.tables import DatasetPlan

NODES_SHOWN = 6
COMPONENTS_SHOWN = 12
SYMBOLS = {"gamma": "γ", "gamma_sigma": "γ_Σ", "robust": "γ − η"}
MEANINGS = {
    "gamma": "rows as they are weighted",
    "gamma_sigma": "rows divided by their declared noise",
    "robust": "noise divided out, and what the blocks' uncertainty can take away subtracted",
}
PLANNERS = {
    "optimal": "hull rows and witness cuts",
    "witness-cuts": "witness cuts alone",
    "components": "the best choice for every component",
    "greedy": "the witness greedy",
    "lookahead": "the witness greedy with look-ahead",
    "local": "greedy and exchanges",
    "every design": "trying every design",
    "every selection, jointly": "trying every selection",
}

Method = Annotated[
    str,
    typer.Option(
        "--method",
        help=("auto, greedy, optimal; also lookahead, local, witness-cuts, and planners of other packages."),
    ),
]
ObjectiveOption = Annotated[
    str | None,
    typer.Option("--objective", help="gamma, gamma_sigma or robust; default: gamma_sigma where noise is declared."),
]
Solver = Annotated[str, typer.Option("--solver", help='Master of the optimal planner: ortools, pulp or "pulp:NAME".')]
Jointly = Annotated[
    bool,
    typer.Option(
        "--jointly",
        help=(
            "Whiten held blocks of one [[noise]] covariance together and try every selection: exact, for few purchases."
        ),
    ),
]


def plan_verb(
    file: options.ProblemFile,
    budget: Annotated[float | None, typer.Option("--budget", help="What may be spent.")] = None,
    target: Annotated[float | None, typer.Option("--target", help="The margin to reach, at least cost.")] = None,
    method: Method = "auto",
    aim: Annotated[
        str | None,
        typer.Option(
            "--aim",
            help=(
                "worst (the smallest margin), reached (as many components as possible at the goal) or leximin;"
                " default: worst, and where money can't raise it reached."
            ),
        ),
    ] = None,
    objective: ObjectiveOption = None,
    k: options.Corruptions = None,
    solver: Solver = "ortools",
    jointly: Jointly = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the witness behind every purchase.")] = False,
    *,
    items: options.Items,
    cluster: options.Cluster = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the plan as a JSON document.")] = None,
    effort: options.Work,
    printer: Printer,
) -> int:
    """What should I buy: the largest margin for a budget, or the cheapest design for a target.

    With a recipe, one budget is spent over all items of its table (or each reaches the goal at
    least cost).

    Example: rrf-design plan problem.toml --budget 3 --explain -o plan.json

    Example: rrf-design plan recipe.toml --data table.csv --budget 400 --json
    """
    from rrf_design.planning import plan as make_plan
    from rrf_design.planning import write_plan
    from rrf_design.planning.contract import to_document
    from rrf_design.planning.registry import AUTO_SECONDS, asked
    from rrf_design.problem import Problem

    given = items.given(file)
    call: dict[str, Any] = {
        "budget": budget,
        "target": target,
        "k": k,
        "objective": objective,
        "aim": aim,
        "seed": items.seed,
    }
    if not isinstance(given, Problem):
        if method not in ("auto", "optimal") or explain or jointly:
            raise InputError("--method, --jointly and --explain go with one problem; name an item with --item")
        return _plan_table(given, call, cluster, effort, output, printer)
    options.only_with_tables(cluster=cluster)
    what = "margin" if asked(given, budget, target)[1] is None else "cost"
    seconds = AUTO_SECONDS if effort.time_limit is None and method == "auto" else effort.time_limit
    call |= {"method": method, "jointly": jointly, "front_end": solver}
    with printer.progress(what, time_limit=seconds) as progress:
        result = make_plan(given, **call, **effort.means(progress))
    if output is not None:
        write_plan(result, output)
        printer.note(f"written to {output}")
    printer.result(lambda: to_document(result), lambda: _describe(result, explain=explain))
    return 0 if result.met else 1


def _plan_table(
    given: Dataset,
    call: dict[str, Any],
    cluster: str | None,
    effort: options.Work,
    output: Path | None,
    printer: Printer,
) -> int:
    """One budget over all items of a table, or the goal for each."""
    from rrf_design.planning import plan as make_plan

    with options.on_cluster(cluster):
        whole = make_plan(given, **call, **effort.means(None, cluster=cluster))
    if output is not None:
        write(output, whole.to_json())
    printer.result(whole.to_json, lambda: _describe_items(whole))
    # Like one problem's: a budget alone asks for the best it can do, and has it.
    return 0 if whole.reached or (call["budget"] is not None and call["target"] is None) else 1


def _describe_items(result: DatasetPlan) -> None:
    """A plan over a table for people: what how many items buy."""
    say(f"{result.dataset.recipe.name}: {result.sentence()}")
    rows = [
        (str(count), share.bought, f"{share.cost:g}", f"{share.gamma:.6g}")
        for parts in result.shares.values()
        for share, count in parts
    ]
    table("", ["items", "buy", "cost of each", "γ then"], rows, right=[0, 2, 3])


def _describe(result: Plan, *, explain: bool) -> None:
    """A plan for people: what to buy first, why, what it does to the margin, and how far from the
    best it is.
    """
    say(f"{result.problem}: {_headline(result)}")
    rows = []
    for number, step in enumerate(result.trajectory, start=1):
        bought = step.block + (f" (asks {', '.join(step.opened)})" if step.opened else "")
        rows.append((str(number), bought, f"{step.cost:g}", _nodes(step.support), f"{step.gamma:.6g}"))
    if rows:
        then = f"{SYMBOLS[str(result.objective)]} then"
        table("", ["", "buy", "cost", "because of an error on", then], rows, right=[0, 2, 4])
    if explain:
        for step in result.trajectory:
            parts = "; ".join(f"{n}: {', '.join(f'{x:.4g}' for x in part)}" for n, part in step.witness.items())
            reason = f"sees ‖C h‖² = {step.energy:.4g} of h = ({parts})" if parts else "is demanded by a rule"
            say(f"  {step.block} {reason}")
    if len(result.components) > 1:
        listed = sorted(result.components, key=lambda one: (not one.cost, one.reached, one.gamma))
        cells = [(_nodes(o.nodes), f"{o.gamma:.6g}", "yes" if o.reached else "no", f"{o.cost:g}") for o in listed]
        table("", ["component", "γ then", "at the goal", "cost"], cells[:COMPONENTS_SHOWN], right=[1, 3])
        if len(cells) > COMPONENTS_SHOWN:
            say(f"… and {len(cells) - COMPONENTS_SHOWN} more components (--json has them all)")
    say(_verdict(result))
    for text in result.notes:
        say(f"Note: {text}.")


def _headline(result: Plan) -> str:
    """The answer, how sure it is, what was maximised, and who found it."""
    objective = str(result.objective)
    value = f"{SYMBOLS[objective]}_{result.k} = {result.value:.6g}"
    if result.aim is Aim.REACHED:
        many = f"{result.value:.0f} of {len(result.components)} components"
        value = f"{many} at the goal, {SYMBOLS[objective]}_{result.k} = {result.gamma:.6g}"
    spent = f"for {result.cost:g}" + (f" of {result.budget:g}" if result.budget is not None else "")
    goal = "" if result.target is None else f", target {result.target:g}"
    found = PLANNERS.get(result.method, f"the planner {result.method}")
    return f"{value} {spent}{goal} ({_sure(result)}; found by {found}; objective {objective}: {MEANINGS[objective]})"


def _sure(result: Plan) -> str:
    if str(result.status) == "infeasible":
        return "the target is out of reach: proven"
    if str(result.status) == "feasible":
        return "not proven to be best"
    least = result.target is not None and result.aim is Aim.WORST
    return "proven to be the cheapest" if least else "proven to be the best"


def _verdict(result: Plan) -> str:
    left = "" if result.left_over is None else f" {result.left_over:g} is left over."
    if result.aim is not Aim.WORST:
        what = "brings more components to the goal, or" if result.aim is Aim.REACHED else "has"
        better = (
            f"No design within the budget {what} margins that are larger in leximin order, and none as good costs less"
        )
        if str(result.status) == "optimal":
            return f"{better}: proven, with margins compared to nine digits.{left}"
        return f"Whether another design does better was not decided.{left}"
    if result.target is not None and result.met:
        if str(result.status) == "optimal":
            return f"No design that reaches the target costs less: proven.{left}"
        return f"The target is reached; a design that reaches it costs at least {result.cost_bound or 0:g}.{left}"
    if str(result.status) == "optimal":
        least = ", and none that does as well costs less" if result.least_cost else ""
        open_cost = "" if result.least_cost else " Whether a cheaper one does as well was not decided."
        gap = f"proven to a relative gap of {result.gap:.1g}"
        return f"No design within the budget does better{least}: {gap}.{open_cost}{left}"
    return f"At most {result.upper_bound:.6g} is possible: this plan is within {result.gap:.2%} of the best.{left}"


def _nodes(support: tuple[str, ...]) -> str:
    if len(support) > NODES_SHOWN:
        return f"{', '.join(support[:NODES_SHOWN])} and {len(support) - NODES_SHOWN} more"
    return ", ".join(support)
