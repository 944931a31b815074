"""rrf-design certify: what can I promise?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli import _options as options
from rrf_design.cli.output import Printer, ceiling, floor, proven_range, say, table, weakest
from rrf_design.documents import write_junit
from rrf_design.errors import InputError
from rrf_design.texts import rounded_up

if TYPE_CHECKING:
    from rrf_design import Problem
    from rrf_design.certificates import Certificate
    from rrf_design.problem import Selection
    from rrf_design.questions import Dataset


@dataclass(frozen=True, slots=True)
class _MinuteOfWork(options.Work):
    """A minute of work where nobody says how much."""

    time_limit: options.TimeLimit = 60.0


def certify_verb(
    file: options.ProblemFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Certificate to write (.json); of a table whose items have several structures, a folder.",
            show_default=False,
        ),
    ],
    select: options.Select = None,
    everything: options.Everything = False,
    plan: Annotated[Path | None, typer.Option("--plan", help="Plan document: certify what it selected.")] = None,
    k: options.Corruptions = None,
    rung: Annotated[
        str, typer.Option("--rung", help="auto, exact, branch-and-bound, mixed-integer, semidefinite or dominance.")
    ] = "auto",
    front_end: Annotated[str, typer.Option("--front-end", help="Mixed-integer rung: ortools or pulp.")] = "ortools",
    require: Annotated[
        float | None, typer.Option("--require", help="Exit code 1 unless this margin is proven, uncertainty included.")
    ] = None,
    epsilon: options.Epsilon = None,
    sigma: Annotated[float | None, typer.Option("--sigma", help="Noise per row, instead of a radius.")] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", help="Of the radius made from sigma.")] = None,
    noise: Annotated[str | None, typer.Option("--noise", help="chi (default), gaussian or subgaussian.")] = None,
    amplitude: Annotated[
        float | None,
        typer.Option("--amplitude", help="Bound on the norm of the true field on the nodes of uncertain blocks."),
    ] = None,
    largest_error: Annotated[
        float | None,
        typer.Option(
            "--largest-error", help="No error is larger than this: R of the minimax bounds, and of the rivals."
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            "--calibration",
            help=(
                "Calibration data by block id (.json, .jsonl, .csv): repeated estimates, or parser errors; sets the"
                " radii."
            ),
        ),
    ] = None,
    calibration_confidence: Annotated[
        float, typer.Option("--calibration-confidence", help="That all calibrated radii hold together.")
    ] = 0.95,
    support: Annotated[
        list[str] | None, typer.Option("--support", help="Node ids of a support to certify by itself; may be repeated.")
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option("--budgets", help="Further values of k to certify, as 2,3; default: k + 1 if that is cheap."),
    ] = None,
    jointly: Annotated[
        bool,
        typer.Option(
            "--jointly", help="Whiten blocks of one [[noise]] covariance together: the margin of just this selection."
        ),
    ] = False,
    pilot: Annotated[
        Path | None,
        typer.Option("--pilot", help="A pilot's policy: adds the bounded probability that the premise fails."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Re-prove what was written at once, as `verify` does; takes a few times the search."
        ),
    ] = False,
    junit: options.Junit = None,
    *,
    items: options.Items,
    cluster: options.Cluster = None,
    effort: _MinuteOfWork,
    printer: Printer,
) -> int:
    """Prove a lower bound on the margin, and write the proof down for anybody to check.

    Of a table, one proof for each structure that its items have.

    Example: rrf-design certify problem.toml --select a3 -o certificate.json --require 0.4
    """
    from rrf_design import Noise, Problem, certify

    began = time.monotonic()
    given = items.given(file)
    many = not isinstance(given, Problem)
    single = {"--plan": plan, "--calibration": calibration, "--jointly": jointly}
    _refuse(single, many=many, pilot=pilot is not None, item=items.item)
    given, chosen = _design(given, select, everything=everything, plan=plan, jointly=jointly)
    beside = {} if many else _beside(given, chosen, k=k)
    with options.on_cluster(cluster), printer.progress("margin") as progress:
        proven: Any = certify(
            given,
            chosen,
            k=k,
            rung=rung,
            require=require,
            noise=Noise(epsilon, sigma, confidence, noise, amplitude),
            largest_error=largest_error,
            uncertainty=_calibrated(given, calibration, calibration_confidence, items.seed),
            supports=None if not support else [options.split_ids(names) or [] for names in support],
            budgets=_whole_numbers(budgets),
            front_end=front_end,
            **effort.means(progress, cluster=cluster),
        )
    if pilot is not None:
        proven = _with_premise(proven, pilot, options.Items(items.data).dataset(file), items.item, beside)
    proven, cases = _saved(proven, output, None if many else given.name)
    refused = _refused([one for _, one in cases], printer) if check else None
    if junit is not None:
        seconds = (time.monotonic() - began) / len(cases)
        told = [(f"{name}: margin", seconds, _fault(one, require)) for name, one in cases]
        write_junit(junit, "rrf-design certify", [*told, *([("re-proved", 0.0, refused)] if check else [])])
    seen = {"verified": refused is None, "refused": refused} if check else {}

    def describe() -> None:
        problem, one = weakest(given, proven)
        _describe(proven.worst.item if many else problem.name, one)
        _describe_beside(beside, several=len(cases) > 1)
        if len(cases) > 1:
            say(f"{len(cases)} certificates, one for each structure, are in {output}.")
        if check:
            say("Re-proved from what was written." if refused is None else f"REFUSED: {refused}")

    printer.result(lambda: proven.to_json() | beside | seen, describe)
    return 0 if refused is None and all(one.met for _, one in cases) else 1


def _refuse(single: dict[str, Any], *, many: bool, pilot: bool, item: str | None) -> None:
    """InputError for what speaks of a single problem and is given with a table, or the other way
    round.
    """
    for option, value in single.items():
        if many and value not in (None, False):
            raise InputError(f"{option} speaks of one problem; name an item with --item")
    if pilot and item is None and not many:
        raise InputError(
            "--pilot speaks of items drawn from a table; certify a recipe with --data, or an item of it with --item"
        )


def _design(given: Any, select: str | None, *, everything: bool, plan: Path | None, jointly: bool) -> tuple[Any, Any]:
    """What is certified, a problem or a table, and the selection."""
    from rrf_design.derive import asking, joined_problem
    from rrf_design.planning import read_plan

    if sum([select is not None, everything, plan is not None]) > 1:
        raise InputError("give one of --select, --all and --plan, not several")
    chosen: Any = options.added(select, everything=everything)
    if plan is not None:
        planned = read_plan(plan, given)
        given, chosen = asking(given, planned.repeats), list(planned.selected)
    return joined_problem(given, chosen) if jointly else (given, chosen)


def _calibrated(problem: Any, calibration: Path | None, confidence: float, seed: int) -> Any:
    from rrf_design.certificates import read_calibration

    return None if calibration is None else read_calibration(problem, calibration, confidence=confidence, seed=seed)


def _with_premise(proven: Any, pilot: Path, dataset: Dataset, item: str | None, beside: dict[str, Any]) -> Any:
    """What is proven with what a pilot says of its premise, which of a table is told beside it."""
    from rrf_design.documents import read
    from rrf_design.promises import premise_summary, with_premise

    proven = with_premise(proven, read(pilot, what="policy"), dataset, item=item)
    if item is None:
        beside["premise"] = premise_summary(proven)
    return proven


def _saved(proven: Any, output: Path, name: str | None) -> tuple[Any, list[tuple[str, Certificate]]]:
    """What was written, of a problem of this name or of a table, and each certificate by name."""
    from rrf_design.tables import save_certificates

    if name is not None:
        proven = proven.save(output)
        return proven, [(name, proven)]
    proven, _ = save_certificates(proven, output)
    return proven, [(f"items like {one.item}", one.result) for one in proven.speakers]


def _beside(problem: Problem, chosen: Selection, *, k: int | None) -> dict[str, Any]:
    """What is told beside a certificate and is none of its claims, by key: shared noise, and
    variances that were only estimated.
    """
    from rrf_design.derive import shared_words
    from rrf_design.noise import raised_noise, raised_words

    told: dict[str, Any] = {}
    if shared := shared_words(problem, problem.design(chosen).operator.block_ids):
        told["shared_noise"] = shared
    if guessed := raised_words(problem, chosen, k=k):
        told["estimated"] = [one.to_json() for one in raised_noise(problem, chosen)]
        told["estimated_words"] = guessed
    return told


def _describe_beside(beside: dict[str, Any], *, several: bool) -> None:
    for key in ("shared_noise", "estimated_words"):
        if key in beside:
            say(beside[key])
    if "premise" in beside and several:
        say(beside["premise"]["sentence"])


def _refused(written: list[Certificate], printer: Printer) -> str | None:
    """Why a certificate, read from its file by the checker, is refused; None where all are
    re-proved.
    """
    from rrf_design.checker import verify

    with printer.progress("verification") as progress:
        for one in written:
            assert one.path is not None  # it was just saved
            found = verify(one.path, progress=progress)
            if not found.valid:
                return f"{one.path}: {found.reason}"
    return None


def _fault(result: Certificate, require: float | None) -> str | None:
    """Why a certificate is not what was asked for; None where it is."""
    if result.met:
        return None
    if require is not None:
        return f"required {require!r}, proven {result.robust_lower!r}"
    return None if result.standing is None else result.standing.words()


def _whole_numbers(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"--budgets: {text!r} is not a list of whole numbers") from None


def _describe(name: str, result: Certificate) -> None:
    from rrf_design.reporting.certificates import no_bound, rivals_words

    document = result.document
    margin, spread = document["margin"], document["uncertainty"]
    k, bound = document["k"], result.error_bound
    say(f"{name}: γ_{k} ≥ {floor(margin['lower'])}, proven ({margin['status']}; rung: {margin['rung']})")
    for note in document["provenance"]["notes"]:
        if note.startswith("mixed-integer"):  # what it is good for, and where it says nothing
            say(f"{note}.")
    rows = [
        ("margin", proven_range(margin["lower"], margin["upper"])),
        (
            "with operator uncertainty",
            f"{floor(spread['robust_lower'])}  (eta {spread['eta']:.4g}, {spread['source']})",
        ),
        (
            "noise radius",
            "not stated" if document["noise"]["epsilon"] is None else f"{document['noise']['epsilon']:.6g}",
        ),
        ("error bound", f"none: {no_bound(document)}" if bound is None else f"{ceiling(bound, 6)}"),
        ("convex decoder", document["nullspace"]["status"]),
        *((f"with k = {b['k']}", proven_range(b["lower"], b["upper"])) for b in document["budgets"]),
    ]
    if document["provenance"]["unwhitened"] is not None:  # about another operator: told, not certified
        part = document["provenance"]["unwhitened"]
        rows.append(("without whitening (not certified)", proven_range(part["lower"], part["upper"])))
    if document["conditional"] is not None:
        part = document["conditional"]
        rows.append(("on the listed supports only", proven_range(part["lower"], part["upper"])))
    standing = result.standing
    if standing is not None and standing.goal.named:
        wish = "no margin is enough" if standing.wanted is None else f"{standing.wanted:.6g}"
        rows.append(("wanted margin", f"{wish}: {'reached' if standing.reached else 'not reached'}"))
    table("", ["what", "certified"], rows)
    nodes = ", ".join(document["witness"]["support"])
    pair = document["audit"]["pair"]
    if pair is not None:
        say(
            f"Indistinguishable: the witness on {', '.join(pair['first'])} alone, and its negative on"
            f" {', '.join(pair['second']) or 'nothing'}, give the same measurements."
        )
    else:
        say(
            f"Hardest to see: an error on {nodes}; {document['audit']['sensitivity']:.4g} units of it move the residual"
            " by one."
        )
    if document["rivals"] is not None:
        say(rivals_words(document))
    if document["protection"] is not None:
        aside = document["protection"]["wrong"]
        if aside:
            say(f"There {', '.join(aside)} may be wrong and hide it.")
        promised = next((line for line in document["assumptions"] if line.startswith("Only the values")), "")
        say(f"Assumed: {document['assumptions'][0]} {promised}".rstrip())
    say(document["regime"]["consequence"])
    if "pilot" in document:
        say(document["pilot"]["sentence"])
    if standing is not None and standing.goal.named:
        say(standing.words())
    if result.required is not None:
        say(f"Required {result.required:.6g}: {'met' if result.met else 'MISSED'}.")
    cost = _takes(result.verification_seconds or 0.0)
    say(f"Written to {result.path}; check it with: rrf-design verify {result.path}{cost}")


def _takes(seconds: float) -> str:
    """What verifying will take, where that is worth a word: (about 20 s)."""
    return "" if seconds < 2.0 else f" (about {rounded_up(seconds, 1):.0f} s)"
