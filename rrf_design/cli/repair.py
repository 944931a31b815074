"""rrf-design repair: which responses were wrong, and what are they instead?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rrf_design.cli import _options as options
from rrf_design.cli.output import Printer, describe_delivery, hand_over, say, share_holds, table
from rrf_design.documents import repair_cases, sealed, write, write_junit
from rrf_design.errors import InputError
from rrf_design.texts import digits
from rrf_design.verdict import table_sentence

if TYPE_CHECKING:
    from rrf_design.repairing import Repair, RepairBatch
    from rrf_design.tables import DeliveredParts


def repair_verb(
    file: options.ProblemFile,
    responses: Annotated[
        Path | None,
        typer.Option(
            "--responses",
            "-r",
            help="Responses by node id (.json, .jsonl or .csv); with -o FOLDER/ a folder of import, or none.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[str, typer.Option("--method", help="auto, exact, convex, discrete or min-sum.")] = "auto",
    k: options.Corruptions = None,
    epsilon: options.Epsilon = None,
    select: options.Select = None,
    everything: options.Everything = False,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", help="True values by node id: names the kind of failure, changes nothing else."),
    ] = None,
    penalty: Annotated[float | None, typer.Option("--penalty", help="λ of the penalised convex form.")] = None,
    *,
    items: options.Items,
    outputs: options.Outputs = None,
    review: options.ReviewPlace = None,
    reviews: options.ReviewsBack = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            help="Of a table: keep rows here as they come, and go on where they end; the FOLDER/ of -o for parts.",
        ),
    ] = None,
    require_share: options.RequireShare = None,
    cluster: options.Cluster = None,
    junit: options.JunitVerdicts = None,
    effort: options.Work,
    printer: Printer,
) -> int:
    """Which responses were wrong, by how much, what they become, and how sure that is.

    Exit code 0 when the verdict is checked, or consistent under what it assumes (which nobody has
    tested); 1 when it is ambiguous, incomplete or contradicted.
    With a recipe every row of its table is repaired; then 0 means that all of it is done, and that
    --require-share holds.

    Example: rrf-design repair problem.toml --responses answers.json

    Example: rrf-design repair recipe.toml --data table.csv --responses answers.jsonl -o
    delivered.csv --review review.csv

    Example: rrf-design repair recipe.toml --data table.parquet --cluster tcp://HOST:PORT -o parts/
    """
    from rrf_design import Noise, repair
    from rrf_design.studio.labels import review_file

    settings: dict[str, Any] = {"select": options.added(select, everything=everything), "method": method, "k": k}
    settings |= {"noise": Noise(epsilon), "seed": items.seed}
    settings["options"] = {} if penalty is None else {"penalty": penalty}
    many = items.many(file)
    if many and (folder := options.one_folder(outputs)) is not None:
        items.refuse_part(reviews=reviews, review=review, truth=truth, junit=junit)
        target = (file, items.data, folder, responses, resume)
        with options.on_cluster(cluster), printer.progress("repair") as progress:
            parts = _into_parts(*target, settings, effort.means(progress, cluster=cluster))
        printer.result(parts.to_json, lambda: say(f"{parts.table}: {table_sentence(parts.verdicts)} In {folder}."))
        return 0 if share_holds(parts, require_share) else 1
    if responses is None:
        raise InputError("--responses: name the file of answers; only -o FOLDER/ takes them from the rows")
    if many:
        if truth is not None:
            raise InputError("--truth goes with one problem; a recipe names the column of the truth as gold in [data]")
        dataset = items.dataset(file)
        with (
            options.on_cluster(cluster),
            review_file(review, "repair", blind=False) as place,
            printer.progress("repair") as progress,
        ):
            said = place if place is not None and place.is_file() and place.stat().st_size else None
            settings |= {"reviews": reviews or said, "resume": resume}
            delivery = repair(dataset, responses, **settings, **effort.means(progress, cluster=cluster))
            hand_over(delivery, outputs or [], review=place, called=review, printer=printer)
        printer.result(delivery.to_json, lambda: describe_delivery(delivery))
        return 0 if share_holds(delivery, require_share) else 1
    items.refuse(review=review, reviews=reviews, resume=resume, cluster=cluster)
    output = options.one_document(outputs)
    with printer.progress("repair") as progress:
        found = _repaired(file, responses, truth, settings | effort.means(progress))
    if output is not None:
        write(output, found.document)
    if junit is not None:
        write_junit(junit, "rrf-design repair", repair_cases(found.document, found.name))
    printer.result(found.document, found.describe)
    return 0 if found.guaranteed else 1


def _into_parts(
    file: Path,
    data: Path | None,
    folder: Path,
    responses: Path | None,
    resume: Path | None,
    settings: dict[str, Any],
    means: dict[str, Any],
) -> DeliveredParts:
    """A Parquet table repaired into a folder, whose parts the workers read and write."""
    from rrf_design import repairer
    from rrf_design.questions import load_recipe
    from rrf_design.tables import repair_parts

    if resume is not None and resume.absolute() != folder.absolute():
        raise InputError(f"--resume {resume}: with -o {folder}/ it is the same folder")
    recipe = load_recipe(file)
    table = data or (None if recipe.data.table is None else recipe.folder / recipe.data.table)
    if table is None:
        raise InputError(f"{file}: names no table; give it with --data")
    repair = repairer(recipe, **settings, time_limit=means.pop("time_limit"))
    return repair_parts(repair, table, folder, responses=responses, resume=resume is not None, **means)


class _Repaired(NamedTuple):
    """One field of a problem, or several, repaired: the document, and how people are told."""

    name: str
    document: dict[str, Any]
    guaranteed: bool
    describe: Callable[[], None]


def _repaired(file: Path, responses: Path, truth: Path | None, settings: dict[str, Any]) -> _Repaired:
    from rrf_design import load, repair
    from rrf_design.repairing import read_responses, repair_many, to_document

    problem = load(file)
    nodes = problem.whole.node_ids if problem.nonlinear else problem.operator(settings["select"]).node_ids
    fields = read_responses(problem, responses, nodes=nodes)
    truths = None if truth is None else read_responses(problem, truth, nodes=nodes)
    if len(fields) == 1:
        if truths is not None and len(truths) != 1:
            raise InputError(f"{truth}: holds {len(truths)} fields, but {responses} holds one")
        result = repair(problem, fields[0], truth=None if truths is None else truths[0].values, **settings)
        tell = partial(_describe, problem.name, result, fields[0].values)
        return _Repaired(problem.name, to_document(result), result.guaranteed, tell)
    known = None
    if truths is not None:
        by_name = {item.name: item.values for item in truths}
        missing = [item.name for item in fields if item.name not in by_name]
        if missing:
            raise InputError(f"--truth: no field {missing[0]!r}")
        known = [by_name[item.name] for item in fields]
    batch = repair_many(problem, fields, truth=known, **settings)
    names = [item.name for item in fields]
    content = {
        "verdict": str(batch.verdict),
        "verdicts": batch.counts(),
        "failures": batch.failures() if known is not None else {},
        "items": [{"field": name, **to_document(item)} for name, item in zip(names, batch.items, strict=True)],
    }
    tell = partial(_describe_many, problem.name, names, batch)
    return _Repaired(problem.name, sealed("rrf-repair-batch", content), batch.guaranteed, tell)


def _describe(name: str, result: Repair, values: Any) -> None:
    total = len(result.repaired) - len(result.erased)
    wrong = len(result.support)
    verb = "is" if wrong == 1 else "are"
    claim = _claim(result)
    if result.verdict == "contradicted":
        say(f"{name}: the {total} answers contradict each other beyond repair")
    elif wrong:
        say(f"{name}: {wrong} of {total} answers {verb} {claim}wrong: {', '.join(result.support)}")
        rows = [
            (
                n,
                _numbers(values[n]),
                _numbers(result.error[n], sign=True),
                _numbers(result.repaired[n]),
                *_within(result, n),
            )
            for n in result.support
        ]
        columns = ["node", "answered", "off by", "becomes", *(["within"] if result.bounds else [])]
        table("", columns, rows, right=[1, 2, 3, 4])
    else:
        what = "the one answer is not" if total == 1 else f"no answer of {total} is"
        say(f"{name}: {what}{' shown to be' if claim else ''} wrong")
    if result.erased:
        gone = [(n, why, _numbers(result.repaired[n]), *_within(result, n)) for n, why in result.erased.items()]
        columns = ["without an answer", "because", "becomes", *(["within"] if result.bounds else [])]
        table("", columns, gone, right=[2, 3])
    if result.wrong_checks:
        many = len(result.wrong_checks) > 1
        say(
            f"{', '.join(result.wrong_checks)} contradict{'' if many else 's'} the rest:"
            f" {'these checks are' if many else 'this check is'} wrong"
        )
    say(f"Verdict: {result.verdict}, assuming that {result.assumes} ({result.certainty}: {result.reason})")
    if result.alternatives:
        others = [
            (
                ", ".join((*other.support, *(f"{check} (a check)" for check in other.checks))),
                "; ".join(_numbers(other.repaired[n]) for n in other.support),
                f"{other.residual:.4g}{' (on the edge of ε)' if other.edge else ''}",
            )
            for other in result.alternatives[:12]
        ]
        table("", ["it could also be", "which would become", "residual"], others, right=[2])
        if len(result.alternatives) > 12:
            say(f"and {len(result.alternatives) - 12} more")
    bound = "none" if result.error_bound is None else f"{result.error_bound:.4g}"
    say(
        f"γ_{result.k} = {result.gamma:.6g}, residual {result.residual:.4g} (relations"
        f" {result.diagnostics.relation_residual:.4g}, anchors {result.diagnostics.anchor_residual:.4g}), ε ="
        f" {result.epsilon:g} (rounding {result.tolerance:.1g}), error bound {bound}, method {result.method},"
        f" {result.diagnostics.seconds:.3g} s"
    )
    recall = result.diagnostics.details.get("candidate_recall")
    if recall is not None:
        say(f"Candidate recall: {recall:.0%} of the nodes have the truth among their candidates")
    for note in result.notes:
        say(f"Note: {note}")
    if result.truth_error is not None:
        labels = ", ".join(result.failures) or "none, this is the truth within its bound"
        say(f"Against the truth: error {result.truth_error:.4g}; failure: {labels}")


def _claim(result: Repair) -> str:
    """How the first line speaks of who is wrong; that the values are within a bound is another
    matter.
    """
    if result.certainty == "unique":
        return ""
    if result.certainty == "bounded":
        return "perhaps " if result.alternatives else "probably "
    return "probably " if result.certainty in ("unique here", "heuristic") else "perhaps "


def _within(result: Repair, node: str) -> tuple[str, ...]:
    """The bound on this node's value in its own units, where there is one for any."""
    if not result.bounds:
        return ()
    bound = result.bounds.get(node)
    if bound is None:
        return ("not delivered",)
    return ("unknown" if result.repaired[node] is None else f"±{bound:.4g}" if bound else "rounding",)


def _describe_many(name: str, names: Sequence[str], batch: RepairBatch) -> None:
    say(f"{name}: {len(names)} fields of {batch.designs} design{'s' * (batch.designs != 1)} in {batch.seconds:.3g} s")
    table("", ["verdict", "fields"], [(key, str(count)) for key, count in batch.counts().items()], right=[1])
    mended = [(n, item) for n, item in zip(names, batch.items, strict=True) if item.support and item.guaranteed]
    shown = [
        (n, node, _numbers(item.error[node], sign=True), _numbers(item.repaired[node]))
        for n, item in mended[:12]
        for node in item.support
    ]
    if shown:
        table("", ["field", "wrong", "off by", "becomes"], shown, right=[2, 3])
    if len(mended) > 12:
        say(f"and {len(mended) - 12} more fields with wrong answers; --json or -o lists them all")
    open_items = [(n, item) for n, item in zip(names, batch.items, strict=True) if not item.guaranteed]
    rows = [(n, str(item.verdict), ", ".join(item.support) or "none", item.reason) for n, item in open_items[:12]]
    if rows:
        table("", ["field", "verdict", "wrong", "why"], rows)
    if len(open_items) > 12:
        say(f"and {len(open_items) - 12} more that are neither checked nor consistent")


def _numbers(values: Any, *, sign: bool = False) -> str:
    if values is None:
        return "unknown"
    shown = [("+" if sign and value >= 0 else "") + digits(value + 0.0) for value in values[:6]]  # no minus zero
    return ", ".join(shown) + (", …" if len(values) > 6 else "")
