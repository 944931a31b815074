"""rrf-design demo: the whole story in about a minute, on the embedded model."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli._run_results import certify_all, write_document
from rrf_design.cli.output import Printer, progress_bar, say, table, tell_compiling
from rrf_design.documents import sealed, write
from rrf_design.errors import InputError
from rrf_design.texts import cell_text
from rrf_design.verdict import Verdict

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.demo import Grade, Topic
    from rrf_design.promises import TestedDelivery

BUDGET = 16.0


def demo_verb(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for run, certificates and report.")] = Path(
        "demo-output"
    ),
    model: Annotated[str, typer.Option("--model", help="Who answers.")] = "embedded",
    seed: Annotated[int, typer.Option("--seed", help="Chooses the numbers in the questions.")] = 7,
    budget: Annotated[float, typer.Option("--budget", help="What the plan may spend.")] = BUDGET,
    slots: Annotated[int, typer.Option("--slots", help="Questions in flight at once.")] = 2,
    *,
    printer: Printer,
) -> int:
    """Ask a very small model easy questions in several wordings, and find out which answers are
    wrong.

    Example: rrf-design demo
    """
    from rrf_design import models, verify
    from rrf_design.demo import judge, topics

    models.get(model)  # what is missing is said now, not after the planning
    if not printer.quiet:
        tell_compiling()
    started = time.monotonic()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: can't be made a folder ({error.strerror})") from None
    questions = topics(seed, sums=3, products=2)
    printer.news(_opening(questions))
    printer.news(_plan(questions, budget))
    run = _acquire(questions, out, model, budget, slots, printer)
    judgement = judge(run, questions)
    printer.news("\nCertifying every field, and letting the independent verifier re-prove it …")
    # each from its file, by a search that shares nothing with the one that found its margin
    proofs = {path.name: verify(path).valid for path in certify_all(run, out / "certificates")}
    write_document(out / "run.json", run)
    rows = _results(run, judgement, questions)
    summary = _summary(run, judgement, proofs, budget)
    page = _write_page(run, questions, rows, summary, out / "report.html")
    if not printer.as_json:
        say("")
        table(_HEADING, _HEADS, rows, right=[3])
        say("\n".join(["", *summary]))
        journal = out / "runs.sqlite"
        say(f"The report: {page}   The journal: {journal} (rrf-design show last --store {journal})")
    handed = _hand_over(out, model, slots, printer)
    seconds = time.monotonic() - started

    def describe() -> None:
        _tell_handed(handed, out)
        say(f"\n{seconds:.0f} seconds in all.")

    printer.result(lambda: _document(run, judgement, proofs, handed, seconds, out), describe)
    return 0 if judgement.kept and all(proofs.values()) and handed.reached else 1


def _opening(questions: dict[str, Topic]) -> str:
    from rrf_design.demo import ATLAS, CALCULATOR, WORDING, K

    return (
        f"{len(questions)} easy questions, and a model that is too small for them.\nEach is asked in four wordings. Two"
        f" more wordings ({WORDING:g} each) and one check are for sale (a calculator or a test run {CALCULATOR:g}, a"
        f" person with an atlas {ATLAS:g}).\nUp to k = {K} answers per question may be wrong and must not be able to"
        " hide. With four wordings alone they can: all four may be wrong together, and nothing would show it"
        " (margin 0)."
    )


def _plan(questions: dict[str, Topic], budget: float) -> str:
    from rrf_design.demo import TARGET
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
    questions: dict[str, Topic], out: Path, model: str, budget: float, slots: int, printer: Printer
) -> Acquisition:
    from rrf_design.acquisition import acquire
    from rrf_design.acquisition.stopping import Exhausted, Target

    problems = {name: topic.problem for name, topic in questions.items()}
    options = {"slots": slots} if model == "embedded" or model.endswith(".gguf") else {}
    given: dict[str, Any] = {"budget": budget, "store": out / "runs.sqlite", "stop": Target() | Exhausted()}
    printer.news("\nNow the model answers …")
    with progress_bar("asking", quiet=printer.quiet or printer.as_json) as progress:
        return acquire(problems, model, model_options=options, progress=progress, **given)


_HEADING = "What the model said (! is wrong, ? could not be read), and what the answers became"
_HEADS = ["question", "answers, wording by wording", "repaired", "margin", "verdict"]


def _results(run: Acquisition, judgement: Grade, questions: dict[str, Topic]) -> list[tuple[str, ...]]:
    """Each question in words, held against the truth."""
    from rrf_design.demo import FieldVerdict

    rows: list[tuple[str, ...]] = []
    for entry, field in zip(run.items, judgement.fields, strict=True):
        topic = questions[entry.item]
        names = [node.id for node in topic.problem.nodes if node.id in entry.answers or node.id in field.unread]
        words = {name: topic.words(value) for name, value in entry.answers.items()}
        shown = [words.get(name, "?") + ("!" if name in field.wrong else "") for name in names]
        plain = topic.problem.nodes[0].id
        repaired = (entry.repaired or {}).get(plain)
        truth = topic.words(topic.truth[plain])
        said = topic.words(repaired) if field.verdict is not FieldVerdict.NOTICED else "beyond repair"
        mark = "✓" if said == truth else "✗"
        rows.append((entry.item, _joined(shown), f"{mark} {said}", f"{entry.gamma_lower:.2f}", field.verdict.value))
    return rows


def _write_page(
    run: Acquisition, questions: dict[str, Topic], rows: list[tuple[str, ...]], summary: list[str], out: Path
) -> Path:
    """The page of the run, and before it what holding it against the truth found."""
    from rrf_design.documents import write_text
    from rrf_design.reporting.documents import read
    from rrf_design.reporting.pages import bullets, section
    from rrf_design.reporting.pages import table as drawn
    from rrf_design.reporting.runs import run_page

    parts = run_page(read(run, problem={name: topic.problem for name, topic in questions.items()}))
    judged = section("Held against the truth", bullets(summary), drawn(_HEADS, rows, right=[3], caption=_HEADING))
    write_text(out, replace(parts, sections=[judged, *parts.sections]).html())
    return out


def _hand_over(out: Path, model: str, slots: int, printer: Printer) -> TestedDelivery:
    """A table of capitals, from questions to what may be said of it; an atlas plays the people."""
    from rrf_design import dataset, deliver
    from rrf_design.demo import CAPITALS, write_capitals
    from rrf_design.promises import LiveModels
    from rrf_design.tables.delivered import write_output

    folder = out / "capitals"
    folder.mkdir(exist_ok=True)
    printer.news(
        f"\nAnd a table to hand over: the capitals of {len(CAPITALS)} countries, asked in three wordings. People look"
        "\nat doubtful rows first, then at random ones, until at most 10 % of the rows can be wrong; an atlas plays the"
        " people.\nThe model answers …"
    )
    own = {"model_options": {"slots": slots}} if model == "embedded" or model.endswith(".gguf") else {}
    with progress_bar("asking", quiet=printer.quiet or printer.as_json) as progress:
        live = LiveModels(model, folder / "runs.sqlite", {**own, "progress": progress})
        found = deliver(dataset(write_capitals(folder)), live)
    for name in ("delivered.csv", "delivered.html"):
        write_output(folder / name, found.delivery)
    write(folder / "proof.json", found.document)
    return found


def _tell_handed(found: TestedDelivery, out: Path) -> None:
    from rrf_design.demo import CAPITALS

    rows = [
        (row.id, cell_text(row.answer), row.reason) for row in found.delivery.rows() if row.verdict is Verdict.CHECKED
    ]
    fixed = [(name, answer) for name, answer, reason in rows if "wrong" in reason]
    left = _still_wrong(found)
    unseen = [(row.id, cell_text(row.answer)) for row in found.delivery.rows() if row.verdict is not Verdict.CHECKED]

    def listed(pairs: list[tuple[str, str]], most: int = 8) -> str:
        more = f", and {len(pairs) - most} more" if len(pairs) > most else ""
        return ", ".join(f"{name}: {answer}" for name, answer in pairs[:most]) + more

    say("")
    say(found.sentence)
    if fixed:
        say(f"Looked at, wrong, and fixed: {listed(fixed)}.")
    if unseen:
        say(f"Handed over without a look: {listed(unseen)}.")
    if left:
        fooled = ", ".join(f"{name}: {said} (it is {CAPITALS[name]})" for name, said in left)
        kept = (
            f"the promise allows for up to {found.bound}"
            if len(left) <= found.bound
            else f"more than the {found.bound} promised, which may happen to 1 table in 20"
        )
        say(f"Fooled, and nobody looked: {fooled}; {kept}.")
    folder = out / "capitals"
    say(
        f"The table: {folder / 'delivered.csv'} and delivered.html   Its proof: rrf-design verify"
        f" {folder / 'proof.json'} --delivered {folder / 'delivered.csv'}"
    )


def _still_wrong(found: TestedDelivery) -> list[tuple[str, str]]:
    """Rows of the delivered table that are not what the atlas says."""
    from rrf_design.demo import CAPITALS

    shown = [(row.id, cell_text(row.answer)) for row in found.delivery.rows()]
    return [(name, said) for name, said in shown if said != CAPITALS[name]]


def _joined(shown: list[str]) -> str:
    """The answers in a row; "5 × Cairo" when they are all the same."""
    return f"{len(shown)} × {shown[0]}" if len(shown) > 2 and len(set(shown)) == 1 else "  ".join(shown)


_MISSED = {
    "NOTICED": (
        "Noticed to be beyond repair",
        " (more than two answers are wrong, and no two changes explain what was measured)",
    ),
    "FOOLED": (
        "Fooled",
        " (more than two answers are wrong and agree with each other; only a larger k or more checks would see it)",
    ),
    "UNCERTAIN": (
        "Nothing was promised, and rightly so",
        " (no check was bought, or too few answers could be read)",
    ),
    "LUCKY": ("Right, though nothing was promised", ""),
}
"""What the summary says of fields that were not repaired as promised, by their verdict, and why."""


def _summary(run: Acquisition, judgement: Grade, proofs: dict[str, bool], budget: float) -> list[str]:
    fields = judgement.fields
    count = len(fields)
    certified = sum(f.certified for f in fields)
    right = judgement.asked - judgement.wrong - judgement.unread
    lines = [
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
    for verdict, (words, why) in _MISSED.items():
        names = [f.item for f in fields if f.verdict.name == verdict]
        if names:
            lines.append(f"{words}: {', '.join(names)}{why}.")
    lines.append(f"Spent {run.spent:g} of {budget:g}; {run.calls} model calls.")
    return lines


def _document(
    run: Acquisition,
    judgement: Grade,
    proofs: dict[str, bool],
    handed: TestedDelivery,
    seconds: float,
    out: Path,
) -> dict[str, Any]:
    counts = {"answers": judgement.asked, "wrong": judgement.wrong, "unread": judgement.unread}
    content = {
        "run": run.run,
        "questions": len(judgement.fields),
        **counts,
        "repaired": judgement.repaired,
        "within_budget": judgement.within,
        "certified": sum(field.certified for field in judgement.fields),
        "certificates_valid": all(proofs.values()),
        "promise_kept": judgement.kept,
        "verdicts": {field.item: field.verdict.value for field in judgement.fields},
        "delivered": {**handed.to_json(), "fooled": [name for name, _ in _still_wrong(handed)]},
        "spent": run.spent,
        "calls": run.calls,
        "seconds": seconds,
        "out": str(out),
    }
    return sealed("rrf-demo", content)
