"""rrf-design certify: what can I promise?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.amounts import rounded_up
from rrf_design.cli.items import (
    Cluster,
    Data,
    ItemId,
    Limit,
    Sample,
    describe_structures,
    many_items,
    on_cluster,
    one_item,
)
from rrf_design.cli.output import (
    AsJson,
    Jobs,
    ProblemFile,
    Quiet,
    Seed,
    Select,
    TimeLimit,
    ceiling,
    floor,
    print_json,
    progress_bar,
    proven_range,
    say,
    split_ids,
    table,
)

if TYPE_CHECKING:
    from rrf_design.certificates import Certificate


def register(app: typer.Typer) -> None:
    app.command("certify")(certify_verb)


def certify_verb(
    file: ProblemFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Certificate to write (.json); of a table whose items have several structures, a folder.",
            show_default=False,
        ),
    ],
    select: Select = None,
    everything: Annotated[bool, typer.Option("--all", help="Add everything that is on sale.")] = False,
    plan: Annotated[Path | None, typer.Option("--plan", help="Plan document: certify what it selected.")] = None,
    k: Annotated[int | None, typer.Option("--k", help="Corruption budget; default: the problem's.")] = None,
    rung: Annotated[
        str, typer.Option("--rung", help="auto, exact, branch-and-bound, mixed-integer, semidefinite or dominance.")
    ] = "auto",
    front_end: Annotated[str, typer.Option("--front-end", help="Mixed-integer rung: ortools or pulp.")] = "ortools",
    require: Annotated[
        float | None, typer.Option("--require", help="Exit code 1 unless this margin is proven, uncertainty included.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Noise radius; default: the problem's.")] = None,
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
            help="Calibration data by block id (.json, .jsonl, .csv): repeated estimates, or parser errors; sets the radii.",
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
    shrinkages: Annotated[
        bool,
        typer.Option(
            "--sensitivity", help="Also tell the margin under more and more shrinkage of declared covariances."
        ),
    ] = False,
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
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the outcome as JUnit XML.")] = None,
    data: Data = None,
    item: ItemId = None,
    limit: Limit = None,
    sample: Sample = None,
    cluster: Cluster = None,
    jobs: Jobs = 1,
    time_limit: TimeLimit = 60.0,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Prove a lower bound on the margin, and write the proof down for anybody to check.

    Of a table, one proof for each structure that its items have.

    Example: rrf-design certify problem.toml --select a3 -o certificate.json --require 0.4
    """
    import time

    from rrf_design.bundles import Backend, Claims
    from rrf_design.certificates import certify as prove
    from rrf_design.errors import InputError
    from rrf_design.noise import Noise

    if sum([select is not None, everything, plan is not None]) > 1:
        raise InputError("give one of --select, --all and --plan, not several")
    many = many_items(file, data, item, limit=limit, sample=sample, seed=seed)
    if many is not None and (plan is not None or calibration is not None):
        raise InputError("--plan and --calibration speak of one problem; name an item with --item")
    if pilot is not None and item is None and many is None:
        raise InputError(
            "--pilot speaks of items drawn from a table; certify a recipe with --data, or an item of it with --item"
        )
    problem = one_item(file, data, item) if many is None else None
    whole: Any = problem if many is None else many
    chosen: Any = "all" if everything else split_ids(select)
    if plan is not None and problem is not None:
        from rrf_design.derive import asking
        from rrf_design.planning import read_plan

        planned = read_plan(plan, problem)
        chosen = list(planned.selected)
        whole = problem = asking(problem, planned.repeats)
    if jointly:
        from rrf_design.joined import joined_problem

        if problem is None:
            raise InputError("--jointly speaks of one selection; name an item with --item")
        whole, chosen = joined_problem(problem, chosen)
        problem = whole
    if shrinkages and problem is None:
        raise InputError("--sensitivity speaks of one problem; name an item with --item")
    told: list[dict[str, Any]] = []
    if shrinkages and problem is not None:
        from rrf_design.shrinkage import sensitivity

        told = [row.to_json() for row in sensitivity(problem, chosen, k=k)]
    spread = None
    if calibration is not None and problem is not None:
        from rrf_design.certificates import read_calibration

        spread = read_calibration(problem, calibration, confidence=calibration_confidence, seed=seed)
    began = time.monotonic()
    with on_cluster(cluster), progress_bar("margin", quiet=quiet) as progress:
        proven: Any = prove(
            whole,
            chosen,
            k=k,
            rung=rung,
            require=require,
            noise=Noise(epsilon, sigma, confidence, noise, amplitude),
            claims=Claims(
                largest_error=largest_error,
                uncertainty=spread,
                supports=None if not support else [split_ids(names) or [] for names in support],
                budgets=_whole_numbers(budgets),
            ),
            backend=Backend(-1 if cluster else jobs, time_limit, front_end, progress=progress),
        )
    premise: dict[str, Any] = {}
    if pilot is not None and many is None:
        proven = _sampled(proven, pilot, file, data, item)
    elif pilot is not None:
        from rrf_design.cli.items import open_dataset
        from rrf_design.documents import read
        from rrf_design.promises.certifying import premise_summary, with_pilot_of_table

        proven = with_pilot_of_table(proven, read(pilot, what="policy"), whole=open_dataset(file, data))
        premise = {"premise": premise_summary(proven)}
    if many is None:
        proven = proven.save(output)
        results = [(problem.name if problem else "", proven)]
    else:
        from rrf_design.handover import save_certificates

        proven, _ = save_certificates(proven, output)
        results = [(f"items like {one.item}", one.result) for one in proven.speakers]
    refused = _refused([one for _, one in results], quiet=quiet) if check else None
    result: Certificate = results[0][1] if many is None else proven.worst.result
    if junit is not None:
        from rrf_design.documents.junit import write_junit

        seconds = (time.monotonic() - began) / len(results)
        cases = [(f"{name}: margin", seconds, _fault(one, require)) for name, one in results]
        cases += [("re-proved", 0.0, refused)] if check else []
        write_junit(junit, "rrf-design certify", cases)
    from rrf_design.joined import shared_words
    from rrf_design.shrinkage import raised_noise, raised_words

    shared = "" if problem is None else shared_words(problem, problem.design(chosen).operator.block_ids)
    guessed = "" if problem is None else raised_words(problem, chosen, k=k)
    if as_json:
        more: dict[str, Any] = {"sensitivity": told} if shrinkages else {}
        more |= {"shared_noise": shared} if shared else {}
        if guessed and problem is not None:
            more |= {"estimated": [one.to_json() for one in raised_noise(problem, chosen)], "estimated_words": guessed}
        more |= {"verified": refused is None, "refused": refused} if check else {}
        print_json(proven.to_json() | premise | more)
    else:
        if many is not None:
            describe_structures(proven)
        _describe(results[0][0] if many is None else proven.worst.item, result)
        if shared:
            say(shared)
        if guessed:
            say(guessed)
        if told:
            rows = [
                (
                    f"{row['tau']:g}",
                    floor(row["lower"]),
                    "none" if row["error_bound"] is None else ceiling(row["error_bound"], 6),
                )
                for row in told
            ]
            table("", ["shrinkage τ (not certified)", "margin", "error bound"], rows, right=[0, 1, 2])
        if premise and len(results) > 1:
            say(premise["premise"]["sentence"])
        if len(results) > 1:
            say(f"{len(results)} certificates, one for each structure, are in {output}.")
        if check:
            say("Re-proved from what was written." if refused is None else f"REFUSED: {refused}")
    raise typer.Exit(0 if refused is None and all(one.met for _, one in results) else 1)


def _refused(written: list[Certificate], *, quiet: bool) -> str | None:
    """Why a certificate, read from its file by the checker, is refused; None where all are re-proved."""
    from rrf_design.certificates.checker import verify

    with progress_bar("verification", quiet=quiet) as progress:
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


def _sampled(result: Certificate, pilot: Path, file: Path, data: Path | None, item: str | None) -> Certificate:
    """The certificate with what a pilot of the same recipe says about its premise, from items of the same structure."""
    from rrf_design.cli.items import open_dataset
    from rrf_design.documents import read
    from rrf_design.promises.certifying import with_pilot
    from rrf_design.promises.drawing import Population

    dataset = open_dataset(file, data)
    structure = {entry.id: entry.structure for entry in dataset.items_in_order()}
    like = None if item is None else {name for name, key in structure.items() if key == structure[item]}
    policy, population = read(pilot, what="policy"), Population.of(dataset)
    return with_pilot(result, policy, recipe_digest=dataset.recipe.digest, population=population, item=item, like=like)


def _whole_numbers(text: str | None) -> list[int] | None:
    from rrf_design.errors import InputError

    try:
        return None if text is None else [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"--budgets: {text!r} is not a list of whole numbers") from None


def _describe(name: str, result: Certificate) -> None:
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
        ("error bound", f"none: {_no_bound(document)}" if bound is None else f"{ceiling(bound, 6)}"),
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
            f"Hardest to see: an error on {nodes}; {document['audit']['sensitivity']:.4g} units of it move the residual by one."
        )
    if document["rivals"] is not None:
        from rrf_design.reporting.certificates import rivals_words

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


def _no_bound(document: Any) -> str:
    from rrf_design.reporting.certificates import no_bound

    return no_bound(document)
