"""What a large table costs: a plan for a hundred thousand items, the repair of a million, and the
same on several machines.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from scenarios.benchmark_tables import works
from scenarios.kit import Benchmark, Context, Done, Part, Report, Scenario
from scenarios.kit.rows import values

PLANNING = 30.0
PLANNING_MEMORY = 3.0
MEMORY = 1.25
"""How much more memory ten times the items may take."""
ITEM = 0.6
"""Milliseconds of processor time that an item may cost, opening the table, reading answers and
writing included.
"""


def parts(context: Context) -> list[Part]:
    return [{"what": "plan"}, {"what": "repair"}, {"what": "workers"}]


def run(context: Context, part: Part) -> dict[str, Any]:
    if part["what"] == "plan":
        return works.in_process("plan", items=context["planned"], budget=context["budget"] * context["planned"])
    with tempfile.TemporaryDirectory() as folder:
        if part["what"] == "workers":
            return _workers(context, Path(folder))
        return _repair(context, Path(folder))


def _repair(context: Context, folder: Path) -> dict[str, Any]:
    """From end to end, and killed and resumed beside it; then a tenth of the table."""
    items = context["items"]
    sizes = {"whole": items, "tenth": max(1, items // 10)}
    for name, size in sizes.items():
        (folder / name).mkdir()
        works.in_process("write", folder=str(folder / name), items=size, seed=context["seed"])
    whole, tenth = (str(folder / name) for name in sizes)

    def straight() -> list[dict[str, Any]]:
        return [
            works.in_process("repair", folder=whole, out="straight"),
            works.in_process("repair", folder=tenth, out="straight"),
        ]

    def killed() -> list[dict[str, Any]]:
        first = works.in_process("repair", folder=whole, out="killed", resume=True, kill_at=items // 2)
        kept = _lines(folder / "whole" / "killed.rows") - 1
        return [first | {"kept": kept}, works.in_process("repair", folder=whole, out="killed", resume=True)]

    with ThreadPoolExecutor(2) as pool:  # each waits for processes
        one, other = pool.submit(straight), pool.submit(killed)
        (full, small), (dead, resumed) = one.result(), other.result()
    return {"items": items, "small": sizes["tenth"], "full": full, "tenth": small, "killed": dead, "resumed": resumed}


def _lines(path: Path) -> int:
    """Whole lines of what was kept: none where nothing was."""
    if not path.exists():
        return 0
    with path.open("rb") as stream:
        return sum(line.endswith(b"\n") for line in stream)


def _workers(context: Context, folder: Path) -> dict[str, Any]:
    """The table repaired here, and by so many worker processes each time."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        return {"missing": "Dask is not installed (rrf-design[cluster])"}
    from joblib import parallel_config

    works.write(folder, context["shared"], context["seed"])
    found = {"0": works.delivered(folder, "here")["digest"]}
    for count in context["workers"]:
        with (
            LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=50
            ) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(count, timeout=300)
            with parallel_config(backend="dask", n_jobs=-1):
                found[str(count)] = works.delivered(folder, f"by {count}")["digest"]
    return {"digests": found, "items": context["shared"]}


def report(context: Context, done: Sequence[Done]) -> Report:
    (plan,), (repair,), (shared,) = (values(done, what=what) for what in ("plan", "repair", "workers"))
    page = context.page()
    page.benchmark([*_planning(plan, context["planned"]), *_repairing(repair)])
    page.check(
        "optimal",
        plan["ended"] == 0 and plan["status"] == "optimal" and plan["value"] == plan["plain"],
        f"{plan.get('status', 'ended early')}: {plan.get('value', 0):,.0f} items reach the goal,"
        f" {plan.get('plain', 0):,.0f} by the plain rule, {plan.get('structures', 0)} structures",
    )
    _resumed(page, repair)
    _same(page, shared)
    page.answer = _answer(page, plan, repair, context["planned"])
    page.table("processes", _rows(context, plan, repair))
    return page


def _planning(plan: Mapping[str, Any], items: int) -> list[Benchmark]:
    known = plan["ended"] == 0
    return [
        Benchmark(
            key="plan-seconds",
            work=f"plan of {items:,} items in seven structures under one budget",
            against="processor time, opening the table included",
            value=plan["cpu"] if known else float("inf"),
            unit="s",
            at_most=PLANNING,
            detail=(
                f"{plan['wall']:.1f} s of wall time; the planner alone {plan['planning']:.1f} s"
                if known
                else "it ended early"
            ),
        ),
        Benchmark(
            key="plan-memory",
            work="the same",
            against="the most memory it ever had",
            value=plan["memory"] / 2**30 if known and plan["memory"] else float("nan"),
            unit="GiB",
            at_most=PLANNING_MEMORY if known and plan["memory"] else None,
        ),
    ]


def _repairing(repair: Mapping[str, Any]) -> list[Benchmark]:
    full, small = repair["full"], repair["tenth"]
    known = full["ended"] == 0 and small["ended"] == 0
    measured = known and bool(small["memory"])
    return [
        Benchmark(
            key="item",
            work=f"repair of {repair['items']:,} imported items, three answers each",
            against="processor time of an item",
            value=1000.0 * full["cpu"] / repair["items"] if known else float("inf"),
            unit="ms",
            at_most=ITEM,
            detail=(
                f"{full['wall']:.0f} s of wall time beside the run that was killed; {_verdicts(full)}"
                if known
                else "it ended early"
            ),
        ),
        Benchmark(
            key="memory",
            work=f"the most memory, {repair['items']:,} items",
            against=f"{repair['small']:,} items",
            value=full["memory"] / small["memory"] if measured else float("nan"),
            at_most=MEMORY if measured else None,
            detail=(
                f"{small['memory'] / 2**20:.0f} to {full['memory'] / 2**20:.0f} MiB"
                if measured
                else "the system does not say"
            ),
        ),
    ]


def _verdicts(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(found["verdicts"].items()))


def _resumed(page: Report, repair: Mapping[str, Any]) -> None:
    dead, full, resumed = repair["killed"], repair["full"], repair["resumed"]
    was_killed = dead["ended"] == -signal.SIGKILL and 0 < dead["kept"] < repair["items"]
    same = full["ended"] == resumed["ended"] == 0 and full["digest"] == resumed["digest"]
    told = (
        f"killed with {dead['kept']:,} of {repair['items']:,} rows kept" if was_killed else "it was not killed half-way"
    )
    bytes_ = f"{full.get('bytes', 0):,} bytes, {'the same' if same else 'NOT the same'} as without a kill"
    page.check("resumed", was_killed and same, f"{told}; {bytes_}")


def _same(page: Report, shared: Mapping[str, Any]) -> None:
    digests = shared.get("digests", {})
    differing = [name for name, digest in digests.items() if digest != digests["0"]]
    others = ", ".join(name for name in digests if name != "0")
    told = f"{shared.get('items', 0):,} items through {others} worker processes: "
    told += f"other bytes through {differing}" if differing else "the same bytes"
    reason = shared.get("missing") or (not others and "no worker processes at this size")
    page.check("workers", not differing, told, unless=reason)


def _rows(context: Context, plan: Mapping[str, Any], repair: Mapping[str, Any]) -> list[dict[str, Any]]:
    named = [
        ("plan", context["planned"], plan),
        ("repair", repair["items"], repair["full"]),
        ("repair, killed", repair["killed"]["kept"], repair["killed"]),
        ("repair, resumed", repair["items"] - repair["killed"]["kept"], repair["resumed"]),
        ("repair", repair["small"], repair["tenth"]),
    ]
    return [
        {
            "work": work,
            "items": items,
            "processor_seconds": found.get("cpu"),
            "wall_seconds": found.get("wall"),
            "memory_mib": found["memory"] / 2**20 if found.get("memory") else None,
            "ended": found["ended"],
        }
        for work, items, found in named
    ]


def _answer(page: Report, plan: Mapping[str, Any], repair: Mapping[str, Any], items: int) -> str:
    full = repair["full"]
    if plan["ended"] or full["ended"]:
        return "A piece of work ended before it was done: the table of processes says which."
    kill = "NOT the same bytes" if "resumed" in page.violated else "the same bytes"
    words = {"met": "changes no byte", "violated": "CHANGES the result", "not judged": "was not tried"}
    where = words[page.verdicts[-1].status]
    return (
        f"A plan for {items:,} items of seven structures under one budget takes {plan['cpu']:.1f} s ({plan['status']}),"
        f" and the repair of {repair['items']:,} imported items {1000.0 * full['cpu'] / repair['items']:.2f} ms an item"
        f" in {full['memory'] / 2**20:.0f} MiB: killed half-way and resumed it delivers {kill}, and sharing it out over"
        f" worker processes {where}."
    )


SCENARIO = Scenario.declared("benchmark-tables", parts, run, report, serial=True)
