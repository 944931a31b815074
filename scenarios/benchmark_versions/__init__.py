"""Is this version slower than another one? The same works done by both, in turns, in one run."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from scenarios.benchmark_versions.works import FULL, QUICK
from scenarios.kit import Benchmark, Context, Done, Part, Report, Row, Scenario
from scenarios.kit.rows import column, values
from scenarios.kit.timing import benchmark_figure

HERE = Path(__file__).parents[2]
SLOWER = 1.1
ROOMS = ("margin", "plan", "certify", "verify", "repair", "acquire")


@contextmanager
def worker(name: str, checkout: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that does the work called `name` with the package of `checkout`, on one thread."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    # -P: the folder of this file holds modules that are called like those of the standard library.
    command = [sys.executable, "-P", str(HERE / "scenarios" / "benchmark_versions" / "works.py"), name]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **threads, "PYTHONPATH": str(checkout)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line of a worker; what it prints beside its JSON is passed over."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    raise RuntimeError(f"the worker ended with status {process.wait()}; its own message stands above")


def once(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdin is not None
    process.stdin.write("again\n")
    process.stdin.flush()
    return said(process)


def warmed(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    """The first round, and so many seconds of others after it: a kernel is compiled or loaded once
    it has been kept busy, and that is not counted.
    """
    first = once(process)
    spent = first["seconds"]
    while spent < seconds:
        spent += once(process)["seconds"]
    return first


def parts(context: Context) -> list[Part]:
    return [{"work": name} for name in (QUICK if context.quick else FULL)]


def run(context: Context, part: Part) -> dict[str, Any]:
    other = Path(context["before"] or HERE)
    if not (other / "rrf_design" / "__init__.py").is_file():
        raise InputError(
            f"before={context['before']}: no checkout of the package; name the folder that holds rrf_design"
        )
    with worker(part["work"], HERE) as now, worker(part["work"], other) as before:
        versions = said(now)["version"], said(before)["version"]
        first = warmed(now, context["warm"]), warmed(before, context["warm"])
        mine: list[float] = []
        theirs: list[float] = []
        for round_ in range(context["rounds"]):
            order = ((now, mine), (before, theirs)) if round_ % 2 else ((before, theirs), (now, mine))
            for process, times in order:
                times.append(once(process)["seconds"])
    return {
        "work": part["work"],
        "versions": versions,
        "found": [entry["found"] for entry in first],
        "now": mine,
        "before": theirs,
    }


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = list(map(_row, values(done)))
    now, before = done[0].value["versions"]
    itself = not context["before"]
    differing = [row["work"] for row in rows if row["now_found"] != row["before_found"]]
    page = context.page()
    page.check("same", not differing, f"{len(differing)} of {len(rows)} works differ {differing or ''}".strip())
    figures = []
    for room in ROOMS:
        own = [row for row in rows if row["work"].startswith(room)]
        if not own or itself or context.quick:
            page.open([room], "held against itself" if itself else "quick size")
        if own:
            worst = max(own, key=lambda row: row["times"])
            figures.append(Benchmark(room, worst["work"], f"the same in {before}", worst["times"], at_most=SLOWER))
    if not itself and not context.quick:
        page.verdicts += [figure.verdict() for figure in figures]
    slower, quicker = (choose(rows, key=lambda row: row["times"]) for choose in (max, min))
    page.answer = (
        f"Over {len(rows)} works, version {now} takes {statistics.geometric_mean(column(rows, 'times')):.2f} times the"
        f" processor time of {before} on average; at best {quicker['times']:.2f} ({quicker['work']}), at worst"
        f" {slower['times']:.2f} ({slower['work']})."
    )
    page.figures.append(benchmark_figure(figures))
    page.table("works", rows)
    return page


def _row(value: Row) -> Row:
    ratios = [now / max(before, 1e-9) for now, before in zip(value["now"], value["before"], strict=True)]
    return {
        "work": value["work"],
        "now_seconds": statistics.median(value["now"]),
        "before_seconds": statistics.median(value["before"]),
        "times": statistics.median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
        "now_found": str(value["found"][0]),
        "before_found": str(value["found"][1]),
    }


SCENARIO = Scenario.declared("benchmark-versions", parts, run, report, serial=True)
