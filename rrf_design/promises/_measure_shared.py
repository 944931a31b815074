"""Which errors go together, from a log with truth: for every pair and every three of the ways of
asking, how often they say the same wrong value; and which one more would break that.

Two answers that are wrong in different ways give themselves away; two that say the same wrong value
are the error that nobody sees. So a shared error of a set of nodes is an item in which each of them
was read and all say the same wrong value. Counts have exact one-sided bounds: those of pairs each
for itself, those of candidates for all that were looked at together (Bonferroni), because the best
of many is chosen from the same items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker.promise_words import percent_about, percent_above
from rrf_design.promises._sheets import AnswerSheet
from rrf_design.questions.recipe import Recipe
from rrf_design.risk import rate_bound

Marks = NDArray[np.bool_]
MOST_NODES = 24
"""Of so many nodes pairs are counted, the first ones of the recipe."""
SETS = 12
"""Of the first so many nodes threes are tried."""
MOST_THREES = 40
FEWEST = 20
"""Of fewer items nothing is proposed, and no three are counted."""
SURE = 0.95
STEPS = 4
"""So many candidates are proposed one after another."""


def shared_errors(
    sheet: AnswerSheet, recipe: Recipe, confidence: float, *, wrong: Marks, asked: Marks, voices: Sequence[str]
) -> dict[str, Any]:
    """Pairs, threes, failure groups and candidates; `wrong` and `asked` are items beside voices."""
    places = {node: at for at, node in enumerate(sheet.nodes)}
    codes = np.array([sheet.codes[:, places[node]] for node in voices]).T.reshape(len(sheet), len(voices))
    lies = np.where(wrong & asked & (codes >= 0), codes, -1)
    count = min(len(voices), MOST_NODES)
    pairs = []
    for a, b in combinations(range(count), 2):
        both = asked[:, a] & asked[:, b]
        pairs.append(_counted([voices[a], voices[b]], int(both.sum()), _same(lies, (a, b)), confidence))
        pairs[-1]["both_wrong"] = int((wrong[:, a] & wrong[:, b] & both).sum())
    worst = sorted(
        (trio for trio in combinations(range(min(count, SETS)), 3) if int(asked[:, trio].all(axis=1).sum()) >= FEWEST),
        key=lambda trio: -int(_same(lies, trio).sum()),
    )
    threes = [
        _counted([voices[at] for at in trio], int(asked[:, trio].all(axis=1).sum()), _same(lies, trio), confidence)
        for trio in worst[:MOST_THREES]
    ]
    return {
        "pairs": pairs,
        "threes": threes,
        "groups": _groups(recipe, pairs, voices),
        "next": _next(sheet, confidence, lies=lies, asked=asked, voices=voices[:count]),
        "best_three": _best_three(sheet, confidence, lies=lies, asked=asked, voices=voices[:SETS], wrong=wrong),
    }


def shared_proposals(found: Mapping[str, Any]) -> list[str]:
    """In words, for the recipe's author."""
    words = []
    for group in found["groups"]:
        how = (
            f'[answer] fails_together = "{group["fails_together"]}"' if group["fails_together"] else "one failure group"
        )
        words.append(
            f"{how}: {', '.join(group['nodes'])}; where two of them are wrong they mostly say the same"
            f" ({group['same_wrong']} of {group['both_wrong']} times), so k should count them once"
        )
    for step in found["next"]:
        words.append(
            f"buy next {step['node']!r} (cost {step['cost']:g}): errors that {' and '.join(step['beside'])} share fall"
            f" from {step['before']} to {step['after']} of {step['items']} items"
            f" ({percent_about(step['fall_per_cost'])} less per cost); at most"
            f" {percent_above(Fraction(step['bound']))} of all items keep one"
        )
    best = found["best_three"]
    if best is not None:
        words.append(
            f"beside the delivered question ask {', '.join(best['nodes'])}: with k = 1 a wrong value hides in"
            f" {best['hidden_wrong']} of {best['items']} items, the least share of those with three equal answers; at"
            f" most in {percent_above(Fraction(best['bound']))} of all"
        )
    return words


def _same(lies: NDArray[np.int64], places: Sequence[int]) -> Marks:
    """Items in which all of these say the same wrong value."""
    first = lies[:, places[0]]
    marks: Marks = (first >= 0) & (lies[:, list(places)] == first[:, None]).all(axis=1)
    return marks


def _counted(nodes: list[str], items: int, same: Marks, confidence: float) -> dict[str, Any]:
    shared = int(same.sum())
    bound = rate_bound(items, shared, confidence) if items else 1.0
    least = 1.0 - rate_bound(items, items - shared, confidence) if items else 0.0
    return {"nodes": nodes, "items": items, "same_wrong": shared, "least": max(0.0, least), "bound": bound}


def _groups(recipe: Recipe, pairs: Sequence[Mapping[str, Any]], voices: Sequence[str]) -> list[dict[str, Any]]:
    """Nodes of which surely more than half of the errors that two of them make are one and the
    same; `fails_together` where they are all that one ask or one model says.
    """
    joined = {node: frozenset({node}) for node in voices}
    for pair in pairs:
        both, same = pair["both_wrong"], pair["same_wrong"]
        if pair["items"] >= FEWEST and both and 1.0 - rate_bound(both, both - same, SURE) > 0.5:
            first, second = pair["nodes"]
            merged = joined[first] | joined[second]
            joined |= dict.fromkeys(merged, merged)
    asks = {node: (ask, model) for (ask, model, _), node in reversed(list(recipe.nodes.items()))}
    found = []
    for group in dict.fromkeys(joined.values()):
        inside = [pair for pair in pairs if group.issuperset(pair["nodes"])]
        kinds = {
            name: {asks[node][at] for node in group if node in asks}
            for at, name in enumerate(("wording", "model"))
            if {
                node
                for node in voices
                if node in asks and asks[node][at] in {asks[one][at] for one in group & set(asks)}
            }
            == group
        }
        kind = next((name for name, values in kinds.items() if len(values) == 1), "")
        if len(group) > 1:
            both, same = (sum(pair[key] for pair in inside) for key in ("both_wrong", "same_wrong"))
            named = [node for node in voices if node in group]
            found.append({"nodes": named, "fails_together": kind, "both_wrong": both, "same_wrong": same})
    return found


def _next(
    sheet: AnswerSheet, confidence: float, *, lies: NDArray[np.int64], asked: Marks, voices: Sequence[str]
) -> list[dict[str, Any]]:
    """One candidate after another: that which breaks most shared errors of those before it, for its
    cost. Nothing where the items are too few or nothing is left to break.
    """
    prices = _prices(sheet, voices)
    first = _delivered(sheet, voices)
    if first is None:
        return []
    held = [first]
    tried = len(voices) * STEPS
    found: list[dict[str, Any]] = []
    while len(found) < STEPS:
        here = asked[:, held].all(axis=1)
        rated = []
        for at in range(len(voices)):
            both = here & asked[:, at]
            if at in held or int(both.sum()) < FEWEST:
                continue
            before, after = (int((_same(lies, those) & both).sum()) for those in (held, [*held, at]))
            rated.append(((before - after) / int(both.sum()) / prices[voices[at]], -at, before, after, int(both.sum())))
        if not rated or max(rated)[0] <= 0.0:
            return found
        gain, place, before, after, items = max(rated)
        sure = 1.0 - (1.0 - confidence) / tried
        found.append(
            {
                "node": voices[-place],
                "cost": prices[voices[-place]],
                "beside": [voices[at] for at in held],
                "items": items,
                "before": before,
                "after": after,
                "fall_per_cost": gain,
                "bound": rate_bound(items, after, sure),
            }
        )
        held.append(-place)
    return found


def _best_three(
    sheet: AnswerSheet, confidence: float, *, lies: NDArray[np.int64], asked: Marks, voices: Sequence[str], wrong: Marks
) -> dict[str, Any] | None:
    """Which three beside the delivered question hide the smallest share of wrong values, one wrong
    answer allowed: at least three of the four say the same. Of the sets that keep half as many
    right items as the best does.
    """
    first = _delivered(sheet, voices)
    if first is None:
        return None
    rated = []
    for trio in combinations([at for at in range(len(voices)) if at != first], 3):
        four = [first, *trio]
        here = asked[:, four].all(axis=1)
        said = np.sort(lies[:, four], axis=1)
        hidden = (
            here & (said[:, 1] >= 0) & ((said[:, 1] == said[:, 3]) | ((said[:, 0] >= 0) & (said[:, 0] == said[:, 2])))
        )
        kept = here & ((asked & ~wrong)[:, four].sum(axis=1) >= 3)
        rated.append((trio, int(hidden.sum()), int(kept.sum()), int(here.sum())))
    rated = [entry for entry in rated if entry[3] >= FEWEST]
    if not rated:
        return None
    most = max(entry[2] for entry in rated)
    fair = [entry for entry in rated if 2 * entry[2] >= most]
    trio, hidden, kept, items = min(fair, key=lambda entry: (entry[1] / max(1, entry[1] + entry[2]), entry[0]))
    sure = 1.0 - (1.0 - confidence) / len(rated)
    return {
        "nodes": [voices[at] for at in trio],
        "items": items,
        "hidden_wrong": hidden,
        "kept_right": kept,
        "bound": rate_bound(items, hidden, sure),
    }


def _delivered(sheet: AnswerSheet, voices: Sequence[str]) -> int | None:
    nodes = {row.template.node for row in sheet.rows}
    return next((at for at, node in enumerate(voices) if node in nodes), None)


def _prices(sheet: AnswerSheet, voices: Sequence[str]) -> dict[str, float]:
    """Of each node: what it costs on average where it has a price, else 1."""
    found = {}
    for node in voices:
        paid = [row.cost[node] for row in sheet.rows if row.cost.get(node)]
        found[node] = sum(paid) / len(paid) if paid else 1.0
    return found
