"""rrf-design scenario: reproduce the paper's experiments, and the project's own."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from rrf_design.cli._options import Cluster, flattened, on_cluster
from rrf_design.cli.output import Printer, note, print_json, say, table
from rrf_design.errors import InputError, MissingDependency, RRFError


def _list_scenarios(*, printer: Printer) -> None:
    """The scenarios, each with the question it answers.

    Example: rrf-design scenario list
    """
    scenarios = _scenarios()
    found = [scenarios.get(name) for name in scenarios.names()]
    told = [
        {
            "name": s.name,
            "question": s.question,
            "parameters": dict(s.full),
            "quick": dict(s.quick),
            "expected": [{"key": e.key, "text": e.text} for e in s.expected],
        }
        for s in found
    ]
    printer.result(
        {"scenarios": told}, lambda: table("", ["scenario", "question"], [(s.name, s.question) for s in found])
    )


def _scenarios() -> ModuleType:
    """The repository's folder `scenarios`, installed with it or in the current folder; the package
    itself has none.
    """
    from rrf_design import __version__

    here = Path.cwd()
    if (here / "scenarios" / "kit" / "runner.py").is_file() and str(here) not in sys.path:
        sys.path.append(str(here))
    try:
        import scenarios.kit
    except ModuleNotFoundError as error:
        if not f"{error.name}.".startswith("scenarios."):
            raise
        raise MissingDependency(
            "scenarios are a folder of the repository and not of the package: get the source of rrf-design"
            f" {__version__} and run pip install -e '.[scenarios]' in it"
        ) from None
    return scenarios


def _beginning(incomplete: str) -> list[str]:
    """Names for shell completion: none where the scenarios are not there."""
    try:
        scenarios = _scenarios()
    except MissingDependency:
        return []
    return [name for name in (*scenarios.names(), "all") if name.startswith(incomplete)]


def _run(
    name: Annotated[
        str, typer.Argument(help="A scenario's name, or `all`.", show_default=False, autocompletion=_beginning)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the results.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="The small size that CI runs.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes to use; -1 for all cores.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Keep finished parts of an earlier run.")] = False,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Whom to ask, in scenarios that ask a model (openai:NAME, FILE.gguf, ...)."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a parameter: NAME=VALUE, the value as JSON or text.")
    ] = None,
    cluster: Cluster = None,
    *,
    printer: Printer,
) -> int:
    """Run a scenario and write its data, plots and pages to OUT/NAME.

    Exit code 1: it ran, and a condition was violated. 2: it could not run, and one line says why.
    3: it crashed. With `all` the others go on, and the worst code counts.

    Example: rrf-design scenario run anchor-transition --out results --jobs 2
    """
    scenarios = _scenarios()
    from scenarios.kit.runner import run_scenario

    changes = _changes(settings or [])
    if model is not None:
        changes["model"] = model
    wanted = scenarios.names() if name == "all" else (name,)
    documents: list[dict[str, Any]] = []
    stopped: dict[str, str] = {}
    code = 0
    for each in wanted:
        try:
            with on_cluster(cluster):
                published = run_scenario(
                    scenarios.get(each),
                    out,
                    quick=quick,
                    jobs=jobs,
                    resume=resume,
                    changes=_known(changes, each, among=wanted),
                    progress=printer.note,
                )
        except RRFError as error:
            if name != "all":
                raise
            stopped[each], code = f"did not run: {error}", max(code, error.exit_code)
        except ModuleNotFoundError as error:
            missing = MissingDependency(
                f"scenario {each}: needs {error.name}; get it with: pip install 'rrf-design[scenarios]'"
            )
            if name != "all":
                raise missing from None
            stopped[each], code = f"did not run: {missing}", max(code, missing.exit_code)
        except Exception as error:
            traceback.print_exc()
            stopped[each], code = f"crashed: {type(error).__name__}: {error}", 3
        else:
            documents.append(dict(published.document))
            code = max(code, 1 if published.violated else 0)
            if not printer.as_json:
                _describe(published.document, published.directory)
    if name == "all":
        printer.result({"scenarios": documents, "stopped": stopped}, lambda: say(_summary(documents)))
    elif printer.as_json and documents:
        print_json(documents[0])
    for each, reason in stopped.items():
        note(f"{each} {reason}")
    return code


def _pages(
    results: Annotated[Path, typer.Argument(help="Where results lie, a folder for each scenario.")] = Path("reports"),
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the pages.")] = Path("pages"),
    *,
    printer: Printer,
) -> None:
    """Make HTML pages of results, without running anything.

    Example: rrf-design scenario pages reports --out pages
    """
    _scenarios()
    from scenarios.kit.runner import write_pages

    count = write_pages(results, out)
    if printer.as_json:
        print_json({"scenarios": count, "index": str(out / "index.html")})
    printer.news(f"{count} scenarios: {out / 'index.html'}")


def _summary(documents: list[dict[str, Any]]) -> str:
    bad = [f"{d['name']} {_violated(d)} of {len(d['expectations'])}" for d in documents if _violated(d)]
    listed = f": conditions violated in {', '.join(bad)}" if bad else ", no condition violated"
    return f"{len(documents)} scenarios ran{listed}"


def _violated(document: Any) -> int:
    return sum(e["status"] == "violated" for e in document["expectations"])


def _changes(settings: list[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise InputError(f"--set {setting!r}: write it as NAME=VALUE")
        try:
            changes[name] = json.loads(text)
        except (ValueError, RecursionError):
            changes[name] = text
    return changes


def _known(changes: dict[str, Any], name: str, *, among: tuple[str, ...]) -> dict[str, Any]:
    """With `all`, a change concerns the scenarios that have the parameter; one that nobody has is
    an error.
    """
    scenarios = _scenarios()

    if len(among) == 1:
        return changes
    known = {parameter for each in among for parameter in scenarios.get(each).full}
    own = scenarios.get(name).full
    return {key: value for key, value in changes.items() if key in own or key not in known}


def _describe(document: Any, directory: Path) -> None:
    say(f"{document['name']}: {document['question']}")
    rows = [(e["status"], e["text"], e["seen"]) for e in document["expectations"]]
    table("", ["verdict", "condition", "seen"], rows)
    say(f"Ran: {_violated(document)} of {len(rows)} conditions violated.")
    say(f"Pages, tables and raw data: {directory}")


group = typer.Typer(no_args_is_help=True, help="Reproduce the paper's experiments, and more.", rich_markup_mode=None)
group.command("list")(flattened(_list_scenarios))
group.command("run")(flattened(_run))
group.command("pages")(flattened(_pages))
