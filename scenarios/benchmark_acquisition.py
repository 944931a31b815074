"""What the acquisition loop costs beside the models it asks: purchases a second, our share of a real run, the sandbox.

The scripted model answers at once, so a run with it is all ours: planning, witnesses, margins, intents, settlements and
repair. The embedded model shows what is left of that when answers take their time. Rates are per second of processor time of the one process
that runs the loop, so that other programs on the machine don't count; wall time is published beside them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.base import Context, Done, Expectation, Outcome, Part, Scenario
from scenarios.timing import Benchmark, benchmark_figure, benchmark_table

if TYPE_CHECKING:
    from rrf_design.problem import Problem

PURCHASES_A_SECOND = 300.0
OUR_SHARE = 0.05
PROGRAMS_A_SECOND = 100.0
SCHEDULES = ("witness", "planned", "adaptive")


def ring(name: str, nodes: int = 6) -> Problem:
    """Questions in a ring of relations, every second one on sale, and an anchor on sale at each question."""
    from rrf_design.problem import Problem

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
    from rrf_design.acquisition import acquire
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


def parts(context: Context) -> list[Part]:
    return [*({"what": schedule} for schedule in SCHEDULES), {"what": "embedded"}, {"what": "sandbox"}]


def run(context: Context, part: Part) -> dict[str, Any]:
    if part["what"] == "sandbox":
        return _sandbox(context["programs"])
    with tempfile.TemporaryDirectory() as folder:
        if part["what"] == "embedded":
            return _embedded(context, Path(folder))
        scripted_run(2, part["what"], Path(folder))  # imports and compiled kernels
        rounds = [scripted_run(context["fields"], part["what"], Path(folder)) for _ in range(context["rounds"])]
        return {"rounds": rounds}


def _embedded(context: Context, folder: Path) -> dict[str, Any]:
    """Our share of a run with the embedded model: everything but the time between a question and its answer."""
    from rrf_design.acquisition import acquire, answer_log
    from rrf_design.demo import topics
    from rrf_design.errors import MissingDependency
    from rrf_design.models import get

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


def _sandbox(programs: int) -> dict[str, Any]:
    from rrf_design.responses.sandbox import throughput

    found = throughput(programs)
    return {
        "rate": found.rate,
        "right": found.right,
        "programs": found.programs,
        "workers": found.workers,
        "isolation": str(found.isolation),
    }


def report(context: Context, done: Sequence[Done]) -> Outcome:
    values = {str(entry.part["what"]): entry.value for entry in done}
    figures = [_rate(schedule, values[schedule]["rounds"]) for schedule in SCHEDULES]
    notes = []
    real = values["embedded"]
    if "missing" in real:
        notes.append(f"The embedded model could not be asked: {real['missing']}")
    share = None if "missing" in real else 1.0 - real["asking"] / real["total"]
    figures.append(
        Benchmark(
            key="share",
            work="time that is ours, embedded model",
            against="time of the whole run",
            value=float("nan") if share is None else share,
            unit="share",
            required=None if share is None else OUR_SHARE,
            at_most=True,
            detail=""
            if share is None
            else f"{real['total'] - real['asking']:.2f} s of {real['total']:.1f} s, {real['answers']} answers",
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
            required=PROGRAMS_A_SECOND,
            detail=f"{box['right']} of {box['programs']} right, {box['workers']} workers, {box['isolation']}",
        )
    )
    return Outcome(
        verdicts=[figure.verdict(quick=context.quick) for figure in figures],
        figures=[benchmark_figure(figures)],
        tables=[benchmark_table(figures, caption="The loop's own cost; a field has six questions.")],
        notes=notes,
    )


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
        required=PURCHASES_A_SECOND,
        detail=f"{middle['purchases']} purchases in {middle['fields']} fields; {middle['purchases'] / middle['wall']:.0f} a second of wall time",
    )


SCENARIO = Scenario(
    name="benchmark-acquisition",
    title="What the acquisition loop costs",
    question="How many purchases a second can the loop make, and how much of a live run's time is its own?",
    about=__doc__ or "",
    full={"fields": 40, "rounds": 5, "sums": 3, "capitals": 4, "programs": 500, "seed": 7},
    quick={"fields": 6, "rounds": 1, "sums": 1, "capitals": 1, "programs": 60},
    expected=(
        Expectation("witness", f"at least {PURCHASES_A_SECOND:g} purchases a second with the witness rule's schedule"),
        Expectation(
            "planned",
            f"at least {PURCHASES_A_SECOND:g} purchases a second with the planner's schedule, planning included",
        ),
        Expectation("adaptive", f"at least {PURCHASES_A_SECOND:g} purchases a second when every step is decided anew"),
        Expectation("share", f"with the embedded model less than {OUR_SHARE:.0%} of the time is ours"),
        Expectation("sandbox", f"at least {PROGRAMS_A_SECOND:g} programs a second, each in a process of its own"),
    ),
    parts=parts,
    run=run,
    report=report,
    serial=True,
)
