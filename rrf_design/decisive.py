"""Checks that decide an item: a trusted one that states the delivered value is the value, whatever was answered.

No number of further answers explains what contradicts itself (an explanation of more rows explains fewer of them too), so such
an item needs somebody who knows. The premise is then another one: not that few answers are wrong, but that the check is right. Where
up to a checks may be wrong, a + 1 of them that say the same decide it too: not all of these are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from math import floor
from typing import TypeVar

from rrf_design.blocks import Anchor
from rrf_design.goal import Goal
from rrf_design.market import exact
from rrf_design.premise import suspects_of
from rrf_design.problem import Problem
from rrf_design.verdict import Evidence, Explained, Verdict, decide

Stated = TypeVar("Stated", bound=Hashable)
FREE = 1e-9
"""A check that costs nothing costs this, where something is divided by its cost."""


def delivered_node(problem: Problem) -> str:
    """The node whose value is handed over: the first that is delivered, or the first of all."""
    return problem.deliver[0] if problem.deliver else problem.nodes[0].id


def sole_delivered(problem: Problem) -> str | None:
    """The node whose value is all that must be right; None where there are several, which one check can't decide."""
    wanted = [node.id for node in problem.nodes] if problem.deliver is None else list(problem.deliver)
    return wanted[0] if len(wanted) == 1 else None


def decides(problem: Problem, anchor: Anchor, node: str) -> bool:
    """Whether an anchor's value is the value of this node: it is not suspect, states the whole of it, and is not noisy.

    Where checks may be wrong, whatever does not say `trusted = true` is suspect unless others are marked (`suspects_of`).
    """
    if anchor.trusted is False or anchor.rate is not None or not states(anchor, node):
        return False
    return anchor.trusted is True or not problem.wrong_checks or anchor.id not in suspects_of(problem)


def states(anchor: Anchor, node: str) -> bool:
    """Whether its value, where it is right, is the value of this node: it states the whole of it, and is not noisy."""
    exact = anchor.sigma is None and anchor.covariance is None and anchor.uncertainty == 0.0
    return exact and anchor.rows is None and anchor.nodes == (node,)


def suspect_statements(problem: Problem, node: str) -> list[Anchor]:
    """Checks that may be wrong and state the value of a node; none where no number of wrong ones is assumed."""
    premise = problem.whole.premise
    if not premise.wrong_checks:
        return []
    return [anchor for anchor in problem.anchors if anchor.id in premise.suspects and states(anchor, node)]


def quorum(problem: Problem) -> int:
    """So many checks that may be wrong, and say the same, are not all wrong: what they say is the value."""
    return problem.whole.premise.wrong_checks + 1


def agreed(problem: Problem, said: Mapping[str, Stated], node: str) -> tuple[Stated, int] | None:
    """The value that a quorum of such checks states, and how many were asked; None where none does, or two quorums differ."""
    listed = [said[anchor.id] for anchor in suspect_statements(problem, node) if anchor.id in said]
    found = [value for value, times in Counter(listed).items() if times >= quorum(problem)]
    return (found[0], len(listed)) if len(found) == 1 else None


def agreed_premise(problem: Problem, asked: int) -> str:
    premise = problem.whole.premise
    many = f"at most {premise.wrong_checks} of {asked} checks {'is' if premise.wrong_checks == 1 else 'are'} wrong"
    return many if premise.sure is None else f"{many} (with probability {floor(premise.sure * 10_000) / 10_000:g})"


def is_person(anchor: Anchor) -> bool:
    """Whether a person is asked for its value."""
    source = anchor.source
    if isinstance(source, Mapping):
        return "person" in source
    return isinstance(source, str) and source.partition(":")[0].strip() == "person"


def decisive_checks(problem: Problem, *, without: Collection[str] = ()) -> list[Anchor]:
    """The checks on sale that would decide a problem that delivers one value: machines before people, then the cheapest."""
    node = sole_delivered(problem)
    if node is None:
        return []
    found = [a for a in problem.anchors if not a.owned and a.id not in without and decides(problem, a, node)]
    return cheapest_first(found)


def cheapest_first(anchors: Iterable[Anchor]) -> list[Anchor]:
    """Machines before people, then by the declared price of each alone; what several cost together is the market's matter."""
    return sorted(anchors, key=lambda anchor: (is_person(anchor), exact(anchor.cost or 0.0)))


def worth_of(anchor: Anchor) -> float:
    """How many items a unit of money decides with this check."""
    return 1.0 / max(anchor.cost or 0.0, FREE)


def decided_verdict(problem: Problem) -> Verdict:
    """The verdict of an item that a check has decided: its value is exact, and nothing else is a premise."""
    return decide(Evidence(Explained.UNIQUELY, Goal.of(problem), float("inf"), float("inf"), bound=0.0, exact=True))


def decided_premise(check: str) -> str:
    return f"{check} is right"
