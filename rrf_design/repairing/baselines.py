"""Majority vote, mode and median as decoders of the same contract, so that repairs are compared on equal terms.

Responses are transported to the first node of their connected part, aggregated there, and the aggregate is transported
back to every node. They promise nothing: a shared error wins every vote.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from rrf_design.repairing.contract import Array, Decoder, DecoderOutcome, Task
from rrf_design.repairing.transports import Chart, charts

SAME = 1e-9
"""Two answers agree when they differ by less than this, relative to their size."""


class Vote(Decoder):
    """What the three have in common: to a reference node and back."""

    def decode(self, task: Task) -> DecoderOutcome:
        repaired = {name: np.array(value) for name, value in task.values.items()}
        notes: list[str] = []
        for chart in charts(task):
            self._decide(task, chart, repaired, notes)
        missing = [name for name in task.operator.node_ids if name not in repaired]
        if missing:
            notes.append(f"no vote reaches {', '.join(missing)}")
        filled = {
            name: repaired.get(name, np.zeros(task.problem.node_by_id[name].dim)) for name in task.operator.node_ids
        }
        error = task.response - task.operator.stack(filled)
        for i, name in enumerate(task.operator.node_ids):
            if name in task.values and np.array_equal(repaired[name], task.values[name]):
                error[task.operator.groups[i]] = 0.0
        unknown = tuple(task.operator.node_index[name] for name in missing)
        return DecoderOutcome(error=error, method=self.name, heuristic=True, unknown=unknown, notes=tuple(notes))

    def _decide(self, task: Task, chart: Chart, repaired: dict[str, Array], notes: list[str]) -> None:
        votes = {n: chart.canonical(n, np.array(task.values[n])) for n in chart.maps if n in task.values}
        if not votes:
            return
        winner = self.aggregate(np.array(list(votes.values())), notes)
        if winner is None:
            return
        for name, move in chart.maps.items():
            if name not in votes or not agree(votes[name], winner):
                repaired[name] = move(winner)

    @abstractmethod
    def aggregate(self, votes: Array, notes: list[str]) -> Array | None:
        """One answer from votes (count, dim); None to leave the responses as they are."""


class MostCommon(Vote):
    """The most frequent answer; among equals the one given first."""

    name = "mode"

    def aggregate(self, votes: Array, notes: list[str]) -> Array | None:
        counts = [sum(agree(vote, other) for other in votes) for vote in votes]
        best = int(np.argmax(counts))
        rivals = [
            v for v, count in zip(votes, counts, strict=True) if count == counts[best] and not agree(v, votes[best])
        ]
        if rivals:
            notes.append("the vote is tied; the answer given first was taken")
        return np.asarray(votes[best])


class Majority(Vote):
    """The answer of more than half of the nodes, if there is one."""

    name = "majority"

    def aggregate(self, votes: Array, notes: list[str]) -> Array | None:
        for vote in votes:
            if 2 * sum(agree(vote, other) for other in votes) > len(votes):
                return np.asarray(vote)
        notes.append("no answer has a majority; the responses were left as they are")
        return None


class Median(Vote):
    """The lower median of each coordinate: never the average of two answers."""

    name = "median"

    def aggregate(self, votes: Array, notes: list[str]) -> Array | None:
        return np.asarray(np.sort(votes, axis=0)[(len(votes) - 1) // 2])


BASELINES: dict[str, type[Vote]] = {"majority": Majority, "median": Median, "mode": MostCommon}


def agree(first: Array, second: Array) -> bool:
    scale = max(1.0, float(np.abs(first).max()), float(np.abs(second).max()))
    return bool(np.abs(first - second).max() <= SAME * scale)
