"""One row of a delivered table as somebody opens it: what was handed in, who answered what, what
the answers mean of the delivered value, and the field with the wrong ones crossed out.

The recipe and the recorded answers beside the table are read for this row alone, so the size of the
table does not matter. Where they are not there, the row itself is all there is to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.journal import Event, Kind
from rrf_design.errors import InputError, RRFError
from rrf_design.promises import read_sheet
from rrf_design.questions import dataset
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.reporting import FieldView, draw_field
from rrf_design.reporting.pages import Markup
from rrf_design.tables import repair_dataset
from rrf_design.texts import cell_text

if TYPE_CHECKING:
    from pathlib import Path

    from rrf_design.problem import Problem
    from rrf_design.questions.datasets import DataItem
    from rrf_design.questions.recipe import Recipe
    from rrf_design.studio._index import TableIndex
    from rrf_design.studio._library import Library
    from rrf_design.studio.labels import Question
    from rrf_design.tables import Row

TOLD = ("verdict", "reason", "cost", "gain_per_cost", "rank")
"""What a question says of its row, beside the answers."""
MOST_ANSWERS = 9
"""Answers that a key takes."""
FEW = 400
"""Characters of an answer beside its node in the drawing."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What one node was asked and answered."""

    node: str
    prompt: str
    text: str
    status: str
    means: str | None
    """What it says of the delivered value, in words; None where it says nothing of it."""
    wrong: bool


@dataclass(frozen=True, slots=True)
class RowPurchase:
    """One thing that a run bought for the row, as its journal has it."""

    name: str
    at: datetime
    why: str
    cost: float
    came: str
    """What became of it."""
    raw: Mapping[str, Any]
    """What was sent and what came back; keys and passwords were left out when it was written."""


@dataclass(frozen=True, slots=True)
class Item:
    """A row with everything that lies behind it."""

    id: str
    place: int
    own: Mapping[str, Any]
    ours: Mapping[str, Any]
    answers: Sequence[_Said] = ()
    drawing: Markup | None = None
    note: str = ""
    """Why there is no more to show."""
    bought: Sequence[RowPurchase] = ()
    run: str = ""
    ended: str = ""
    """Why no more was bought, and in which run."""

    @property
    def groups(self) -> list[tuple[str, list[_Said]]]:
        """Answers by what they mean, those that most say first."""
        found: dict[str, list[_Said]] = {}
        for said in self.answers:
            if said.means is not None:
                found.setdefault(said.means, []).append(said)
        return sorted(found.items(), key=lambda group: -len(group[1]))


def open_item(library: Library, path: Path, index: TableIndex, name: str) -> Item:
    """The row of this id; InputError where there is none that may be shown."""
    found = index.row(name)
    if found is None:
        raise InputError(f"there is no row {name!r:.80} here, or it waits for a blind look")
    place, cells = found
    delivered = index.delivered
    own = {key: cells.get(key) for key in delivered.own}
    ours = {key: cells.get(key) for key in cells if key not in own}
    recipe = library.recipe(path)
    if recipe is None:
        return Item(name, place, own, ours, note="No recipe lies beside this table, so its questions are not known.")
    if path.suffix.lower() == ".json":  # a document has what was delivered, not what was handed in
        own = {**library.handed_in(path.parent, recipe, name)} or own
    rows = [row for lines in library.answers(path.parent) for row in lines.of(name)]
    told: dict[str, Any] = {}
    if (there := library.events(path.parent, name)) is not None:
        told = {"run": there[0].run, "bought": _bought(there[1]), "ended": _ended(there[1])}
        rows = _of_table(cell_text(ours.get(delivered.ours.get("raw", ""))), rows, _recorded(there[1]))
    if not rows:
        return Item(name, place, own, ours, note="No recorded answers of this row lie beside the table.", **told)
    try:
        answers, drawing = _behind(recipe, own, name, rows)
    except (RRFError, ValueError) as error:
        return Item(name, place, own, ours, note=f"What lies behind it can't be shown: {error}", **told)
    return Item(name, place, own, ours, answers, drawing, **told)


def _of_table(raw: str, *sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first answers of which the table's raw one is, since other files may speak of the same
    ids; where none are, the first there are.
    """
    fits = [rows for rows in sources if any(cell_text(row.get("text")) == raw for row in rows)]
    return next((rows for rows in [*fits, *sources] if rows), [])


def _bought(events: Sequence[Event]) -> list[RowPurchase]:
    """What was bought, in the order in which it was asked for."""
    why, made = dict[str, str](), list[RowPurchase]()
    waiting: dict[tuple[str | None, int], Event] = {}
    for event in events:
        if event.kind is Kind.ROUND:
            why |= dict.fromkeys(event.body["names"], _why(event.body))
        elif event.kind is Kind.INTENT:
            waiting[event.purchase, event.attempt] = event
        elif event.kind is Kind.SETTLED:
            asked = waiting.pop((event.purchase, event.attempt), event)
            made.append(_purchase(asked, event, why))
    return made + [_purchase(event, None, why) for event in waiting.values()]


def _purchase(asked: Event, settled: Event | None, why: Mapping[str, str]) -> RowPurchase:
    name, at = str(asked.body["name"]), datetime.fromtimestamp(asked.at, tz=UTC)
    if settled is None:
        came = "a person is asked" if asked.body.get("deferred") else "under way, or lost with its process"
        return RowPurchase(name, at, why.get(name, ""), float(asked.body.get("price", 0.0)), came, {})
    body, evidence = settled.body, settled.body.get("evidence") or {}
    value = "" if body.get("value") is None else f": {cell_text(_numbers(body['value']))}"
    reply = evidence.get("reply") or {}
    raw = {"asked": reply.get("raw_request") or evidence.get("request"), "answered": reply.get("raw_response")}
    raw = {key: said for key, said in raw.items() if said} or dict(evidence)
    return RowPurchase(name, at, why.get(name, ""), float(body.get("price", 0.0)), f"{body['outcome']}{value}", raw)


def _why(body: Mapping[str, Any]) -> str:
    """Why a round asked for it, in words."""
    if body.get("gamma") is None:
        return "planned before any answer"
    hidden = ", ".join(map(str, (body.get("support") or ())[:6]))
    return f"the margin was {body['gamma']:.3g}" + (f": an error on {hidden} could hide" if hidden else "")


def _ended(events: Sequence[Event]) -> str:
    stopped = [event.body for event in events if event.kind is Kind.STOPPED]
    return f"{stopped[-1]['because']}: {stopped[-1]['detail']}".rstrip(": ") if stopped else "it goes on"


def _recorded(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The answers of a run as rows of recorded answers."""
    found = []
    for event in events:
        evidence = event.body.get("evidence") or {}
        if event.kind is Kind.SETTLED and evidence.get("format") == "rrf-answer":
            reply = evidence.get("reply") or {}
            text = {"text": reply.get("text")} if reply.get("outcome") == "answered" else {}
            found.append({"node": event.body["name"], "together": True, **(text or {"status": event.body["outcome"]})})
    return found


def asked(library: Library, store: Path | None, question: Question) -> dict[str, Any]:
    """What a person is shown of a question.

    Of a blind one that is what was handed in, as the verb wrote it down, and nothing else is looked
    up; so it is of a row that somebody else is to look at blindly. Of others it is the whole row
    with what was answered, each value with who said it.
    """
    row = question.row
    found: dict[str, Any] = {
        "queue": question.queue,
        "id": question.id,
        "part": question.part,
        "blind": question.blind,
        "question": cell_text(row.get("question")),
        "text": cell_text(row.get("text")),
        "trouble": cell_text(row.get("trouble")),
    }
    name = str(row.get("item") or question.id)
    if question.blind or name in library.blind():
        return found
    item = _row_beside(library, store, name)
    answers = [] if item is None else [{"value": text, "by": [one.node for one in who]} for text, who in item.groups]
    for key in ("model_answer", "raw") if not answers else ():
        if cell_text(row.get(key)):
            answers = [{"value": cell_text(row[key]), "by": [key]}]
    told = {name: cell_text(row.get(name)) for name in TOLD if row.get(name) not in (None, "")}
    own = {} if item is None else {name: cell_text(cell) for name, cell in item.own.items()}
    return found | {"answers": answers[:MOST_ANSWERS], "told": told, "own": own, "prompt": cell_text(row.get("prompt"))}


def _row_beside(library: Library, store: Path | None, name: str) -> Item | None:
    """The row of a table beside the store that has this id, the newest table first; of any table
    where the store lies on a server.
    """
    for entry in library.tables(None if store is None else store.parent):
        assert entry.path is not None
        try:
            found = open_item(library, entry.path, library.index(entry.path), name)
        except RRFError:
            continue
        if found.answers:
            return found
    return None


def _behind(
    recipe: Recipe, own: Mapping[str, Any], name: str, rows: Sequence[Mapping[str, Any]]
) -> tuple[list[_Said], Markup | None]:
    """Who answered what, and the drawing of the field that they make."""
    one = dataset(recipe, [dict(own)])
    (item,) = one.items_in_order()
    known = []
    for answered in rows:  # of a table without ids a row alone is number 1
        own_node = answered["node"]
        others = item.problem.read_together.get(own_node, ()) if answered.get("together") else ()
        cells = {key: cell for key, cell in answered.items() if key != "together"}
        known += [{**cells, "id": item.id, "node": node} for node in (own_node, *others)]
    with RecordedAnswers(one, known, checks=True) as recorded:
        given = recorded.of(item.id)
        votes = {} if one.recipe.fields else read_sheet(one, recorded, tuple(given)).rows[0].votes
    row = next(iter(repair_dataset(one, [k for k in known if k["node"] in _asks(one)]).rows()))
    prompts = item.prompts
    answers = []
    for node in dict.fromkeys([*prompts, *given]):
        answer = given.get(node)
        text = "" if answer is None else answer.text if answer.text is not None else cell_text(_numbers(answer.value))
        status = "not asked" if answer is None else answer.status or ""
        means = cell_text(votes[node]) if node in votes else None
        answers.append(_Said(node, prompts.get(node, ""), text or "", status, means, node in row.wrong))
    return answers, _drawing(item, row, answers)


def _asks(one: Any) -> set[str]:
    """What an answer may be called by: everything but checks."""
    checks = {str(entry.get("id")) for entry in one.recipe.long.get("anchors", ())}
    named = {str(key[0]) for key in (*one.recipe.nodes, *one.recipe.calls)} | set(one.recipe.nodes.values())
    return named - checks


def _numbers(value: Any) -> Any:
    return value[0] if value is not None and len(value) == 1 else value


def _drawing(item: DataItem, row: Row, answers: Sequence[_Said]) -> Markup | None:
    problem: Problem = item.problem
    if problem.nonlinear:
        return None
    remarks = {}
    for said in answers:
        if said.node in problem.node_by_id and (said.text or said.status):
            text = said.text if len(said.text) <= FEW else f"{said.text[:FEW]}…"
            meaning = f", which means {said.means}" if said.means not in (None, said.text) else ""
            remarks[said.node] = f"answered {text!r}{meaning}" if said.text else said.status
    asked = {said.node for said in answers if said.text or said.status != "not asked"}
    selected = [node.id for node in problem.nodes if node.cost is not None and node.id in asked]
    wrong = {name for name in row.wrong if name in problem.node_by_id}
    answer = "" if row.answer is None or row.fields else cell_text(row.answer)
    values = {one.node: (one.means or one.text, answer if one.wrong else "") for one in answers if one.text}
    return draw_field(FieldView(problem, selected, wrong=wrong, remarks=remarks, values=values), open_rows=0)
