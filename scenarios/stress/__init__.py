"""Six processes on one run of a real PostgreSQL server: killed, stopped for longer than their
lease, cut off from the network, and out of money; then the store is gone through row by row.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rrf_design.acquisition import acquire
from scenarios.kit import Context, Done, Part, Report, Scenario
from scenarios.stress import books, members

SIZES = {"calm": "items", "killed": "killed", "out of money": "poor"}
"""How many items each run has."""
RATE = 300.0
"""Items of four purchases each that are wanted in a second of two cores' processor time."""
CORES = 2
LIMIT = 900.0
"""Seconds after which a run that has not ended is said not to end."""


def parts(context: Context) -> list[Part]:
    return [{"what": what} for what in ("calm", "killed", "out of money") if context[SIZES[what]]]


def run(context: Context, part: Part) -> dict[str, Any]:
    what = part["what"]
    calm, poor = what == "calm", what == "out of money"
    items = context[SIZES[what]]
    with (
        members.host(context["cuts"] > 0 and what == "killed") as (host, address),
        members.database(address) as store,
        tempfile.TemporaryDirectory() as name,
    ):
        if store is None:
            return {"missing": "there is no PostgreSQL here (pip install pgserver)"}
        plan = {"kills": 0, "stops": 0, "cuts": 0}
        if not calm:
            plan = {"kills": context["kills"], "stops": context["stops"], "cuts": context["cuts"]}
        if poor:
            plan = {"kills": context["kills"] // 5, "stops": 0, "cuts": 0}
        cap = float(members.QUESTIONS * items) if poor else None
        with nullcontext() if calm else members.provider(address or "127.0.0.1") as server:
            place = {"store": store, "url": server.url if server else "", "items": items, "cap": cap}
            place |= {"slots": context["slots"], "lease": context["lease"]}
            crowd = members.Members(place, Path(name), context["members"], host)
            try:
                crowd.open()
                found = members.torment(crowd, plan, items=items, seed=context["seed"], limit=LIMIT)
            finally:
                crowd.close()
        if not found["ended"]:
            return found | {"codes": crowd.said(), "host": bool(host)}
        seen = {members.purchase(prompt): count for prompt, count in server.asked.items()} if server else {}
        told = books.audit(store, crowd.run, cap, seen)
        seconds = books.span(store, crowd.run)
        processor = sum(float(path.read_text()) for path in Path(name).glob("*.seconds")) + found["served"]
    alone = _alone(items) if not poor else None
    return found | {
        "codes": crowd.said(),
        "host": bool(host),
        "begun": crowd.begun,
        "span": seconds,
        "processor": processor,
        "items": items,
        "faults": {fault: count for fault, count in told["faults"].items() if count},
        "claims": len(told["faults"]),
        "counts": told["counts"],
        "stopped": dict(Counter(told["stopped"].values())),
        "decided": len(told["decided"]),
        "differ": None if alone is None else sum(_said(told["decided"].get(i)) != said for i, said in alone.items()),
    }


def _alone(items: int) -> dict[str, Any]:
    """What one process that nobody disturbs says of the same items."""
    fields = {f"item {i}": members.field_of(i) for i in range(items)}
    with tempfile.TemporaryDirectory() as folder:
        result = acquire(fields, members.Instant(64), store=Path(folder) / "runs.sqlite", method="witness", batch=4)
    return {entry.item: _said(entry.repair) for entry in result.items}


def _said(repair: Mapping[str, Any] | None) -> Any:
    return (
        None if repair is None else {name: repair[name] for name in ("verdict", "repaired", "support", "error_bound")}
    )


def report(context: Context, done: Sequence[Done]) -> Report:
    page, found = context.page(), {str(entry.part["what"]): entry.value for entry in done}
    keys = [expectation.key for expectation in SCENARIO.expected]
    missing = next((value["missing"] for value in found.values() if "missing" in value), "")
    if missing:
        page.open(keys, missing)
        page.answer = f"Nothing could be tried: {missing}."
    else:
        _judge(page, found)
    page.table("runs", [_row(what, value) for what, value in found.items()])
    faults = [
        {"run": what, "fault": f, "count": n} for what, v in found.items() for f, n in v.get("faults", {}).items()
    ]
    page.table("faults", faults or [{"run": "all", "fault": "none", "count": 0}])
    return page


def _judge(page: Report, found: Mapping[str, Mapping[str, Any]]) -> None:
    ended = {what: value["ended"] and value.get("decided") == value.get("items") for what, value in found.items()}
    page.check("end", all(ended.values()), ", ".join(f"{what}: {_word(over)}" for what, over in ended.items()))
    faults = sum(sum(value.get("faults", {"not ended": 1}).values()) for value in found.values())
    kinds = max(value.get("claims", 0) for value in found.values())
    rows = sum(value.get("counts", {}).get("rows", 0) for value in found.values())
    page.none("books", faults, f"faults of {kinds} kinds in {rows:,} rows")
    killed = found["killed"]
    done, counts = killed["done"], killed.get("counts", {})
    seen = f"{done['kill']} killed, {done['stop']} stopped, {done['cut']} times cut off"
    page.at_full("violence", done["kill"] >= 200 and done["stop"] >= 50 and done["cut"] > 0, seen)
    differ = {what: value.get("differ") for what, value in found.items() if what != "out of money"}
    told = ", ".join(f"{what}: {count}" for what, count in differ.items())
    page.check("verdicts", not any(differ.values()), f"items that differ: {told}")
    page.answer = (
        f"{seen}: {killed.get('items', 0):,} items ended with {faults} faults in the books,"
        f" {counts.get('calls in doubt', 0):,} calls were in doubt, and {differ['killed']} verdicts differ from those"
        " of one process"
    )
    if page.quick:
        page.open(["cap", "rate"], "quick size")
        page.answer += "."
        return
    calm, poor = found["calm"], found["out of money"]
    most, cap = poor.get("counts", {}).get("most committed", float("nan")), float(members.QUESTIONS * poor["items"])
    short = poor.get("stopped", {}).get("budget used up", 0)
    page.check("cap", most <= cap and short > 0, f"at most {most:g} of {cap:g} committed, {short} items went without")
    rate, wall = CORES * calm["items"] / calm["processor"], calm["items"] / calm["span"]
    page.check(
        "rate", rate >= RATE, f"{rate:.0f} items in a second of two cores' processor time, {wall:.0f} of wall time"
    )
    page.answer += f"; undisturbed, {rate:.0f} items fit into a second of two cores."


def _word(over: bool) -> str:
    return "ended" if over else "did not end"


def _row(what: str, value: Mapping[str, Any]) -> dict[str, Any]:
    done, counts = value.get("done", {}), value.get("counts", {})
    names = (
        "rows",
        "purchases settled",
        "calls booked",
        "calls seen",
        "calls in doubt",
        "purchases in doubt",
        "processes",
    )
    return {
        "run": what,
        "items": value.get("items"),
        "killed": done.get("kill"),
        "stopped": done.get("stop"),
        "cut off": done.get("cut"),
        **{name: counts.get(name) for name in names},
        "ended early (75)": value.get("codes", {}).get(str(members.AGAIN), 0),
        "seconds": value.get("span"),
        "processor seconds": value.get("processor"),
    }


SCENARIO = Scenario.declared("stress", parts, run, report, serial=True)
