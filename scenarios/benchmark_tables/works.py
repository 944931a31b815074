"""Works on tables, each in a process of its own, so that what it takes of memory and processor time
is its own: run as a program.

`write` makes a table and the answers that were imported for it; `repair` hands over the repaired
table, and can be told to kill itself on the way (a real SIGKILL, in the middle of the chunk after
the one it waits for); `plan` plans a table of seven structures under one budget. Each ends with a
line of JSON: seconds of processor time and of wall time, the largest memory it ever had, and what
came of the work.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rrf_design as rrf
from rrf_design.tables import plan_dataset, repair_dataset, write_output

HERE = Path(__file__).parents[2]
ASKS = ("total", "reworded", "again")
WRONG = 0.13
"""Share of items with one wrong answer among the three."""
INTO_THE_CHUNK = 0.05
"""Seconds from the chunk that a kill waits for to the kill."""
INVOICES: dict[str, Any] = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.005, "k": 1},
    "ask": [
        {"id": "total", "prompt": '{{ text }} Return JSON only: {"total": amount}', "parse": {"json": "total"}},
        {"id": "reworded", "like": "total", "prompt": "How much must be paid? {{ text }}", "parse": "decimal"},
        {"id": "again", "like": "total", "prompt": "{{ text }} What is the gross amount?", "parse": "decimal"},
    ],
}
CHECKS = ("formula", "ledger", "contract")
PATTERNS = tuple(tuple(check for place, check in enumerate(CHECKS) if kind >> place & 1) for kind in range(7))
"""Which checks the items of each structure can have: seven kinds, of which only the clerk sees
all.
"""
PLANNED: dict[str, Any] = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.1, "epsilon": 0.02, "k": 2},
    "ask": [
        {"id": "total", "prompt": "{{ no }}?"},
        *(
            {
                "id": f"wording {i}",
                "like": "total",
                "prompt": f"{{{{ no }}}}, {i}?",
                "buy": "if needed",
                "cost": 1.0 + 0.5 * i,
            }
            for i in range(4)
        ),
    ],
    "check": [
        *(
            {
                "id": check,
                "of": "total",
                "by": {"value": f"{{{{ {check} }}}}"},
                "when": f"{{{{ {check} }}}}",
                "cost": 0.5 + place,
            }
            for place, check in enumerate(CHECKS)
        ),
        {"id": "clerk", "of": "total", "by": {"person": "Total of {{ no }}?"}, "cost": 5.0},
    ],
}


def cells(items: int) -> Iterator[dict[str, Any]]:
    """Rows of a table of seven structures, in turns."""
    for number in range(items):
        has = PATTERNS[number % len(PATTERNS)]
        yield {"no": f"{number:07d}", **{check: "7" if check in has else "" for check in CHECKS}}


def write(folder: Path, items: int, seed: int) -> dict[str, Any]:
    """A table of invoices, and three answers to each as `import` writes them; in one of eight items
    one answer is wrong.
    """
    rng = random.Random(seed)
    (folder / "rrf.json").write_text(json.dumps(INVOICES), encoding="utf-8")
    wrong = 0
    with (
        (folder / "table.csv").open("w", encoding="utf-8") as table,
        (folder / "answers.jsonl").open("w", encoding="utf-8") as answers,
    ):
        table.write("no,text\n")
        for number in range(items):
            amount = rng.randrange(100, 1_000_000) / 100
            table.write(f'{number:07d},"Invoice {number}: please pay {amount:.2f} within 14 days."\n')
            off = rng.randrange(len(ASKS)) if rng.random() < WRONG else None
            wrong += off is not None
            for place, ask in enumerate(ASKS):
                said = amount + (rng.randrange(1, 100) if place == off else 0)
                text = json.dumps({"total": round(said, 2)}) if place == 0 else f"The amount is {said:.2f} euros."
                answers.write(json.dumps({"id": f"{number:07d}", "node": ask, "text": text}) + "\n")
    return {"wrong": wrong}


def delivered(folder: Path, out: str, *, resume: bool = False, kill_at: int | None = None) -> dict[str, Any]:
    """The table, repaired and handed over; where it is to kill itself, it does not return."""

    def progress(share: float | None, bounds: object, words: str) -> None:
        if kill_at is not None and share is not None and share * len(found) >= kill_at and not timers:
            timers.append(threading.Timer(INTO_THE_CHUNK, lambda: os.kill(os.getpid(), signal.SIGKILL)))
            timers[0].start()

    timers: list[threading.Timer] = []
    found = rrf.dataset(folder / "rrf.json", folder / "table.csv")
    kept = folder / f"{out}.rows" if resume else None
    delivery = repair_dataset(found, folder / "answers.jsonl", resume=kept, progress=progress)
    rows = folder / f"{out}.csv"
    write_output(rows, delivery)
    with rows.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"digest": digest, "bytes": rows.stat().st_size, "verdicts": dict(delivery.verdicts)}


def planned(items: int, budget: float) -> dict[str, Any]:
    """One budget over all items, and beside it the plain rule: who reaches the goal for least comes
    first.
    """
    found = rrf.dataset(PLANNED, list(cells(items)))
    started, cpu = time.perf_counter(), time.process_time()
    plan = plan_dataset(found, budget=budget)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    cheapest = [(rrf.plan(one.example, target=plan.target), one.count) for one in found.structures.values()]
    left, most = budget, 0
    for one, count in sorted(cheapest, key=lambda entry: entry[0].cost):
        bought = min(count, int(left / one.cost + 1e-9)) if one.cost else count
        left, most = left - bought * one.cost, most + bought
    return {
        "structures": len(found.structures),
        "planning": seconds,
        "planning_cpu": cpu,
        "status": str(plan.status),
        "value": plan.value,
        "plain": most,
        "cost": plan.cost,
    }


def main(arguments: list[str]) -> None:
    """What to do, as JSON."""
    asked = json.loads(arguments[0])
    work = asked.pop("work")
    folder = Path(asked.pop("folder", "."))
    works: dict[str, Callable[[], dict[str, Any]]] = {
        "write": lambda: write(folder, **asked),
        "repair": lambda: delivered(folder, **asked),
        "plan": lambda: planned(**asked),
    }
    started = time.perf_counter()
    found = works[work]()
    print(
        json.dumps(found | {"wall": time.perf_counter() - started, "cpu": time.process_time(), "memory": most_memory()})
    )


def most_memory() -> int:
    """The most bytes that this process ever had in memory; 0 where the system does not say.

    A process's resource usage also counts what its parent had when it was started, so the system's
    own page is read.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def in_process(work: str, **asked: Any) -> dict[str, Any]:
    """The work in a process of its own, on one thread: what it said, and how it ended (a negative
    number: the signal).
    """
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    told = json.dumps({"work": work, **asked})
    # -P: the folder of this file holds modules that are called like those of the standard library.
    process = subprocess.run(
        [sys.executable, "-P", str(Path(__file__)), told],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **threads, "PYTHONPATH": str(HERE)},
        check=False,
    )
    lines = process.stdout.splitlines()
    said: dict[str, Any] = json.loads(lines[-1]) if process.returncode == 0 else {}
    return said | {"ended": process.returncode}


if __name__ == "__main__":
    main(sys.argv[1:])
