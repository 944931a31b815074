"""repair: validate, decode at the radius that the truth keeps to, finish."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rrf_design.bundles import Backend, Given, bundled, refuse_unused
from rrf_design.itemwise import for_each_item
from rrf_design.noise import Noise
from rrf_design.repairing.contract import Decoder, DecoderOutcome, Repair, Task
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.finishing import finish
from rrf_design.repairing.methods import choose, refuse_calibration_fields
from rrf_design.repairing.uncertain import widened

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection
    from solvers.result import Progress

MEANS = ("n_jobs", "time_limit", "seed", "progress", "options")
"""What a repair takes of a `Backend`."""


@bundled(noise=Noise, given=Given, backend=Backend, rest="backend")
@for_each_item("rrf_design.handover", "repair_dataset")
def repair(
    problem: Problem,
    responses: Any,
    *,
    select: Selection = None,
    method: str = "auto",
    k: int | None = None,
    noise: Noise | None = None,
    given: Given | None = None,
    backend: Backend | None = None,
) -> Repair:
    """Which responses were wrong, and what they should have been; of a data set, in every item (`repair_dataset`).

    `responses` maps node ids to numbers, lists, raw text (for nodes with a parser) or None, or is a path. `method` is
    auto, exact, convex, discrete, min-sum, majority, median or mode. ε is that of `noise`, else the problem's epsilon,
    else the radius of its sigma and confidence, else 0 with the stated rounding tolerance. `given` is what is known beside the
    answers: candidates, anchor values, and the truth, which is used for nothing but the failure labels. `backend` says how the work is
    done; its `options` go to the decoder (convex: penalty, weights; discrete: solver, beta, mu, depth).

    Responses are y = z + e, and ‖B e − s‖ ≤ ε for the syndrome s = B y − c: the error with the fewest wrong nodes is sought. Returns
    a `Repair`: `repaired` values (None where nothing vouches for one), the wrong nodes (`support`), `verdict` with what it `assumes`,
    `error_bound`, and other explanations (`alternatives`).

    >>> import rrf_design as rrf
    >>> problem = rrf.Problem(
    ...     k=1,
    ...     epsilon=0.1,
    ...     nodes=[{"id": "plain"}, {"id": "reworded"}, {"id": "capital"}],
    ...     relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
    ...     anchors=[
    ...         {"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0},
    ...         {"id": "atlas", "node": "capital", "value": 1.0, "cost": 2.0},
    ...     ],
    ... )
    >>> answers = {"plain": 42, "reworded": 17, "capital": 1}
    >>> fixed = rrf.repair(problem, answers, select=["calculator", "atlas"])
    >>> fixed.verdict.value, fixed.support, fixed.repaired["reworded"]
    ('certified', ('reworded',), (42.0,))
    """
    beside, means = given or Given(), Backend.of(backend, "repair", *MEANS)
    refuse_unused(beside, "repair of one problem", ("candidates", "anchors", "truth", "hidden"))
    if problem.nonlinear:
        from rrf_design.repairing.locally import repair_locally

        other = {"select": select, "method": None if method == "auto" else method, "candidates": beside.candidates}
        other |= {"truth": beside.truth, "anchors": beside.anchors, **means.options}
        return repair_locally(problem, responses, k=k, noise=noise, seed=means.seed, other=other)
    operator = problem.operator(select)
    task, field = make_task(problem, operator, responses, k=k, noise=noise, given=beside, backend=means)
    decoder, why = choose(method, task)
    refuse_calibration_fields(task)
    started = time.perf_counter()
    design = Decoding.of(task)
    task, outcome = decode(task, decoder, design)
    if means.progress is not None:
        design.watch(_so_far(task, outcome))
    return finish(
        task,
        field,
        outcome,
        design,
        selected=problem.resolve(select),
        given=beside,
        seconds=time.perf_counter() - started,
        notes=(why,) if why else (),
    )


def decode(task: Task, decoder: Decoder, design: Decoding) -> tuple[Task, DecoderOutcome]:
    """The decoder's outcome at the radius that the truth keeps to, and the task with that radius."""
    wider = widened(task, decoder, design)
    if wider is not None:
        return wider, decoder.decode(wider)
    note = (
        "relations are uncertain by more than the margin allows, and nothing bounds the true answers; give their nodes a"
        " range, or the problem an amplitude"
    )
    found = decoder.decode(task)
    return task, replace(found, boundless=True, notes=(*found.notes, note))


def _so_far(task: Task, outcome: DecoderOutcome) -> Progress:
    """Progress of the margin, which comes last: the answer is there, what it is worth is not."""
    edited = [name for name, i in task.operator.node_index.items() if outcome.error[task.operator.groups[i]].any()]
    found = ", ".join(name for name in edited if task.operator.node_index[name] not in task.erased) or "no answer"

    def told(share: float | None, bounds: tuple[float, float] | None, _: str) -> None:
        assert task.progress is not None
        lower, upper = bounds or (0.0, float("inf"))
        words = f"found wrong: {found}; without its margin yet, γ is between {lower:.4g} and {upper:.4g}"
        task.progress(share, bounds, words)

    return told
