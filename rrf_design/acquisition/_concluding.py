"""What the answers of an item amount to once they are settled: its repair, or the value of a check
that decides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition._candidates import Candidates
from rrf_design.acquisition._purchases import Buys
from rrf_design.acquisition._state import ItemState, RunState
from rrf_design.checks import (
    agreed,
    agreed_premise,
    decided_premise,
    decided_verdict,
    decides,
    delivered_node,
    noise_words,
    quorum,
    sole_delivered,
    suspect_statements,
)
from rrf_design.derive import realised
from rrf_design.errors import InputError, RRFError
from rrf_design.noise import stated_within
from rrf_design.problem import Problem
from rrf_design.verdict import Verdict

if TYPE_CHECKING:
    from rrf_design.repairing import RepairEngine
    from rrf_design.repairing.contract import Prepared

_SAME = ("parse failure", "ambiguous", "out of range", "compile failure", "rejected", "timeout", "memory", "crash")
_STATUS = {
    **{name: name for name in (*_SAME, "non-integer", "vetoed")},
    **{"refused": "refusal", "empty": "missing", "truncated": "missing", "in doubt": "missing"},
}
"""How a failed answer is named to the repair, which treats it as an erasure and never as a zero."""


def conclude(designs: Mapping[str, Candidates], state: RunState, *, waiting: bool = False) -> dict[str, Any]:
    """Repair every field that is done and has no result yet: what the journal keeps of it.

    Others may still wait.

    With `waiting`, those that wait for a person too: what is known of them so far.
    """

    def ready(item: ItemState) -> bool:
        return item.done or (waiting and item.stopped is not None and not item.waiting)

    from rrf_design.repairing import RepairEngine

    new = [item for item in designs if ready(state.items[item]) and item not in state.results]
    engine = RepairEngine()
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(new), PORTION):
        found |= repaired_together(
            {item: (designs[item], state.items[item]) for item in new[start : start + PORTION]}, engine
        )
    return {"repairs": found}


PORTION = 1024
"""Items that are repaired together: those that are alike by one product of matrices."""


def repaired(design: Candidates, state: ItemState, engine: RepairEngine) -> dict[str, Any]:
    """The document of an item's repair; where a check has decided it, its value is the value.

    Several fields have one each, by their node. `engine` remembers margins and factorisations for
    items that are alike.
    """
    return repaired_together({"": (design, state)}, engine)[""]


def repaired_together(
    items: Mapping[str, tuple[Candidates, ItemState]], engine: RepairEngine
) -> dict[str, dict[str, Any]]:
    """The same of several items, those that are alike by one product of matrices."""
    parts = {item: design.fields(state.held) for item, (design, state) in items.items()}
    repairs = iter(_repairs([(part, items[item][1]) for item in items for part in parts[item]], engine))
    found = {}
    for item, (design, state) in items.items():
        fields = [(part, _after_checks(part, state, next(repairs))) for part in parts[item]]
        alone = parts[item] == (design,)
        found[item] = fields[0][1] if alone else _joined({delivered_node(part.problem): one for part, one in fields})
    return found


def _joined(fields: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One document of several: as bad as the worst of them, with the value of each."""
    bad = max(fields, key=lambda node: Verdict(fields[node]["verdict"]).rank)
    documents = list(fields.values())
    values = [document.get("repaired") or {} for document in documents]
    own = {node: document["repaired"][node] for node, document in fields.items() if document.get("repaired")}
    found = dict(fields[bad])
    for key in ("digest", "design", "alternatives", "error_bound", "decided_by"):
        found.pop(key, None)
    return found | {
        "repaired": {**{name: value for part in values for name, value in part.items()}, **own},
        "support": list(dict.fromkeys(name for document in documents for name in document.get("support") or ())),
        "erased": {name: why for document in documents for name, why in (document.get("erased") or {}).items()},
        "bounds": {name: bound for document in documents for name, bound in (document.get("bounds") or {}).items()},
        "residual": max(float(document.get("residual") or 0.0) for document in documents),
        "assumes": "; ".join(dict.fromkeys(document["assumes"] for document in documents if document["assumes"])),
        "reason": f"{bad}: {found['reason']}",
        "fields": fields,
    }


def _after_checks(design: Candidates, state: ItemState, found: dict[str, Any]) -> dict[str, Any]:
    """The document of a field whose repair is `found`: what checks state goes before it."""
    node = sole_delivered(design.problem, _bought(state))
    if Verdict(found["verdict"]) is Verdict.CHECKED or node is None:
        return found
    settled = Verdict(found["verdict"]).passes
    for anchor in sorted(design.problem.anchors, key=lambda anchor: decided_verdict(anchor).rank):
        if settled and decided_verdict(anchor) is not Verdict.CHECKED:
            return found
        entry = state.settled.get(anchor.id)
        if entry is None or not entry.ok or entry.value is None:
            continue
        if decides(design.problem, anchor, node, held=_bought(state)):
            within = stated_within(design.problem, anchor, held=_bought(state))
            wrong = [node] if state.values(Buys.ANSWER).get(node, entry.value) != entry.value else []
            told = _decided(design.problem, found, node, entry.value, within, f"{anchor.id} states the value")
            told |= {"verdict": decided_verdict(anchor).value, "assumes": decided_premise(anchor, within)}
            return told | {"support": wrong, "decided_by": anchor.id}
    return found if settled else _by_quorum(design, state, found, node)


def stated(design: Candidates, state: ItemState) -> dict[str, tuple[float, ...]]:
    """What checks said so far, bought or owned."""
    known = {name: tuple(float(x) for x in value) for name, value in state.values(Buys.ANCHOR).items()}
    for anchor in design.problem.anchors:
        if anchor.owned and anchor.value is not None:
            known.setdefault(anchor.id, anchor.value if isinstance(anchor.value, tuple) else (anchor.value,))
    return known


def _by_quorum(design: Candidates, state: ItemState, found: dict[str, Any], node: str) -> dict[str, Any]:
    """The document where checks that may be wrong, but not all of them, state one value."""
    problem = design.problem
    held = _bought(state)
    told = agreed(problem, stated(design, state), node, held=held)
    if told is None:
        return found
    value, asked = told
    stating = suspect_statements(problem, node, held=held)
    within = max(stated_within(problem, anchor, held=held) for anchor in stating)
    if problem.delta is not None and within > problem.delta:
        return found
    why = f"{quorum(problem, held)} checks of which not all can be wrong state the value"
    assumes = agreed_premise(problem, asked, held) + noise_words(within)
    stated_so = _decided(problem, found, node, value, within, why)
    return stated_so | {"verdict": Verdict.CONSISTENT.value, "assumes": assumes}


def _decided(
    problem: Problem, found: dict[str, Any], node: str, value: tuple[float, ...], within: float, why: str
) -> dict[str, Any]:
    """The document of an item whose one value checks state, `within` their noise, whatever was
    answered.
    """
    return {
        **found,
        "repaired": {**{other.id: None for other in problem.nodes}, node: list(value)},
        "support": [],
        "alternatives": [],
        "bounds": {node: within},
        "error_bound": within,
        "reason": f"{why}; what was answered is {found['verdict']}: {found['reason']}",
    }


def _repairs(fields: Sequence[tuple[Candidates, ItemState]], engine: RepairEngine) -> list[dict[str, Any]]:
    """The documents of the repairs of these fields, before any check decides."""
    from rrf_design.repairing import to_document

    found: dict[int, dict[str, Any]] = {}
    ready: dict[int, Prepared] = {}
    for i, (design, state) in enumerate(fields):
        try:
            ready[i] = _prepared(design, state, engine)
        except RRFError as error:
            found[i] = _nothing(str(error))
    try:
        found |= zip(ready, map(to_document, engine.repair(list(ready.values()))), strict=True)
    except RRFError:  # one of them can't be; the others can
        for i, field in ready.items():
            try:
                found[i] = to_document(engine.repair([field])[0])
            except RRFError as error:
                found[i] = _nothing(str(error))
    return [found[i] for i in range(len(fields))]


def _prepared(design: Candidates, state: ItemState, engine: RepairEngine) -> Prepared:
    """A field as it turned out, ready to be repaired."""
    asked = {*design.problem.node_by_id, *design.asks}
    answers = {name: value for name, value in state.values(Buys.ANSWER).items() if name in asked}
    if not answers:
        raise InputError(_unanswered(state))
    problem, selected = finished_problem(design, state)
    failed = state.failed
    silent = {
        name: {"status": _STATUS.get(entry.outcome, "error")}
        for name, entry in state.settled.items()
        if entry.buys is Buys.ANSWER and name in asked.intersection(failed) and not entry.again_of
    }
    return engine.prepared(problem, {**answers, **silent}, select=selected)


def _unanswered(state: ItemState) -> str:
    """Why there is no answer: none could be read, or nobody was asked."""
    if any(entry.buys is Buys.ANSWER and entry.came_about for entry in state.settled.values()):
        return "no answer could be read"
    stopped = state.stopped or {"because": "the run is not finished", "detail": ""}
    return "no question was asked: " + ", ".join(word for word in (stopped["because"], stopped["detail"]) if word)


def _nothing(reason: str) -> dict[str, Any]:
    """The document of a field that could not be repaired."""
    return {"repaired": None, "verdict": Verdict.INCOMPLETE.value, "assumes": "", "reason": reason}


def finished_problem(design: Candidates, state: ItemState) -> tuple[Problem, tuple[str, ...]]:
    """The problem as it turned out (values filled in, failed anchors gone) and what of it was
    bought.
    """
    failed = {name for name in state.failed if name in design.problem.block_by_id}
    unknown = {a.id for a in design.problem.anchors if a.value is None and a.id not in state.settled and a.owned}
    repeated = design.asked(state.held, state.failed)
    said = {name: value for name, value in state.values(Buys.ANCHOR).items() if name in repeated.block_by_id}
    problem = realised(repeated, failed=failed | unknown, values=said, held=_bought(state))
    bought = tuple(name for name, entry in state.settled.items() if entry.ok and name not in design.given)
    asked = tuple(name for name in state.settled if name in design.problem.node_by_id and name not in design.given)
    return problem, problem.resolve([name for name in dict.fromkeys((*bought, *asked)) if _on_sale(problem, name)])


def _bought(state: ItemState) -> frozenset[str]:
    """What was bought, and what was and could not be had."""
    return state.held.union(state.failed)


def _on_sale(problem: Problem, name: str) -> bool:
    entry = problem.node_by_id.get(name) or problem.block_by_id.get(name)
    return entry is not None and entry.cost is not None
