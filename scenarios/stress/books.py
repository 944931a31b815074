"""The books of a run, from its rows alone: plain SQL, exact fractions and one pass, with nothing of
the engine.

Slow and obvious, because it is the witness. It goes through the rows in the order of their commits
and keeps what every purchase has reserved, and it holds the store's own sums, the cap and what the
provider counted against that.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

OUTCOMES = ("settled", "released", "abandoned", "doubt")
"""What an intent can come to."""


def audit(store: str, run: str, cap: float | None, seen: Mapping[str, int]) -> dict[str, Any]:
    """Every claim as a count of what breaks it, and how much there was of what; `seen` is how often
    the provider was asked for each purchase, None where nobody counted.
    """
    rows, books, left = _read(store, run)
    faults: Counter[str] = Counter()
    kinds = Counter(kind for _, kind, *_ in rows)
    price: dict[tuple[str, int], tuple[Fraction, int]] = {}  # reserved: what it may cost, and calls
    settled: Counter[str] = Counter()
    booked: Counter[str] = Counter()
    doubted: Counter[str] = Counter()
    decided: dict[str, Any] = {}
    stopped: dict[str, str] = {}
    spent, calls, most = Fraction(0), 0, Fraction(0)
    shared = Fraction(-1), -1
    for place, (seq, kind, purchase, attempt, body) in enumerate(rows):
        faults["a gap between rows"] += seq != place
        key = (purchase, attempt)
        if kind == "intent":
            faults["a purchase begun twice"] += key in price
            price[key] = Fraction(str(body["price"])), body.get("calls", 0)
        elif kind == "repeated":
            last = max(k for k in price if k[0] == f"{body['item']}→{body['name']}")
            price[last] = price[last][0], price[last][1] + 1
        elif kind in OUTCOMES:
            faults["an outcome of what nobody reserved"] += key not in price
            reserved, begun = price.pop(key, (Fraction(0), 0))
            if kind == "settled":
                settled[purchase] += 1
                faults["a call that nobody reserved"] += body["calls"] > begun
                spent, begun = spent + Fraction(str(body["price"])), body["calls"]
            elif kind == "released":
                begun = body.get("calls", 0)
            elif body.get("policy") == "same":
                begun = 0
            else:
                spent += reserved
                doubted[purchase] += begun
            calls += begun
            booked[purchase] += begun
        elif kind == "decided":
            decided[body["item"]] = body["repair"]
        elif kind == "stopped":
            stopped[body["item"]] = body["because"]
        now = spent + sum((p for p, _ in price.values()), Fraction(0)) if cap is not None and price else spent
        most = max(most, now)
        if place + 1 == books["events"]:  # whoever concludes the run writes the rest alone
            shared = now, calls
        faults["money beyond the cap"] += cap is not None and now > Fraction(str(cap))
    faults["a purchase settled twice"] += sum(count - 1 for count in settled.values())
    faults["a purchase without an outcome"] += len(price)
    said = (int(books["open"]), Fraction(books["price"]), int(books["calls"]))
    faults["books that differ from the journal"] += said != (0, *shared)
    faults["an item that is not over"] += left
    for name in {*seen, *booked} if seen else ():
        faults["a call that the books do not have"] += seen.get(name, 0) > booked[name]
        faults["a booked call that nobody saw or doubted"] += booked[name] - doubted[name] > seen.get(name, 0)
    counts = {
        "rows": len(rows),
        "purchases settled": len(settled),
        "calls booked": calls,
        "calls in doubt": sum(doubted.values()),
        "calls seen": sum(seen.values()),
        "purchases in doubt": kinds["doubt"],
        "processes": kinds["session"],
        "items": len(decided),
        "spent": float(spent),
        "most committed": float(most),
    }
    return {
        "faults": dict(faults),
        "counts": counts,
        "decided": decided,
        "stopped": stopped,
        "ended": kinds["ended"] > 0,
    }


def span(store: str, run: str) -> float:
    """Seconds from the first intent to the last item that was decided."""
    import psycopg

    query = "select max(at) filter (where kind = 'decided') - min(at) filter (where kind = 'intent') from rrf_events"
    with psycopg.connect(store) as connection:
        found = connection.execute(query + " where run = %s", (run,)).fetchone()
    return float(found[0]) if found and found[0] else float("nan")


def _read(store: str, run: str) -> tuple[list[tuple[Any, ...]], dict[str, Any], int]:
    import psycopg
    from psycopg.rows import dict_row

    with psycopg.connect(store) as connection:
        query = "select seq, kind, purchase, attempt, body from rrf_events where run = %s order by seq"
        rows = [(*row[:4], json.loads(row[4])) for row in connection.execute(query, (run,))]
        with connection.cursor(row_factory=dict_row) as cursor:
            books = cursor.execute("select * from rrf_books where run = %s", (run,)).fetchone()
        over = "select count(*) from rrf_leases where run = %s and state = 0"
        left = connection.execute(over, (run,)).fetchone()
    assert books is not None
    assert left is not None
    return rows, books, int(left[0])
