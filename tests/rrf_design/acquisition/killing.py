"""A program that kills runs: forks children from a warm process, ends them with SIGKILL at random
moments, checks the books.

Run by `test_kills.py` in a process of its own, since forking is only safe where nothing else runs.
Usage: killing.py FOLDER KILLS SEED; prints one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from fields import one_wrong, ring  # type: ignore[import-not-found]

from rrf_design.acquisition import acquire
from rrf_design.acquisition._state import RunState
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.models.base import Retry
from rrf_design.models.scripted import ScriptedModel

PATIENCE = 1.1
"""So much longer than the one before a child may live."""
HANGS = 240.0
"""Seconds after which a run of a tenth of a second counts as one that never ends."""


class Candidates(ScriptedModel):
    """A scripted model that writes every call it gets into a file, as a provider's bill would have
    it.
    """

    def __init__(self, bill: Path, *, remote: bool, slots: int) -> None:
        super().__init__(one_wrong, slots=slots)
        self.retry = Retry(attempts=1000)  # a question that is killed four times in a row is not given up here
        self._bill = os.open(bill, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        if remote:
            self._identity, self.local = {**self._identity, "adapter": "shop"}, False

    def attempt(self, request: Any) -> Any:
        os.write(self._bill, request.prompt.encode() + b"\n")
        return super().attempt(request)


def ended(pid: int, seconds: float) -> bool:
    """Wait for a child, but not longer than this."""
    if not hasattr(os, "pidfd_open"):
        time.sleep(seconds)
        return False
    handle = os.pidfd_open(pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


class Trial:
    """One run that is killed until it ends, compared with an undisturbed one."""

    def __init__(
        self, folder: Path, number: int, *, items: int, remote: bool, tight: bool = False, **settings: Any
    ) -> None:
        self.tight = tight
        self.folder, self.number, self.remote = folder, number, remote
        self.problem: Any = ring() if items == 1 else {f"i{j}": ring(4, name=f"i{j}") for j in range(items)}
        self.slots = 1 if items == 1 else 3
        # Doubts of a remote model are paid again, so the disturbed run needs slack to end with the
        # same purchases.
        self.budget = (4.0 if items == 1 else 12.0) * (50.0 if remote and not tight else 1.0)
        self.settings = settings | {"method": "witness"}
        self.kills = 0

    def acquire(self, name: str, **more: Any) -> Any:
        model = Candidates(self.folder / f"{name}.bill", remote=self.remote, slots=self.slots)
        store = self.folder / f"{name}.sqlite"
        given = None if "resume" in more else self.problem
        return acquire(given, model, store=store, budget=self.budget, **self.settings, **more)

    def child(self, name: str, resume: bool) -> int:
        """Fork a process that starts or resumes the run; its exit code is 0 when the run ended."""
        pid = os.fork()
        if pid:
            return pid
        try:
            self.acquire(name, **({"resume": "last"} if resume else {}))
            os._exit(0)
        except BaseException as error:
            os.write(2, f"child: {type(error).__name__}: {error}\n".encode())
            os._exit(3)

    def play(self, rng: random.Random) -> None:
        started = time.perf_counter()
        calm = self.acquire(f"calm{self.number}")
        length = time.perf_counter() - started
        name = f"wild{self.number}"
        settled: set[tuple[str, str]] = set()
        while True:
            pid = self.child(name, resume=self.exists(name))
            # Each kill makes the next child's time longer: a forked child pays for every page it
            # touches, which can cost more than
            # the calm run took as a whole, and then all would be killed before they come to
            # anything, for ever.
            longest = 1.6 * length * PATIENCE**self.kills
            assert longest < HANGS, f"trial {self.number}: no child ends, however long it is left alone"
            if not ended(pid, rng.uniform(0.0, longest)):
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) == 0, f"trial {self.number}: the child failed"
                settled = self.check(name, settled)
                break
            self.kills += 1
            if self.exists(name):
                settled = self.check(name, settled)
        self.compare(name, calm)

    def exists(self, name: str) -> bool:
        """Whether the run itself was committed before the process died."""
        return bool(self.read(name, "select run from rrf_runs"))

    def events(self, name: str) -> list[Event]:
        """The journal as the file has it, read without the code under test."""
        rows = self.read(name, "select kind, body, purchase, attempt, at from rrf_events order by seq")
        return [
            Event(Kind(kind), json.loads(body), purchase, attempt, at) for kind, body, purchase, attempt, at in rows
        ]

    def read(self, name: str, query: str) -> list[Any]:
        path = self.folder / f"{name}.sqlite"
        if not path.exists():
            return []
        database = sqlite3.connect(path)
        try:
            return database.execute(query).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return []  # killed before the tables were made
        finally:
            database.close()

    def check(self, name: str, before: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """The promises, after every kill: budget, no settled answer lost, no call without an
        intent, none twice.
        """
        state = RunState([""] if not isinstance(self.problem, dict) else self.problem)
        intents: dict[str, int] = {}
        for event in self.events(name):
            state.apply(event)
            assert state.committed <= self.budget, "the budget was exceeded"
            if event.kind is Kind.INTENT:
                item, thing = event.body["item"], event.body["name"]
                assert thing not in state.items[item].settled, "bought again after it was settled"
                intents[event.purchase or ""] = intents.get(event.purchase or "", 0) + 1
        path = self.folder / f"{name}.bill"
        bill = path.read_text().splitlines() if path.exists() else []
        for prompt in set(bill):
            item, number = prompt.removesuffix("?").split(": question ")
            purchase = f"n{number}" if item == "ring" else f"{item}\N{RIGHTWARDS ARROW}n{number}"
            assert bill.count(prompt) <= intents.get(purchase, 0), "a call without a committed intent"
        now = {(item, thing) for item, one in state.items.items() for thing in one.settled}
        assert before <= now, "a settled answer was lost"
        return now

    def compare(self, name: str, calm: Any) -> None:
        wild = self.acquire(name, resume="last")
        assert wild.spent <= self.budget
        if self.tight:
            return  # what was lost to doubt is missing in the end, and the budget holds all the same
        key = lambda run: sorted((b.item, b.name, b.outcome, b.value, b.price) for b in run.purchases)  # noqa: E731
        assert key(wild) == key(calm), f"trial {self.number}: other purchases than the undisturbed run"
        assert wild.gamma_lower == calm.gamma_lower, "another margin"
        assert wild.repaired == calm.repaired, "another repair"
        assert wild.spent - wild.lost == calm.spent, "the books do not balance"


KINDS: list[dict[str, Any]] = [
    {"items": 1, "remote": False, "mode": "agnostic"},
    {"items": 1, "remote": False, "mode": "adaptive", "batch": 2},
    {"items": 3, "remote": False, "mode": "agnostic", "batch": 2},
    {"items": 1, "remote": True, "mode": "adaptive"},
    {"items": 1, "remote": True, "mode": "agnostic", "tight": True},
]


def main(folder: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    Trial(folder, 0, items=1, remote=False).acquire("warm")  # compile and import once, before anything is forked
    total = number = 0
    while total < kills:
        number += 1
        trial = Trial(folder, number, **KINDS[number % len(KINDS)])
        trial.play(rng)
        total += trial.kills
    print(json.dumps({"kills": total, "trials": number}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
