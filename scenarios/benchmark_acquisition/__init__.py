"""What the acquisition loop costs beside the models it asks: purchases a second, our share of a
real run, the sandbox.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rrf_design.acquisition import acquire, answer_log
from rrf_design.demo import topics
from rrf_design.errors import MissingDependency
from rrf_design.models import get
from rrf_design.problem import Problem
from rrf_design.responses.sandbox import Program, ProgramStatus, Sandbox
from scenarios.benchmark_acquisition import live_runs
from scenarios.kit import Benchmark, Context, Done, Part, Report, Scenario

PURCHASES_A_SECOND = 300.0
OUR_SHARE = 0.05
PROGRAMS_A_SECOND = 100.0
SCHEDULES = ("witness", "planned", "adaptive")
OF_IDEAL = {64: 0.9, 512: 0.85}
"""Calls at once, and the share of the ideal throughput that is wanted."""
CALL = 0.3
"""Milliseconds of processor time of a call, at most, from the first question to the last answer."""
GROWTH = 1.25
"""How much memory may grow after the first twentieth of the answers."""


def ring(name: str, nodes: int = 6) -> Problem:
    """Questions in a ring of relations, every second one on sale, and an anchor on sale at each
    question.
    """
    relations: list[dict[str, Any]] = [
        {"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % nodes}"} | ({"cost": 1.0} if i % 2 else {})
        for i in range(nodes)
    ]
    return Problem(
        name=name,
        k=1,
        nodes=[{"id": f"n{i}", "prompt": f"{name}: question {i}?"} for i in range(nodes)],
        relations=relations,
        anchors=[{"id": f"a{i}", "node": f"n{i}", "value": 7.0, "cost": 1.0 + 0.1 * i} for i in range(nodes)],
    )


def answer(request: Any) -> str:
    """One question in each field is answered wrongly, so that there is something to repair."""
    return "12" if "question 2" in request.prompt else "7"


def scripted_run(fields: int, schedule: str, folder: Path) -> dict[str, Any]:
    """One data set bought from end to end with the scripted model; every file is fresh."""
    from rrf_design.models.scripted import ScriptedModel

    items = {f"field {i}": ring(f"field {i}") for i in range(fields)}
    settings: dict[str, Any] = {"method": "auto" if schedule == "planned" else "witness"}
    if schedule == "adaptive":
        settings = {"mode": "adaptive"}
    wall, cpu = time.perf_counter(), time.process_time()
    result = acquire(items, ScriptedModel(answer), budget=5.0 * fields, store=folder / "runs.sqlite", **settings)
    return {
        "purchases": len(result.purchases),
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "repaired": sum(entry.repair is not None and entry.repair["support"] == ["n2"] for entry in result.items),
        "fields": fields,
    }


LIVE: tuple[Part, ...] = (*({"what": f"{slots} at once", "slots": slots} for slots in OF_IDEAL), {"what": "rough"})


def parts(context: Context) -> list[Part]:
    return [*({"what": schedule} for schedule in SCHEDULES), {"what": "embedded"}, {"what": "sandbox"}, *LIVE]


def run(context: Context, part: Part) -> dict[str, Any]:
    if part["what"] == "sandbox":
        return sandbox(context["programs"])
    with tempfile.TemporaryDirectory() as folder:
        if part["what"] == "embedded":
            return _embedded(context, Path(folder))
        if "slots" in part:
            return live_runs.throughput(context["live"] * part["slots"], part["slots"], Path(folder))
        if part["what"] == "rough":
            delay = (context["shortest"], context["longest"])
            return live_runs.rough(context["items"], 512, Path(folder), delay=delay, away=context["away"])
        scripted_run(2, part["what"], Path(folder))  # imports and compiled kernels
        rounds = [scripted_run(context["fields"], part["what"], Path(folder)) for _ in range(context["rounds"])]
        return {"rounds": rounds}


def _embedded(context: Context, folder: Path) -> dict[str, Any]:
    """Our share of a run with the embedded model: everything but the time between a question and
    its answer.
    """
    scripted_run(2, "planned", folder)
    questions = topics(context["seed"], sums=context["sums"], products=0, capitals=context["capitals"], programs=0)
    try:
        model = get("embedded")
    except MissingDependency as error:
        return {"missing": str(error)}
    with model:
        start = time.perf_counter()
        problems = {name: topic.problem for name, topic in questions.items()}
        result = acquire(problems, model, budget=2.0 * len(problems), store=folder / "embedded.sqlite")
        total = time.perf_counter() - start
    asking = sum(entry["reply"]["latency"] for entry in answer_log(result.run, store=folder / "embedded.sqlite"))
    return {"total": total, "asking": asking, "answers": result.calls, "purchases": len(result.purchases)}


_PROGRAM = """
def solve(n):
    total = 0
    while n:
        total += n % 10
        n //= 10
    return total + {index}
"""


def sandbox(programs: int, *, workers: int | None = None, tests: int = 8) -> dict[str, Any]:
    """Many different small programs with so many calls each; starting workers is not counted."""
    inputs = [[12345 * i] for i in range(tests)]
    sums = [sum(map(int, str(argument))) for (argument,) in inputs]
    batch = [
        Program.build(_PROGRAM.format(index=index), inputs, expected=[total + index for total in sums])
        for index in range(programs)
    ]
    with Sandbox(workers=workers) as box:
        box.run_many(batch[: 4 * box.workers])
        start = time.perf_counter()
        results = box.run_many(batch)
        rate = programs / (time.perf_counter() - start)
        right = sum(result.status is ProgramStatus.RIGHT for result in results)
        told = {"programs": programs, "workers": box.workers, "isolation": str(box.isolation)}
        return {"rate": rate, "right": right, **told}


def report(context: Context, done: Sequence[Done]) -> Report:
    values = {str(entry.part["what"]): entry.value for entry in done}
    figures = [_rate(schedule, values[schedule]["rounds"]) for schedule in SCHEDULES]
    page, real = context.page(), values["embedded"]
    if "missing" in real:
        page.notes.append(f"The embedded model could not be asked: {real['missing']}")
    share = None if "missing" in real else 1.0 - real["asking"] / real["total"]
    figures.append(
        Benchmark(
            key="share",
            work="time that is ours, embedded model",
            against="time of the whole run",
            value=float("nan") if share is None else share,
            unit="share",
            at_most=None if share is None else OUR_SHARE,
            detail=(
                ""
                if share is None
                else f"{real['total'] - real['asking']:.2f} s of {real['total']:.1f} s, {real['answers']} answers"
            ),
        )
    )
    box = values["sandbox"]
    figures.append(
        Benchmark(
            key="sandbox",
            work="programs through the sandbox",
            against="one second",
            value=box["rate"] if box["right"] == box["programs"] else 0.0,
            unit="programs/s",
            at_least=PROGRAMS_A_SECOND,
            detail=f"{box['right']} of {box['programs']} right, {box['workers']} workers, {box['isolation']}",
        )
    )
    figures += _live(values)
    page.answer = _answer({figure.key: figure.value for figure in figures}, share)
    page.benchmark(figures)
    return page


def _answer(seen: Mapping[str, float], share: float | None) -> str:
    """A schedule that left a field without its repair made no purchases that count, and a live run
    whose books differ no calls.
    """
    rates = [seen[schedule] for schedule in SCHEDULES if seen[schedule] > 0.0]
    made = f"{min(rates):,.0f} to {max(rates):,.0f}" if rates else "an uncounted number of"
    most = max(OF_IDEAL)
    reached = seen[f"throughput-{most}"]
    ideal = (
        f"reaches {reached:.0%} of the ideal throughput" if reached else "books other calls than the server counted,"
    )
    ours = "was not measured" if share is None else f"is {share:.1%}"
    return (
        f"The loop makes {made} purchases a second of processor time ({len(rates)} of {len(SCHEDULES)} schedules"
        f" repaired every field); its own share of a run with the embedded model {ours}, and with {most} calls at once"
        f" to a server it {ideal} at {seen[f'call-{most}']:.2g} ms of processor time a call."
    )


def _live(values: dict[str, dict[str, Any]]) -> list[Benchmark]:
    """Throughput, and what came of the rough server."""
    figures = []
    for slots, wanted in OF_IDEAL.items():
        found = values[f"{slots} at once"]
        calls, bare = found["calls"], found.get("bare")
        beside = "; aiohttp is not installed" if bare is None else f"; bare aiohttp reaches {bare['share']:.0%}"
        alone = "" if bare is None else f"; bare aiohttp takes {1000.0 * bare['cpu'] / calls:.2f} ms"
        figures.append(
            Benchmark(
                key=f"throughput-{slots}",
                work=f"calls a second, {slots} at once, each answered after 0.2 s",
                against="as many as could be answered",
                value=found["share"] if found["right"] else 0.0,
                unit="of the ideal",
                at_least=wanted,
                detail=(
                    f"{calls} calls in {found['seconds']:.2f} s; the event loop was busy for"
                    f" {found['loop']:.0%} of the time{beside}"
                ),
            )
        )
        figures.append(
            Benchmark(
                key=f"call-{slots}",
                work=f"processor time of a call, {slots} at once, first question to last answer",
                against="one call",
                value=1000.0 * found["between"] / calls,
                unit="ms",
                at_most=CALL,
                detail=(
                    f"deciding, journal, wire and parsing; {1000.0 * found['cpu'] / calls:.2f} ms with the making of"
                    f" the problems, their repair and the result{alone}"
                ),
            )
        )
    return [*figures, *_rough(values["rough"])]


def _rough(found: dict[str, Any]) -> list[Benchmark]:
    bad = ", ".join(f"{count} {fault}" for fault, count in sorted(found["faults"].items()) if fault != "good")
    memory = found["memory"]
    right = found["once"] and found["balanced"] and found["stopped"] != "paused"
    return [
        Benchmark(
            key="books",
            work="questions settled exactly once, books equal to the server's",
            against="all questions, server misbehaving",
            value=found["settled"] / (found["items"] * live_runs.QUESTIONS) if right else 0.0,
            unit="share",
            at_least=1.0,
            detail=(
                f"{found['booked']} calls booked, {found['counted']} counted by the server, {found['doubtful']} named"
                f" as in doubt; {found['unanswered']} questions without an answer; {bad}; {found['seconds']:.0f} s"
            ),
        ),
        Benchmark(
            key="memory",
            work="memory at the last answer",
            against="after the first twentieth",
            value=memory[-1] / memory[0] if memory and memory[0] else float("nan"),
            at_most=GROWTH if memory and memory[0] else None,
            detail=f"{memory[0] / 2**20:.0f} to {memory[-1] / 2**20:.0f} MiB" if memory else "the system does not say",
        ),
    ]


def _rate(schedule: str, rounds: Sequence[dict[str, Any]]) -> Benchmark:
    """The median round, and only if every field of every round was repaired as it should be."""
    ordered = sorted(rounds, key=lambda entry: entry["purchases"] / entry["cpu"])
    middle = ordered[len(ordered) // 2]
    right = all(entry["repaired"] == entry["fields"] for entry in rounds)
    return Benchmark(
        key=schedule,
        work=f"purchases with the scripted model, {schedule} schedule",
        against="one second of processor time",
        value=middle["purchases"] / middle["cpu"] if right else 0.0,
        unit="purchases/s",
        at_least=PURCHASES_A_SECOND,
        detail=(
            f"{middle['purchases']} purchases in {middle['fields']} fields; {middle['purchases'] / middle['wall']:.0f}"
            " a second of wall time"
        ),
    )


SCENARIO = Scenario.declared("benchmark-acquisition", parts, run, report, serial=True)
