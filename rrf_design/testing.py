"""For tests of your own: `assert_share` holds a result to a share of rows that may be believed,
and conformance suites say what every margin solver, planner, model adapter and transformation must
do.

Each `check_` function tries a part on small problems whose answers are known and raises
AssertionError with one line about the first promise that is broken; it returns nothing when all are
kept. They need no test framework:

    from rrf_design.testing import check_planner

    def test_my_planner():
        check_planner(MyPlanner())

Scenarios have theirs in `scenarios.conformance`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.models import Model, Request
    from rrf_design.planning import Planner
    from rrf_design.problem import Problem
    from rrf_design.promises import TestedDelivery
    from rrf_design.repairing import Repair
    from rrf_design.tables import Delivery
    from rrf_design.transforms import Original, Transform
    from rrf_design.verdict import Verdict

__all__ = ["assert_share", "check_model", "check_planner", "check_solver", "check_transform"]

TOLERANCE = 1e-7
"""Relative, for figures that are computed twice."""


NAMED = 5
"""Rows that a failure names."""


def assert_share(result: Delivery | TestedDelivery | Acquisition | Repair, *, believed: float | str) -> None:
    """Fail unless at least this share of the rows is `checked` or `consistent`.

    Of how many rows are wrong this says nothing, as no verdict does: `deliver` and `audit` test
    that.

    Parameters
    ----------
    result
        What `repair`, `acquire` or `deliver` gave, of a table or of one problem.
    believed
        The share, as a number or a text: 0.9, "90%".

    Returns
    -------
    Nothing; AssertionError says in one line how many rows it is, and names the first others.

    >>> import rrf_design as rrf
    >>> from rrf_design.testing import assert_share
    >>> ask = [{"id": name, "prompt": "{{ text }}?", "parse": "decimal"} for name in "abc"]
    >>> asks = [ask[0], *({**one, "like": "a"} for one in ask[1:])]
    >>> recipe = {"answer": {"of": "a", "tolerance": 0.5}, "ask": asks}
    >>> sums = rrf.dataset(recipe, [{"text": "1 + 2"}])
    >>> said = [{"id": 1, "node": name, "value": 3} for name in "abc"]
    >>> assert_share(rrf.repair(sums, said), believed="90%")
    >>> assert_share(rrf.repair(sums, said[:1]), believed="90%")
    Traceback (most recent call last):
    AssertionError: 0 of 1 rows (0 %) are checked or consistent, wanted 90 %: '1' is incomplete
    """
    from rrf_design.arguments import share_number
    from rrf_design.errors import InputError

    wanted = share_number(believed, "believed")
    if not 0.0 <= wanted <= 1.0:
        raise InputError(f"believed {believed!r:.40}: should be a share between 0 and 1")
    verdicts = list(_verdicts(result))
    others = [(name, verdict) for name, verdict in verdicts if not verdict.passes]
    passing = len(verdicts) - len(others)
    part = passing / max(1, len(verdicts))
    if verdicts and part >= wanted:
        return
    named = ", ".join(f"{name!r:.40} is {verdict}" for name, verdict in others[:NAMED])
    more = f", and {len(others) - NAMED:,} more" if len(others) > NAMED else ""
    raise AssertionError(
        f"{passing:,} of {len(verdicts):,} rows ({100 * part:.3g} %) are checked or consistent,"
        f" wanted {100 * wanted:.3g} %: {named or 'there is no row'}{more}"
    )


def _verdicts(result: Any) -> Iterator[tuple[str, Verdict]]:
    """Every row of a result with what may be believed of it."""
    delivery = getattr(result, "delivery", result)
    if hasattr(delivery, "rows") and callable(delivery.rows):
        return ((row.id, row.verdict) for row in delivery.rows())
    if hasattr(result, "items"):
        return ((entry.item or entry.name, entry.verdict) for entry in result.items)
    return iter([(", ".join(result.repaired) or "the problem", result.verdict)])


def check_solver(solve: Callable[..., Any]) -> None:
    """A margin solver: `solve(B, groups, k=k)` with the result of `solvers.margin`, held to plain
    enumeration.
    """
    import numpy as np

    from solvers import margin

    for name, matrix, groups, k in _fields():
        before = matrix.copy()
        found = solve(matrix, groups, k=k)
        _require(np.array_equal(matrix, before), f"{name}: the caller's matrix was changed")
        truth = margin(before, groups, k=k, method="enumerate").value
        room = TOLERANCE * max(1.0, truth)
        _require(found.lower <= truth + room, f"{name}: the lower bound {found.lower} is above the margin {truth}")
        _require(found.upper >= truth - room, f"{name}: the upper bound {found.upper} is below the margin {truth}")
        _require(found.lower <= found.upper, f"{name}: the lower bound {found.lower} is above the upper {found.upper}")
        settled = found.upper - found.lower <= room
        _require(str(found.status) in ("exact", "bounded"), f"{name}: {found.status!r} is no status")
        _require(settled or str(found.status) == "bounded", f"{name}: called exact with bounds that are apart")
        _require(len(found.support) <= 2 * k, f"{name}: the support has {len(found.support)} nodes, more than 2k")
        direction = np.asarray(found.direction, dtype=float)
        _require(abs(float(direction @ direction) - 1.0) < 1e-6, f"{name}: the witness has not length 1")
        inside = np.zeros(len(direction), dtype=bool)
        for node in found.support:
            inside[sum(groups[:node]) : sum(groups[: node + 1])] = True
        _require(not direction[~inside].any(), f"{name}: the witness is not zero outside its support")
        attained = float(np.linalg.norm(before @ direction))
        _require(
            attained <= found.upper + 1e-6, f"{name}: the witness moves {attained}, more than the upper bound says"
        )


def check_transform(
    transform: Transform,
    cases: Iterable[tuple[Original, Mapping[str, Any], Sequence[float], Sequence[float]]],
) -> None:
    """A transformation: each case is a question, its settings, the true answer and that of the
    other question, as vectors that somebody wrote by hand.
    """
    from rrf_design.blocks import Transport
    from rrf_design.transforms._base import BRACES

    for question, options, truth, other in cases:
        name = f"{transform.name} of {question.prompt[:40]!r}"
        made = transform.apply(question, options)
        _require(made.prompt != question.prompt, f"{name}: the question is the same")
        gone = sorted({*BRACES.findall(question.prompt)} - {*BRACES.findall(made.prompt)})
        _require(not gone, f"{name}: it lost {', '.join(gone)}")
        change = dict(made.change or {})
        shift = change.pop("shift", 0.0)
        _require(isinstance(shift, int | float), f"{name}: give a case whose settings are numbers")
        moved = (sum(other),) if made.sums else Transport(**change).forward(truth, shift)
        wanted = list(truth) if made.sums else list(other)
        size = sum(number * number for number in truth) ** 0.5
        near = len(moved) == len(wanted) and all(
            abs(a - b) <= made.radius * size + TOLERANCE * max(1.0, abs(b)) for a, b in zip(moved, wanted, strict=True)
        )
        _require(
            near, f"{name}: the true answer {list(truth)} moves to {list(moved)}, and {wanted} was written by hand"
        )


def check_planner(planner: Planner) -> None:
    """A planner: within budget, rules kept, the margin as the solver has it, and a bound that
    nothing beats.
    """
    from rrf_design.planning import Order, plan
    from rrf_design.planning.evaluator import Evaluator

    problem = _market()
    for budget in (0.0, 2.0, 5.0, 50.0):
        best = plan(problem, budget=budget, method="optimal")
        evaluator = Evaluator(problem)
        found = planner.plan(evaluator, Order(budget=budget))
        here = f"{planner.name}, budget {budget:g}"
        mask = evaluator.market.mask(found.selected)
        broken = evaluator.market.broken(mask)
        _require(broken == "", f"{here}: {broken}")
        _require(
            found.cost == float(evaluator.market.cost(mask)),
            f"{here}: the cost {found.cost} is not that of the selection",
        )
        _require(found.cost <= budget, f"{here}: spends {found.cost}")
        margin = problem.margin(found.selected)
        close = abs(found.gamma - margin.value) <= TOLERANCE * max(1.0, margin.value)
        _require(close, f"{here}: says {found.gamma}, the margin is {margin.value}")
        bound = found.upper_bound >= best.gamma * (1 - TOLERANCE)
        _require(bound, f"{here}: the bound {found.upper_bound} is below a margin that can be bought, {best.gamma}")
        _require(0.0 <= found.gap <= 1.0, f"{here}: the gap is {found.gap}")
        claimed = str(found.status) != "optimal" or found.gamma >= best.gamma * (1 - 1e-4)
        _require(claimed, f"{here}: called optimal at {found.gamma}, but {best.gamma} can be bought")
        steps = {name for step in found.trajectory for name in (step.block, *step.opened)}
        _require(steps == set(found.selected), f"{here}: the trajectory does not buy what is selected")
        _require(found.method == planner.name, f"{here}: calls itself {found.method!r}")


def check_model(model: Model, request: Request | None = None) -> None:
    """A model adapter: everything that a run must keep, order, identity, and answers that repeat
    when decoding is greedy.
    """
    from rrf_design.errors import InputError
    from rrf_design.models import Outcome, Reply, Request

    asked = request if request is not None else Request("What is 2 + 3?", max_tokens=12, top_p=None, seed=None)
    kept = replace(asked)
    first, again = model.complete([asked, asked])
    _require(asked == kept, "the request was changed")
    _require(first.outcome in (Outcome.ANSWERED, Outcome.TRUNCATED), f"no answer: {first.outcome}")
    _require(bool(first.text.strip()), "an answer without text; silence is an outcome of its own")
    _require(first.usage.calls >= 1 and first.usage.output_tokens > 0, f"usage is not counted: {first.usage}")
    _require(first.usage.output_tokens <= asked.max_tokens, "more tokens than were allowed")
    _require(
        asked.prompt in json.dumps(first.raw_request, ensure_ascii=False), "the raw request does not hold the prompt"
    )
    _require(bool(first.raw_response), "the raw response is not kept")
    _require(first.text == again.text, "greedy decoding gave two answers to one request")
    _require(Reply.from_document(json.loads(json.dumps(first.document()))) == first, "a reply does not survive JSON")
    identity = dict(model.identity)
    named = bool(identity.get("adapter")) and bool(identity.get("model"))
    _require(named, f"the identity names no adapter and model: {identity}")
    _require(json.loads(json.dumps(identity)) == identity, "the identity is not plain JSON")
    _require(dict(first.identity) == identity, "a reply does not carry the model's identity")
    _require(model.slots >= 1, f"slots: {model.slots}")
    _require(model.complete([]) == (), "no requests must give no replies")
    if not model.supports_grammar:
        try:
            model.ask(replace(asked, grammar='root ::= "yes" | "no"'))
        except InputError:
            return
        _require(False, "a grammar was ignored; an adapter without grammars refuses them")


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise AssertionError(words)


def _fields() -> Iterator[tuple[str, Any, list[int], int]]:
    """Small fields of every kind: dense, a graph, nodes of several dimensions, margin zero, more
    columns than rows.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    yield "identity", np.eye(3), [1, 1, 1], 1
    yield "an untouched node", np.array([[1.0, -1.0, 0.0]]), [1, 1, 1], 1
    yield "two equal columns", np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0]]), [1, 1, 1], 1
    for seed in range(3):
        sizes = [1, 2, 1, 3, 1] if seed == 1 else [1] * 7
        yield f"dense {seed}", rng.normal(size=(sum(sizes) - 1 + seed, sum(sizes))), sizes, 1 + seed % 2
    ring = np.eye(8) - np.roll(np.eye(8), 1, axis=1)
    yield "a ring with one anchor", np.vstack([ring, np.eye(8)[:1]]), [1] * 8, 2
    yield "more nodes allowed than there are", rng.normal(size=(4, 3)), [1, 1, 1], 5


def _market() -> Problem:
    """Six questions; relations, anchors and one more question on sale, with a rule and a link
    between two of them.
    """
    from rrf_design.problem import Problem

    names = "abcdef"
    return Problem(
        nodes=[{"id": name, **({"cost": 0.5} if name == "f" else {})} for name in names],
        relations=[
            {"id": "ab", "tail": "a", "head": "b"},
            {"id": "bc", "tail": "b", "head": "c", "transport": {"scale": 2.0}},
            {"id": "cd", "tail": "c", "head": "d", "cost": 1.0},
            {"id": "ae", "tail": "a", "head": "e", "cost": 1.5},
            {"id": "ef", "tail": "e", "head": "f", "cost": 0.5},
        ],
        anchors=[{"id": f"see-{name}", "node": name, "cost": 1.0 + i / 2} for i, name in enumerate("abde")],
        rules=[{"id": "one of the first two", "blocks": ["see-a", "see-b"], "at_most": 1}],
    )
