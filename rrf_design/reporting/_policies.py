"""The pages of promises about a data set: a pilot's policy, what was delivered under it, and an
audit.

Each leads with the sentence that its tests allow, and says what it rests on. Nothing is proven
here: whoever has the page made says whether the tests were redone and what they refuse (`rrf-design
report` redoes them), and the page says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design.checker import audit_bound
from rrf_design.reporting._charts import Series, line_chart
from rrf_design.reporting.delivery import items_table
from rrf_design.reporting.pages import (
    Card,
    Child,
    Column,
    Markup,
    PageParts,
    Section,
    amount,
    at_most,
    bullets,
    callout,
    cards,
    code,
    figure,
    figures,
    join,
    listing,
    number,
    prose,
    section,
    table,
    verdict_bar,
)

if TYPE_CHECKING:
    from rrf_design.reporting.documents import PageSource

EVERYTHING = "check everything"
SHOWN = 60
"""Policies on the page; a family has hundreds."""
PLACES = 60
"""Draws of an audit at which its bound is drawn."""
LASTS = {"person": "The rest goes to a person.", "withheld": "The rest is withheld."}


def policy_page(source: PageSource) -> PageParts:
    """The page of a policy: the promise, how items are run, every test, what was measured, what
    voids it.
    """
    data = source.data
    parts = [_ladder(data), _tests(data), _measured(data), _stronger(data), _rests(data)]
    return PageParts(
        f"Policy for {data['population']['table']}",
        [part for part in parts if part is not None],
        subtitle="How to run a table, and what may be promised about it",
        lead=join(_claim(source, holds=data["policy"] != EVERYTHING), cards(_figures(data))),
        picture=_costs_against_wrong(data),
        facts=_facts(data),
    )


def policy_run_page(source: PageSource) -> PageParts:
    """The page of a run under a policy: the sentence about what was delivered, and every item,
    those that wait first.
    """
    data = source.data
    budget = data["budget"]
    items = sorted(data["items"], key=lambda item: (item["rank"] is None, item["rank"] or 0))
    shown = [
        Card("delivered", _count(data["delivered"]), "without a person"),
        Card("the others", _count(data["to_people"]), f"{_count(data['waiting'])} wait for a person"),
        Card("cost", _money(data["cost"]), "" if budget is None else f"of a budget of {_money(budget)}"),
    ]
    if "pilot_cost" in data:
        note = "answers, checks, and truths that people said"
        shown.append(Card("cost of the pilot", _money(data["pilot_cost"]), note))
    told = [prose("They ran under: ", code(str(data["policy"])), ".")]
    if data["pilot_without_truth"]:
        told.append(prose(f"{_count(data['pilot_without_truth'])} rows of the pilot wait for the truth that it had."))
    keys = ("id", "answer", "raw", "verdict", "cost", "reason")
    rows = [[_cell(item[key]) if key in ("answer", "raw") else item[key] for key in keys] for item in items]
    made = items_table({"columns": ["item", *keys[1:]], "rows": rows})
    return PageParts(
        f"Delivered of {data['population']['table']}",
        [section("The items", *told, made)],
        subtitle="Run under a pilot's policy",
        lead=join(_run_claim(source), cards(shown)),
        picture=verdict_bar(Counter(str(item["verdict"]) for item in data["items"])),
        facts=_facts(data),
    )


def audit_page(source: PageSource) -> PageParts:
    """The page of an audit: the bound, what was drawn, and which were wrong."""
    data = source.data
    drawn, wrong = int(data["drawn"]), set(data["wrong_items"])
    shown = [
        Card("wrong, at most", _count(data["bound"]), f"of {_count(data['population'])} delivered"),
        Card("drawn", _count(drawn), f"{_count(data['wrong'])} of them wrong"),
        Card("confidence", _percent(data["confidence"]), "at whatever moment the audit stops"),
    ]
    rows = [[_count(at), name, "wrong" if name in wrong else "right"] for at, name in enumerate(data["items"], start=1)]
    holds = data["holds"]
    kept = [] if holds is None else [prose(f"The risk of {_percent(data['risk'])} {_kept(data)}.")]
    return PageParts(
        f"Audit of {data['table']}",
        [
            section(
                "What was drawn",
                table(("draw", "item", "it was"), rows[:drawn], right=[0], caption="In the order of the draw"),
            ),
            section(
                "What it rests on",
                prose(
                    "The labels, from ", str(data["truth"]), "; and that the table is the one whose digest is named."
                ),
                _verified(),
            ),
        ],
        subtitle="Delivered values, drawn at random and checked",
        lead=join(_claim(source, *kept, holds=holds is not False), cards(shown)),
        picture=_bound_over_draws(data),
        facts=[
            ("digest of the table (SHA-256)", str(data["record"]["digest"])),
            ("seed", str(data["record"]["seed"])),
            _form(data),
        ],
    )


def _costs_against_wrong(data: Mapping[str, Any]) -> Markup | None:
    """Every policy as a point: what an item costs under it, and how many of the pilot's were
    wrong.
    """
    tested = [entry for entry in data["policies"] if entry["counted"]]
    chosen = [entry for entry in tested if entry["policy"] == data["policy"]]
    groups = {
        "not proven": [entry for entry in tested if not entry["proven"] and entry not in chosen],
        "proven": [entry for entry in tested if entry["proven"] and entry not in chosen],
        "chosen": chosen,
    }
    points = [
        Series(
            name,
            [float(entry["cost"]) for entry in entries],
            [100.0 * entry["wrong"] / entry["counted"] for entry in entries],
            labels=[str(entry["policy"]) for entry in entries],
        )
        for name, entries in groups.items()
        if entries
    ]
    if not points:
        return None
    picture = line_chart(
        points,
        x_label="cost of an item",
        y_label="wrong on the pilot, %",
        joined=False,
        target=100.0 * float(data["risk"]),
        target_name="risk, %:",
    )
    told = f"Chosen: {data['policy']}. A share on the pilot is no bound: a test decides what is proven."
    return figure(picture, caption=told)


def _bound_over_draws(data: Mapping[str, Any]) -> Markup | None:
    """How the bound fell with each draw."""
    labels, sure = [bool(label) for label in data["record"]["labels"]], Fraction(str(data["confidence"]))
    if not labels:
        return None
    size, count = int(data["population"]), len(labels)
    places = sorted({0, count, *(round(count * part / PLACES) for part in range(1, PLACES))})
    bounds = [float(audit_bound(size, labels[:place], sure)) for place in places]
    picture = line_chart(
        [
            Series("wrong, at most", [float(place) for place in places], bounds),
            Series("wrong among the drawn", [float(p) for p in places], [float(sum(labels[:p])) for p in places]),
        ],
        x_label="draws",
        y_label="wrong of all",
        step=True,
        target=None if data["risk"] is None else float(data["risk"]) * (size + data.get("checked", 0)),
        target_name="the risk allows",
    )
    return figure(picture, caption="What the draws so far left possible, at every moment of the audit.")


def _kept(data: Mapping[str, Any]) -> str:
    """Whether the audit keeps the risk: proven, refuted by what was seen, or open."""
    if data["holds"]:
        return "holds"
    if data["wrong"] > data["risk"] * data["population"]:
        return f"does not hold: {_count(data['wrong'])} of {_count(data['population'])} are known to be wrong"
    return "is not proven: it takes more draws, or it is larger"


def _claim(source: PageSource, *more: Child, holds: bool) -> Child:
    """The sentence, with a tick only where its tests were redone and hold; one that they refuse is
    shown as what it is.
    """
    said = prose(str(source.data["sentence"]))
    if source.refused is not None:
        return callout(
            prose(f"REFUSED: {source.refused}. Nothing on this page is proven; it claims:"), said, *more, kind="bad"
        )
    if not source.redone:
        more = (*more, prose("Not redone for this page: ", code("rrf-design verify"), " says whether it is proven."))
    return callout(said, *more, kind=_kind(holds and source.redone))


def _run_claim(source: PageSource) -> Child:
    """The sentence of a run.

    The proof is its policy's, which was redone where the run itself makes its page; a document that
    was read says what is written in it.
    """
    said, budget = prose(str(source.data["sentence"])), source.data["budget"]
    over = budget is not None and source.data["cost"] > budget
    if over:
        said = join(said, prose(f"That is more than the budget of {_money(budget)}."))
    if source.redone:
        return callout(said, kind=_kind(not source.data["waiting"] and not over))
    more = prose(
        "So the document says, which carries no proof of its own: the policy that it ran under does (",
        code("rrf-design verify POLICY.json"),
        "), and an audit of what was delivered.",
    )
    return callout(said, more, kind=_kind(False))


def _figures(data: Mapping[str, Any]) -> list[Card]:
    proven = sum(bool(entry["proven"]) for entry in data["policies"])
    ladder, size, drawn = data["ladder"], data["population"]["size"], len(data["drawn"])
    person = ladder is None or ladder["last"] == "person"
    checked, policies = 0.0 if ladder is None else ladder["random_checks"], _count(len(data["policies"]))
    if person:
        against = f"against {_money((size - drawn) * data['check_cost'])} for checking all"
        cost = _money((size - drawn) * data["cost_per_item"])
        costs = Card(f"the other {_count(size - drawn)} items cost about", cost, against)
    else:
        costs = Card("cost of an item", f"{data['cost_per_item']:,.4g}", "one that is withheld counted at its price")
    return [
        Card("delivered", _percent(data["delivered_share"] * (1 - checked)), "of the pilot, without a person"),
        costs,
        Card("labels", _count(drawn), f"of {_count(size)} items, drawn at random"),
        Card("proven", _count(proven), f"of {policies} policies, at {_percent(data['confidence'])}"),
    ]


def _ladder(data: Mapping[str, Any]) -> Section:
    """The rungs in the order in which an item climbs them."""
    ladder = data["ladder"]
    if ladder is None:
        return section("How items are run", prose("A person checks every item: ", str(data["because"]), "."))
    steps: list[Child] = []
    order, begun = ladder["order"], 0
    if ladder["gate"] == "lead" and order:
        steps.append(f"Ask {_list(order)}, one after the other, until one value is ahead by {ladder['number']}.")
    elif order:
        for answers, k in (*ladder.get("earlier", ()), (len(order), ladder["number"])):
            asked = "Ask" if not begun else "Where that is not so, ask also"
            steps.append(
                f"{asked} {_list(order[begun:answers])}, and deliver what is consistent at k = {k}: {_gate(k)}."
            )
            begun = answers
    if ladder.get("further"):
        k = ladder["further_k"]
        until = "decides" if k is None else f"decides, or the verdict on everything is consistent at k = {k}"
        start = "Where no gate accepts the answers, buy" if order else "Buy"
        steps.append(
            f"{start} {_list(ladder['further'])} (what is not there yet), one after the other, until a check {until}."
        )
    steps.append(LASTS.get(str(ladder["last"]), ""))
    if ladder["random_checks"]:
        steps.append(f"Of what is accepted, a person checks {_percent(ladder['random_checks'])}, drawn at random.")
    return section("How items are run", bullets(steps), prose("In one line: ", code(str(data["policy"])), "."))


def _gate(k: int) -> str:
    """What such a gate accepts, for whoever knows no k."""
    return (
        "all of them agree"
        if k == 0
        else f"the value that is right if at most {k} of them {'is' if k == 1 else 'are'} wrong"
    )


def _tests(data: Mapping[str, Any]) -> Section:
    tested = sorted(data["policies"], key=lambda entry: (not entry["proven"], entry["cost"]))
    levels = {entry["name"]: entry["level"] for entry in data["choice"]["policies"]}

    def outcome(entry: Mapping[str, Any]) -> str:
        return "proven" if entry["proven"] else "not proven" if levels.get(entry["policy"]) != "0" else "not reached"

    said = (
        f"Each policy was played on the {_count(len(data['drawn']))} drawn items. Tests that come after one that fails"
        f" are not reached. Order of tests, fixed before any truth was seen: {data['choice']['ordered_by']}."
    )
    return section(
        "The tests",
        prose(said),
        listing(
            tested,
            Column("policy", "policy"),
            figures("wrong", lambda entry: f"{_count(entry['wrong'])} of {_count(entry['counted'])}"),
            figures("cost of an item", lambda entry: f"{entry['cost']:,.4g}"),
            Column("test", outcome),
            caption="Proven ones first, then the cheapest",
            most=SHOWN,
        ),
        _verified(),
    )


def _measured(data: Mapping[str, Any]) -> Section:
    wrong, seen = data["wrong_answers"], data["measured"]
    parts: list[Child] = [
        listing(
            wrong["more_than"],
            figures("more wrong answers than", lambda e: _count(e["k"])),
            figures("items", lambda e: f"{_count(e['items'])} of {_count(wrong['items'])}"),
            figures("of all, at most", lambda e: _at_most(e["bound"])),
            caption=f"How often more than k of {_count(wrong['answers'])} answers whose truth is known were wrong",
        ),
    ]
    if seen.get("basis"):
        parts.insert(0, prose(f"All bounds here: {seen['basis']}."))
    if seen.get("checks"):
        rows = [[e["check"], f"{e['wrong']} of {e['asked']}", _at_most(e["bound"])] for e in seen["checks"]]
        parts.append(table(("check", "wrong", "at most"), rows, right=[1, 2], caption="How often checks were wrong"))
    if seen.get("proposals"):
        sure = _percent(data["confidence"])
        parts.append(prose(f"For the recipe, if its author agrees (each bound for itself, with confidence {sure}):"))
        parts.append(bullets(str(words) for words in seen["proposals"]))
    if disputed := seen.get("disputed_gold"):
        parts.append(prose(f"Answers agree strongly on another value than the truth in {_list(disputed)}: look again."))
    for entry in data["leaks"]:
        words = f"may show the truth of {len(entry['items'])} items: {entry['how']}."
        parts.append(prose(f"Column {entry['column']!r} {words}"))
    if data["twins"]:
        parts.append(prose(f"{_count(len(data['twins']))} items outside the pilot ask what an item of the pilot asks."))
    return section("What was measured on the pilot", *parts)


def _stronger(data: Mapping[str, Any]) -> Section | None:
    made = listing(
        data["stronger"],
        figures("risk", lambda e: _percent(e["risk"])),
        figures("labels in all", lambda e: "more labels do not help" if e["labels"] is None else _count(e["labels"])),
        figures("cost", lambda e: "" if e["cost"] is None else _money(e["cost"])),
        figures("if so many stay wrong", lambda e: _percent(e["if_wrong_share_is"])),
        caption="An estimate, for another pilot",
    )
    return section("What a stronger promise would take", made) if data["stronger"] else None


def _rests(data: Mapping[str, Any]) -> Section:
    return section(
        "What it rests on, and what voids it",
        prose("The truths of the drawn items, from ", str(data["truth"]), "; one draw, and one look at it."),
        prose(f"Voided by {data['voided_by']}."),
    )


def _verified() -> Child:
    return prose("Every draw, count and test can be redone from the document: ", code("rrf-design verify"), ".")


def _facts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("recipe", f"{data['recipe']['name']}, SHA-256 {data['recipe']['digest']}"),
        ("table", f"{data['population']['table']}, SHA-256 of its items {data['population']['digest']}"),
        _form(data),
    ]


def _form(data: Mapping[str, Any]) -> tuple[str, str]:
    return "format", f"{data['format']}, version {data['version']}"


def _cell(value: Any) -> str:
    return "" if value is None else amount(value)


def _kind(good: bool) -> str:
    return "good" if good else "unsure"


def _count(value: int) -> str:
    """As the sentences have it: 1,978."""
    return f"{value:,}"


def _money(value: float) -> str:
    return f"{value:,.2f}"


def _percent(part: float) -> str:
    return f"{number(100 * part, 4)} %"


def _at_most(part: float) -> str:
    return f"{at_most(100 * part, 4)} %"


def _list(names: Sequence[Any]) -> str:
    return ", ".join(str(name) for name in names)
