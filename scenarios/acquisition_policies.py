"""Beyond the paper: policies head to head on recorded answers.

Does buying by witness save real calls?

Every logged item becomes a small market: nine recorded answers at one call each, relations that are
free once both answers are there, and checks of an answer by an external evaluator at the price of
eight calls. What is bought is decided by the product's own acquisition loop
(`rrf_design.acquisition.Acquirer`, ask and tell) with each of its methods, until the certified
error bound is reached (γ_k at least the target). Answers come from the log; nothing is asked.
Self-consistency voting spends its four calls and certifies nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rrf_design.errors import InputError
from scenarios.kit import Context, Done, Part, Report, Row, Rows, Scenario
from scenarios.kit.association import cluster_bootstrap
from scenarios.kit.rows import column, groups, rows_of, summary, where
from scenarios.real_model import fields, work
from scenarios.real_model.fields import same
from scenarios.real_model.market import QUERIES, Play, answer, buy, vote, vote_play

POLICIES = ("optimal", "greedy", "adaptive", "random", "degree", "logdet", "eopt")
LABELS = {"adaptive": "adaptive witness", "logdet": "D-optimal", "eopt": "E-optimal"}
VOTING = "self-consistency voting"
EPSILON = 0.01
"""Right integers satisfy their relations exactly; this leaves room for rounding, and 2ε/γ stays far
below half an integer.
"""


def parts(context: Context) -> list[Part]:
    counts = {"ours": context["ours"], "code": context["code"], "mathematics": context["mathematics"]}
    return [{"task": task, "index": index} for task, count in counts.items() for index in range(count)]


def run(context: Context, part: Part) -> list[dict[str, Any]]:
    """One item, every policy and budget k."""
    item = work.item_of(part["task"], part["index"], seed=context["seed"])
    log = work.asker("", _log(context), context.directory).log
    found = {(c.role, c.number): c.value for c in fields.read(item, log, seed=context["seed"])}
    truth = fields.truth(item)
    keys = [*(("node", i) for i in range(4)), *(("sample", i) for i in range(4)), ("reflection", 0)]
    recorded = {name: found[key] for name, key in zip(QUERIES, keys, strict=True)}
    rows = []
    for k, target in zip(context["k"], context["targets"], strict=True):
        head = {"task": part["task"], "item": item.id, "k": k, "target": target}
        for policy in POLICIES:
            play = buy(recorded, policy, k=k, target=target, truth=truth, seed=part["index"])
            value = answer(play, truth, k=k, epsilon=context["epsilon"])
            rows.append({**head, "policy": LABELS.get(policy, policy), **_row(play, value, truth, k, target)})
        play = vote_play(recorded, k=k)
        rows.append({**head, "policy": VOTING, **_row(play, vote(list(play.asked.values())), truth, k, target)})
    return rows


def _row(play: Play, value: Sequence[float] | None, truth: Sequence[float], k: int, target: float) -> dict[str, Any]:
    wrong = sum(v is not None and not same(v, truth) for v in play.asked.values())
    return {
        "cost": play.cost,
        "answers": len(play.asked),
        "unreadable": sum(v is None for v in play.asked.values()),
        "checks": len(play.checked),
        "gamma": play.gamma,
        "certified": play.gamma >= target,
        "wrong_answers": wrong,
        "within_budget": wrong <= k,
        "right": value is not None and same(value, truth),
    }


def _log(context: Context) -> str:
    """The recorded answers: as told, else those that real-model left beside this run."""
    beside = context.directory.parent / "real-model" / "answers.jsonl.gz"
    path = context["answers"] or (str(beside) if beside.is_file() else None)
    if path is None:
        raise InputError(
            "acquisition-policies replays recorded answers; run real-model first, or give --set answers=FILE.jsonl.gz"
        )
    return str(path)


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = rows_of(done)
    policies = [name for (name,) in groups(rows, "policy")]
    table = [_summary(rows, k, policy, context["bootstrap"]) for k in context["k"] for policy in policies]
    first = {(s["k"], s["policy"]): s for s in table}
    cheaper = [
        (k, policy)
        for k in context["k"]
        for policy in policies[1:-1]
        if first[k, policy]["mean_cost"] < first[k, "optimal"]["mean_cost"] - 1e-9
    ]
    sure = any(entry["certified"] == 1.0 for (_, policy), entry in first.items() if policy != "optimal")
    always = [key for key in cheaper if first[key]["certified"] == 1.0]
    as_often = [key for key in cheaper if first[key]["certified"] >= first[key[0], "optimal"]["certified"]]
    costs = {k: (first[k, "random"]["mean_cost"], first[k, "greedy"]["mean_cost"]) for k in context["k"]}
    gains = "; ".join(f"k = {k}: {one - other:.2f} of {one:.2f} calls saved" for k, (one, other) in costs.items())
    broken = sum(r["certified"] and r["within_budget"] and not r["right"] for r in rows)
    voting = column(where(table, policy=VOTING), "certified")
    page = context.page()
    page.answer = _answer(context, first)
    page.check(
        "optimal",
        not always,
        _cheaper(always),
        unless=not sure and "no policy certifies every item: of some items not one answer can be read",
    )
    page.check("as-often", not as_often, _cheaper(as_often))
    page.at_full("witness", all(one > other for one, other in costs.values()), gains)
    page.none("promise", broken, "certified answers wrong although at most k answers were")
    page.check("voting", max(voting) == 0.0, f"voting reaches the certified bound on {max(voting):.0%} of items")
    page.table("summary", table)
    page.table("plays", rows, shown=14)
    for k in context["k"]:
        page.bars(
            f"cost-k{k}",
            {policy: first[k, policy]["mean_cost"] for policy in policies},
            y=f"mean calls per item, k = {k}",
            caption=f"Mean cost to the certified bound at k = {k}; voting spends four calls and certifies nothing.",
        )
    page.notes.append(_scope(context, first))
    page.notes.append(_unread(context, rows))
    return page


def _cheaper(found: Sequence[tuple[int, str]]) -> str:
    listed = ", ".join(f"{policy} at k = {k}" for k, policy in found)
    return f"cheaper on average than the optimal plan: {listed or 'none'}"


def _summary(rows: Rows, k: int, policy: str, draws: int) -> Row:
    group = where(rows, k=k, policy=policy)
    kept = where(group, certified=True, within_budget=True)
    costs = np.array(column(group, "cost"))
    interval = cluster_bootstrap(lambda i: float(costs[i].mean()), range(len(costs)), draws=draws)
    return {
        "k": k,
        "target": group[0]["target"],
        "policy": policy,
        "items": len(group),
        "mean_cost": float(costs.mean()),
        "low": interval.low,
        "high": interval.high,
        **summary(group, "certified=mean right=mean"),
        **summary(kept, "certified_within_budget=count right_of_those=mean:right"),
    }


def _answer(context: Context, first: Mapping[tuple[int, str], Mapping[str, Any]]) -> str:
    saving = [k for k in context["k"] if first[k, "greedy"]["mean_cost"] < first[k, "random"]["mean_cost"]]
    where = " and ".join(f"k = {k}" for k in saving)
    lead = f"saves calls against buying at random at {where}" if saving else "saves no calls against buying at random"
    pieces = [
        f"at k = {k}, {_costs(first[k, 'greedy'], ' reach the bound', ' a right answer')} against"
        f" {_costs(first[k, 'random'])}, and {_cheapest(first, k)}"
        for k in context["k"]
    ]
    items = first[context["k"][0], "greedy"]["items"]
    return f"Buying by witness {lead}: over {items} items it costs, {'; '.join(pieces)}."


def _costs(entry: Mapping[str, Any], reached: str = "", right: str = "") -> str:
    calls = " calls per item" if reached else ""
    return f"{entry['mean_cost']:.2f}{calls} ({entry['certified']:.0%}{reached}, {entry['right']:.0%}{right})"


def _cheapest(first: Mapping[tuple[int, str], Mapping[str, Any]], k: int) -> str:
    """The cheapest policies that certify at least as often as the witness greedy, those that tie
    named together.
    """
    witness = first[k, "greedy"]
    rest = [s for (at, _), s in first.items() if at == k and s["certified"] >= witness["certified"]]
    best = min(rest, key=lambda s: (s["mean_cost"], -s["right"]))
    if best["mean_cost"] >= witness["mean_cost"] - 1e-9:
        return "no policy that certifies as often is cheaper"
    ties = [s["policy"] for s in rest if (s["mean_cost"], s["right"]) == (best["mean_cost"], best["right"])]
    return f"the cheapest that certifies as often ({', '.join(ties)}) costs {_costs(best)}"


def _scope(context: Context, first: Mapping[tuple[int, str], Mapping[str, Any]]) -> str:
    pieces = [
        f"{first[k, 'optimal']['certified_within_budget']} of {first[k, 'optimal']['items']} items at k = {k}"
        for k in context["k"]
    ]
    return (
        "The promise holds only where at most k of the bought answers are wrong: for the optimal plan"
        f" {' and '.join(pieces)}. This model is wrong more often than that, and no number of answers bought from it"
        " mends it; policies that buy a check are told the truth for its price."
    )


def _unread(context: Context, rows: Sequence[Mapping[str, Any]]) -> str:
    """Where plans stop being optimal: no planner knows beforehand which answers can't be read."""
    pieces = []
    for k in context["k"]:
        plays = [row for row in rows if row["k"] == k and row["policy"] == "optimal"]
        read = [row["cost"] for row in plays if not row["unreadable"]]
        rest = [row["cost"] for row in plays if row["unreadable"]]
        means = [f"{sum(costs) / len(costs):.2f} calls on average" if costs else "none" for costs in (read, rest)]
        pieces.append(
            f"at k = {k} {len(read)} items with every bought answer read ({means[0]}), {len(rest)} with an unread one"
            f" ({means[1]})"
        )
    return (
        f"The optimal plan by what could be read: {'; '.join(pieces)}. An item is certified only when the unread"
        " answers' values follow too; once one is unread the loop looks for the cheapest purchases that reach the goal"
        " from there. No plan knows beforehand which answers can't be read."
    )


SCENARIO = Scenario.declared("acquisition-policies", parts, run, report)
