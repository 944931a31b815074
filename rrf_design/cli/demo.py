"""rrf-design demo: the whole story in about a minute, on the embedded model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli.options import AsJson, Quiet
from rrf_design.cli.output import console, print_json, say, table, tell_compiling
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.demo import Grade, Topic

BUDGET = 16.0


def demo_verb(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for run, certificates and report.")] = Path(
        "demo-output"
    ),
    model: Annotated[str, typer.Option("--model", help="Who answers.")] = "embedded",
    seed: Annotated[int, typer.Option("--seed", help="Chooses the numbers in the questions.")] = 7,
    budget: Annotated[float, typer.Option("--budget", help="What the plan may spend.")] = BUDGET,
    slots: Annotated[int, typer.Option("--slots", help="Questions in flight at once.")] = 2,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Ask a very small model easy questions in several wordings, and find out which answers are
    wrong.

    Example: rrf-design demo
    """
    from rrf_design import models
    from rrf_design.cli.run_results import certify_all
    from rrf_design.demo import judge, topics

    models.get(model)  # what is missing is said now, not after the planning
    if not quiet:
        tell_compiling()
    started = time.monotonic()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: can't be made a folder ({error.strerror})") from None
    tell = (lambda text: None) if quiet or as_json else say
    questions = topics(seed)
    tell(_opening(questions))
    tell(_plan(questions, budget))
    run = _acquire(questions, out, model=model, budget=budget, slots=slots, quiet=quiet or as_json)
    judgement = judge(run, questions)
    tell("\nCertifying every field, and letting the independent verifier re-prove it …")
    proofs = _verified(certify_all(run, out / "certificates"))
    page = _report(run, out, questions)
    seconds = time.monotonic() - started
    if as_json:
        print_json(_document(run, judgement, proofs, seconds, out))
    else:
        _results(run, judgement, questions)
        say(_summary(run, judgement, proofs, seconds, budget))
        say(
            f"\nThe report: {page}   The journal: {out / 'runs.sqlite'} (rrf-design show last --store"
            f" {out / 'runs.sqlite'})"
        )
    raise typer.Exit(0 if judgement.kept and all(proofs.values()) else 1)


def _opening(questions: dict[str, Topic]) -> str:
    from rrf_design.demo.questions import ATLAS, CALCULATOR, WORDING, K

    return (
        f"{len(questions)} easy questions, and a model that is too small for them.\nEach is asked in four wordings. Two"
        f" more wordings ({WORDING:g} each) and one check are for sale (a calculator or a test run {CALCULATOR:g}, a"
        f" person with an atlas {ATLAS:g}).\nUp to k = {K} answers per question may be wrong and must not be able to"
        " hide. With four wordings alone they can: all four may be wrong together, and nothing would show it"
        " (margin 0)."
    )


def _plan(questions: dict[str, Topic], budget: float) -> str:
    from rrf_design.demo.questions import TARGET
    from rrf_design.planning import portfolio

    problems = [topic.problem for topic in questions.values()]
    portfolio(problems[:1], budget=budget, aim="count", target=TARGET)  # the first call compiles: no part of planning
    began = time.monotonic()
    found = portfolio(problems, budget=budget, aim="count", target=TARGET)
    taken = time.monotonic() - began
    checks = [s.name for s in found.shares if "check" in s.selected]
    wordings = [s.name for s in found.shares if s.selected and "check" not in s.selected]
    left = [s.name for s in found.shares if not s.reached]
    lines = [
        f"\nThe plan for a budget of {budget:g} ({found.status}, found and proved in {taken:.1f} s): {len(checks)}"
        f" checks and {len(wordings)} further wordings bring {found.value:g} of {len(problems)} questions to a margin"
        f" of at least {TARGET:g}; no other way to spend {budget:g} protects more."
    ]
    if left:
        lines.append(f"There is no money left for: {', '.join(left)}. Nothing will be promised there.")
    return "\n".join(lines)


def _acquire(
    questions: dict[str, Topic], out: Path, *, model: str, budget: float, slots: int, quiet: bool
) -> Acquisition:
    from rrf_design.acquisition import acquire
    from rrf_design.acquisition.stopping import Exhausted, Target

    problems = {name: topic.problem for name, topic in questions.items()}
    options = {"slots": slots} if model == "embedded" or model.endswith(".gguf") else {}
    given: dict[str, Any] = {"budget": budget, "store": out / "runs.sqlite", "stop": Target() | Exhausted()}
    if quiet:
        return acquire(problems, model, model_options=options, **given)
    say("\nNow the model answers …")
    with _Progress() as progress:
        return acquire(problems, model, model_options=options, progress=progress, **given)


class _Progress:
    """A bar over the questions on a terminal."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
        )
        self._bar = Progress(*columns, console=console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=1.0)

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        self._bar.update(self._task, completed=share, description=words)


def _verified(paths: list[Path]) -> dict[str, bool]:
    """Every certificate re-proved from its file by a search that shares nothing with the one that
    found its margin.
    """
    from rrf_design.certificates import verify

    return {path.name: verify(path).valid for path in paths}


def _report(run: Acquisition, out: Path, questions: dict[str, Topic]) -> Path:
    import json

    from rrf_design.documents import write_text
    from rrf_design.reporting import write_report

    write_text(out / "run.json", json.dumps(run.to_json(), ensure_ascii=False, indent=1) + "\n")
    problems = {name: topic.problem for name, topic in questions.items()}
    return write_report(run, out / "report.html", problem=problems)


def _results(run: Acquisition, judgement: Grade, questions: dict[str, Topic]) -> None:
    from rrf_design.demo import FieldVerdict

    rows = []
    for entry, field in zip(run.items, judgement.fields, strict=True):
        topic = questions[entry.item]
        names = [node.id for node in topic.problem.nodes if node.id in entry.answers or node.id in field.unread]
        shown = [_answer(topic, entry, name, wrong=name in field.wrong) for name in names]
        plain = topic.problem.nodes[0].id
        repaired = (entry.repaired or {}).get(plain)
        truth = topic.words(topic.truth[plain])
        said = topic.words(repaired) if field.verdict is not FieldVerdict.NOTICED else "beyond repair"
        mark = "✓" if said == truth else "✗"
        rows.append((entry.item, _joined(shown), f"{mark} {said}", f"{entry.gamma_lower:.2f}", field.verdict.value))
    say("")
    table(
        "What the model said (! is wrong, ? could not be read), and what the answers became",
        ["question", "answers, wording by wording", "repaired", "margin", "verdict"],
        rows,
        right=[3],
    )


def _joined(shown: list[str]) -> str:
    """The answers in a row; "5 × Cairo" when they are all the same."""
    return f"{len(shown)} × {shown[0]}" if len(shown) > 2 and len(set(shown)) == 1 else "  ".join(shown)


def _answer(topic: Topic, entry: Any, name: str, *, wrong: bool) -> str:
    if name not in entry.answers:
        return "?"
    return topic.words(entry.answers[name]) + ("!" if wrong else "")


def _summary(run: Acquisition, judgement: Grade, proofs: dict[str, bool], seconds: float, budget: float) -> str:
    from rrf_design.demo import FieldVerdict as V

    fields = judgement.fields
    count = len(fields)
    certified = sum(f.certified for f in fields)
    right = judgement.asked - judgement.wrong - judgement.unread
    lines = [
        "",
        (
            f"{judgement.asked} answers: {right} right, {judgement.wrong} wrong, {judgement.unread} could not be read."
            f" {judgement.repaired} of the wrong ones were found and replaced by the right value."
        ),
        (
            f"{judgement.within} of {count} questions had at most two wrong answers, which is what the design is for;"
            f" {count - judgement.within} had more, or no answer that could be read."
        ),
        f"Guarantee: {certified} of {count} designs are certified, and {sum(proofs.values())} of {len(proofs)}"
        " certificates were re-proved by the verifier. "
        + ("No promise was broken." if judgement.kept else "A PROMISE WAS BROKEN: this is a bug, please report it."),
    ]
    failed = [
        (V.NOTICED, "Noticed to be beyond repair"),
        (V.FOOLED, "Fooled"),
        (V.UNCERTAIN, "Nothing was promised, and rightly so"),
    ]
    failed += [(V.LUCKY, "Right, though nothing was promised")]
    for verdict, words in failed:
        names = [f.item for f in fields if f.verdict is verdict]
        if names:
            lines.append(f"{words}: {', '.join(names)}{_why(verdict)}.")
    lines.append(f"Spent {run.spent:g} of {budget:g}; {run.calls} model calls; {seconds:.0f} seconds in all.")
    return "\n".join(lines)


def _why(verdict: Any) -> str:
    from rrf_design.demo import FieldVerdict as V

    return {
        V.NOTICED: " (more than two answers are wrong, and no two changes explain what was measured)",
        V.FOOLED: (
            " (more than two answers are wrong and agree with each other; only a larger k or more checks would see it)"
        ),
        V.UNCERTAIN: " (no check was bought, or too few answers could be read)",
    }.get(verdict, "")


def _document(run: Acquisition, judgement: Grade, proofs: dict[str, bool], seconds: float, out: Path) -> dict[str, Any]:
    from rrf_design.documents import sealed

    content = {
        "run": run.run,
        "questions": len(judgement.fields),
        "answers": judgement.asked,
        "wrong": judgement.wrong,
        "unread": judgement.unread,
        "repaired": judgement.repaired,
        "within_budget": judgement.within,
        "certified": sum(field.certified for field in judgement.fields),
        "certificates_valid": all(proofs.values()),
        "promise_kept": judgement.kept,
        "verdicts": {field.item: field.verdict.value for field in judgement.fields},
        "spent": run.spent,
        "calls": run.calls,
        "seconds": seconds,
        "out": str(out),
    }
    return sealed("rrf-demo", content)
