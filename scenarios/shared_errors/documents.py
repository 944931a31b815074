"""Documents with known truth, drawn by a seed: invoices in odd forms, tickets to be sorted, and
tables (tables.py); and the recipes that ask about them.

Nothing here is taken from the transformations: amounts are written by this module's own formats,
and the truth is drawn before the text is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scenarios.shared_errors.tables import priced

Rng = np.random.Generator
Rows = list[dict[str, Any]]


def _english(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _german(cents: int) -> str:
    return _english(cents).translate(str.maketrans(",.", ".,"))


FORMS: tuple[Callable[[int], str], ...] = (
    lambda cents: f"{cents / 100:.2f}",
    _english,
    _german,
    lambda cents: _english(cents).replace(",", "'"),
    lambda cents: _german(cents).replace(".", "\u202f"),
    lambda cents: f"EUR {_english(cents)}",
    lambda cents: f"{_german(cents)}€",
)
"""How an amount is written: plain, English, German, Swiss, French, with a currency."""
LAYOUTS = (
    "Invoice {no}. Net {net}, VAT {tax}, to be paid {total}",
    "Rechnung {no}: netto {net}, MwSt {tax}, zu zahlen {total}",
    "Facture {no}. Montant HT {net}, TVA {tax}, à payer {total}",
    "To be paid: {total} (net {net}, VAT {tax}). Invoice {no}",
    "Total of last month {other}, paid. This month: net {net}, VAT {tax}. Please pay {total}",
    "|no|net|vat|gross|\n|{no}|{net}|{tax}|{total}|",
    "INV{no}\nSUBTOTAL {net}\nTAX {tax}\nAMOUNT DUE {total}",
    "Dear Sir, for order {no} we ask for {total}, which includes VAT of {tax}.",
    "Net {net}\nVAT {tax}\nDeposit held {other}\nBalance due {total}",
    "List price {other}; after discount {net} net, {tax} VAT; you pay {total}",
)


def invoices(count: int, *, seed: int) -> Rows:
    """Invoices whose total stands in the text, beside amounts that are not it."""
    found: Rows = []
    for place in range(count):
        rng = np.random.default_rng([seed, 1, place])
        net = int(rng.integers(10_000, 700_000))
        tax = round(net * int(rng.choice((7, 10, 19, 20))) / 100)
        other = int(rng.integers(10_000, 900_000))
        form = FORMS[int(rng.integers(len(FORMS)))]
        text = LAYOUTS[place % len(LAYOUTS)].format(
            no=int(rng.integers(1000, 9999)), net=form(net), tax=form(tax), total=form(net + tax), other=form(other)
        )
        amounts = [cents for cents in (net, tax, net + tax, other) if form(cents) in text]
        row = {"id": f"i{place:03d}", "text": text, "truth": f"{(net + tax) / 100:.2f}"}
        found.append({**row, "amounts": sorted(amounts)})
    return found


def tables(count: int, *, seed: int) -> Rows:
    """Tables whose numbers are written as in the invoices."""
    return priced(count, FORMS, seed=seed)


TOPICS = ("delivery", "payment", "defect")
TICKETS = {
    "delivery": (
        "My {thing} was to come on {day} and is not here.",
        "When will order {no} be sent?",
        "The courier left my {thing} at a wrong address.",
        "I have waited for the {thing} since {day}. Where is it?",
        "Tracking of {no} has not moved since {day}.",
    ),
    "payment": (
        "You charged my card twice for order {no}.",
        "The bill for the {thing} shows a wrong amount.",
        "I want my money back for order {no}.",
        "Can I pay the {thing} by bank transfer?",
        "My discount is missing on the bill of {day}.",
    ),
    "defect": (
        "The {thing} does not switch on any more.",
        "My {thing} makes a loud noise since {day}.",
        "The {thing} broke after one week.",
        "There is a crack in the {thing}.",
        "One button of the {thing} is stuck.",
    ),
}
THINGS, DAYS = ("lamp", "kettle", "printer", "drill", "phone", "heater"), ("Monday", "Tuesday", "Friday", "1 May")


def tickets(count: int, *, seed: int) -> Rows:
    """Letters of customers, each about one of three topics."""
    found: Rows = []
    for place in range(count):
        rng = np.random.default_rng([seed, 2, place])
        topic = TOPICS[int(rng.integers(len(TOPICS)))]
        words = TICKETS[topic][int(rng.integers(len(TICKETS[topic])))]
        named = {"thing": THINGS[int(rng.integers(len(THINGS)))], "day": DAYS[int(rng.integers(len(DAYS)))]}
        text = words.format(no=int(rng.integers(1000, 9999)), **named)
        found.append({"id": f"t{place:03d}", "text": text, "truth": topic})
    return found


def lettered(count: int, *, seed: int) -> Rows:
    """The same letters, asked with lettered options: the truth is a letter."""
    return [{**row, "truth": "ABC"[TOPICS.index(row["truth"])]} for row in tickets(count, seed=seed)]


FREE = 'root ::= [1-9] [0-9]+ ("." [0-9] [0-9])?'
"""Any number, for a model that would else write a sentence."""
_TOPIC = " | ".join(f'"{topic}"' for topic in TOPICS)
PARTS = ("total", "net", "tax")
PLUS, WHOLE = 1000, 10_000
Grammar = Callable[[Mapping[str, Any], str], str]


def _any_number(row: Mapping[str, Any], ask: str) -> str:
    return FREE


def _among_amounts(row: Mapping[str, Any], ask: str) -> str:
    """One of the amounts that stand in the text, changed as the question wants it: the candidates
    of the source, so that a model of this size has a choice that it can make.
    """

    def shown(cents: int) -> str:
        changed = {"cents": cents * 100, "plus": cents + 100 * PLUS, "complement": 100 * WHOLE - cents}.get(ask, cents)
        return f"{changed / 100:.2f}"

    amounts = " | ".join(f'"{shown(cents)}"' for cents in row["amounts"])
    if ask == "quote-first":
        return f"root ::= {_QUOTE} amount\namount ::= {amounts}"
    if ask != "parts":
        return f"root ::= {amounts}"
    return f'root ::= "{{\\"net\\": " amount ", \\"tax\\": " amount "}}"\namount ::= {amounts}'


_QUOTE = r'''"\"" [^"\n]{1,30} "\"\nAnswer: "'''


def _three_amounts(row: Mapping[str, Any], ask: str) -> str:
    """Total, net and tax, each one of the amounts that stand in the text."""
    amounts = " | ".join(f'"{cents / 100:.2f}"' for cents in row["amounts"])
    keys = ' ", " '.join(f'"\\"{name}\\": " amount' for name in PARTS)
    return f'root ::= "{{" {keys} "}}"\namount ::= {amounts}'


def _topic(row: Mapping[str, Any], ask: str) -> str:
    return f"root ::= {_TOPIC}"


def _letter(row: Mapping[str, Any], ask: str) -> str:
    return 'root ::= "A" | "B" | "C"'


@dataclass(frozen=True, slots=True)
class AskedTable:
    """A table with its recipe: the first question, the others by name, and the grammar of each."""

    name: str
    rows: Callable[..., Rows]
    answer: Mapping[str, Any]
    prompt: str
    others: Mapping[str, Any]
    """By name what `transform` of the ask says."""
    grammar: Grammar
    vetoes: Sequence[Mapping[str, Any]] = ()
    designs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Three more questions beside the first one, by the name of the design."""
    fields: bool = False
    """Every question asks for total, net and tax; free checks are the equations between them."""
    most_tokens: int = 48

    def recipe(self, asks: Sequence[str] | None = None, *, vetoes: bool = False) -> dict[str, Any]:
        """All questions, or the first with these others."""
        listed = list(self.others) if asks is None else list(asks)
        others = [{"id": name, "like": "first", "transform": self.others[name]} for name in listed]
        if self.fields:
            first = {"id": "first", "prompt": self.prompt, "parse": {"json": list(PARTS)}}
            sums = [{"sum": [f"{name}.net", f"{name}.tax"], "equals": "first.total"} for name in ("first", *listed)]
            return {
                "data": {"id": "id"},
                "answer": [{"of": f"first.{part}", **self.answer} for part in PARTS],
                "ask": [first, *others],
                **({"equation": sums} if vetoes else {}),
            }
        return {
            "data": {"id": "id", "gold": "truth"},
            "answer": {"of": "first", "k": 1, **self.answer},
            "ask": [{"id": "first", "prompt": self.prompt}, *others],
            **({"veto": [dict(veto) for veto in self.vetoes]} if vetoes else {}),
        }


FIELDS = "three paraphrases, with net and tax"
WORDINGS = {f"wording {number}": {"wording": number} for number in (1, 2, 3)}
_MEANT = {
    "delivery": "something has not come, or late, or to the wrong place",
    "payment": "bills, cards, prices and money back",
    "defect": "something is broken or does not work",
}
_VETOES = ({"of": "first", "in_text": "{{ text }}"}, {"of": "first", "within": [100, 10000]})
_ASKED = "{{ text }}\nHow much is to be paid for this invoice?"
_TURNED = {"turned": {"permute-options": [1, 2, 0]}, "turned again": {"permute-options": [2, 0, 1]}}
_TOLERANCE = {"tolerance": 0.005}
TABLES = {
    table.name: table
    for table in (
        AskedTable(
            "invoices",
            invoices,
            _TOLERANCE,
            _ASKED,
            {
                **WORDINGS,
                **{"cents": "cents", "plus": {"plus": PLUS}, "complement": {"complement": WHOLE}},
                "parts": {"parts": ["net", "tax"]},
                "quote-first": "quote-first",
            },
            _among_amounts,
            _VETOES,
            {
                "three paraphrases": tuple(WORDINGS),
                "quote first": ("quote-first", "cents", "parts"),
                "three transformations": ("cents", "plus", "parts"),
                "three others": ("cents", "complement", "parts"),
                "one of each": ("wording 1", "cents", "parts"),
            },
        ),
        AskedTable(
            "invoices by fields",
            invoices,
            _TOLERANCE,
            f"{_ASKED} And what are net and tax in it? Return JSON only: "
            + '{"total": amount, "net": amount, "tax": amount}',
            WORDINGS,
            _three_amounts,
            ({"equations": True},),
            {FIELDS: tuple(WORDINGS)},
            fields=True,
            most_tokens=72,
        ),
        AskedTable(
            "tables",
            tables,
            _TOLERANCE,
            "{{ text }}\nWhat is the amount of {{ thing }} in this table (not the price of one)?",
            {
                **WORDINGS,
                **{"cents": "cents", "plus": {"plus": PLUS}, "complement": {"complement": WHOLE}},
                "quote-first": "quote-first",
            },
            _among_amounts,
            ({"of": "first", "in_text": "{{ text }}"}, {"of": "first", "within": [2, 10000]}),
            {
                "three paraphrases": tuple(WORDINGS),
                "three transformations": ("cents", "plus", "complement"),
                "quote first": ("quote-first", "cents", "plus"),
                "one of each": ("wording 1", "cents", "plus"),
            },
        ),
        AskedTable(
            "invoices read freely",
            invoices,
            _TOLERANCE,
            _ASKED,
            WORDINGS,
            _any_number,
            _VETOES,
            {"three paraphrases": tuple(WORDINGS)},
        ),
        AskedTable(
            "tickets",
            tickets,
            {"choices": list(TOPICS)},
            "Is this about delivery, payment or defect? {{ text }}\nAnswer with one word.",
            {**WORDINGS, **_TURNED, "definitions": {"definitions": _MEANT}},
            _topic,
            (),
            {
                "three paraphrases": tuple(WORDINGS),
                "three transformations": ("turned", "turned again", "definitions"),
                "one of each": ("wording 1", "turned", "turned again"),
            },
        ),
        AskedTable(
            "lettered tickets",
            lettered,
            {"choices": ["A", "B", "C"]},
            "{{ text }}\nWhat is this about?\nA) delivery\nB) payment\nC) defect",
            {**WORDINGS, **_TURNED, "two exchanged": {"permute-options": [1, 0, 2]}},
            _letter,
            (),
            {
                "three paraphrases": tuple(WORDINGS),
                "three transformations": ("turned", "turned again", "two exchanged"),
                "one of each": ("wording 1", "turned", "turned again"),
            },
        ),
    )
}
"""The tables, each with designs of four calls a row that were written down before the answers were
recorded.
"""
