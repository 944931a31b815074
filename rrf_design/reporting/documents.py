"""From a path or a result to its page: what kind of document is it, and who draws that kind.

A kind is told by the document's `format` (rrf-plan, rrf-certificate, ...), never guessed from the file's name. A
problem file is the one document without a format: its page is that of the design it owns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.reporting.designs import Design

_PAGES = {
    "rrf-plan": "rrf_design.reporting.plans:plan_page",
    "rrf-frontier": "rrf_design.reporting.plans:frontier_page",
    "rrf-certificate": "rrf_design.reporting.certificates:certificate_page",
    "rrf-repair": "rrf_design.reporting.repairs:repair_page",
    "rrf-run": "rrf_design.reporting.runs:run_page",
    "rrf-scenario": "rrf_design.reporting.scenarios:scenario_page",
}
"""Format name to the function that makes its page: (Source) -> str. Imported when used."""


@dataclass(frozen=True)
class Source:
    """A document with what its page may need besides: the problem it belongs to, and the directory it lies in."""

    kind: str
    data: Mapping[str, Any]
    problem: Problem | None = None
    path: Path | None = None
    problems: Mapping[str, Problem] = field(default_factory=dict)
    """Of a run over a data set: item to problem."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """For the margin solver, where a page has to compute one (n_jobs, time_limit)."""


def write_report(document: Any, out: str | os.PathLike[str], *, problem: Any = None, **options: Any) -> Path:
    """Write the page of `document` (a path, a mapping, a problem, or a result with `to_json`) to `out`.

    `problem` (a path, a Problem, or for a data set a mapping of item to Problem) is what a plan, a repair or a run belongs
    to, for the drawing of the field; a document that carries its problem does not need it. `options` go to the
    margin solver.
    """
    from rrf_design.files import write_text

    source = read(document, problem=problem, **options)
    write_text(out, render(source))
    return Path(out)


def read(document: Any, *, problem: Any = None, **options: Any) -> Source:
    """What the document is; InputError when it is nothing that has a page."""
    if isinstance(problem, Mapping):
        owners = {str(item): _problem(each) for item, each in problem.items()}
        return replace(read(document, **options), problems=owners)
    owner = _problem(problem) if problem is not None else None
    if isinstance(document, str | os.PathLike):
        return _from_path(Path(document), owner, options)
    if hasattr(document, "node_by_id"):
        return Source("problem", {}, document, options=options)
    document = _as_mapping(document)
    if isinstance(document, Mapping):
        return _from_mapping(document, owner, None, options)
    raise InputError(f"report: a {type(document).__name__} has no page")


def _as_mapping(result: Any) -> Any:
    """A result object as its document; anything else as it is."""
    package, name = type(result).__module__.rpartition(".")[0], type(result).__name__
    if (package, name) == ("rrf_design.certificates", "Certificate"):
        return result.document
    if (package, name) == ("rrf_design.planning", "Plan"):
        from rrf_design.planning.document import to_document as plan_document

        return plan_document(result)
    if (package, name) == ("rrf_design.planning", "Frontier"):
        return {"format": "rrf-frontier", "version": 1, **result.to_json()}
    if (package, name) == ("rrf_design.repair", "Repair"):
        from rrf_design.repair import to_document as repair_document

        return repair_document(result)
    return result.to_json() if hasattr(result, "to_json") else result


def render(source: Source) -> str:
    """The page as text."""
    if source.kind == "problem":
        from rrf_design.reporting.designs import Design, design_page

        assert source.problem is not None
        return design_page(Design(source.problem, tuple(source.data.get("selected", ()))), **source.options)
    module, _, name = _PAGES[source.kind].partition(":")
    make: Callable[[Source], str] = getattr(import_module(module), name)
    try:
        return make(source)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        where = f"{source.path}: " if source.path is not None else "report: "
        raise InputError(f"{where}the {source.kind} document is damaged ({type(error).__name__}: {error})") from error


def design_of(source: Source) -> Design:
    """The design a document speaks of, for comparisons."""
    from rrf_design.reporting.designs import Design

    if source.problem is None:
        raise InputError(f"report: the {source.kind} does not carry its problem; give it with --problem")
    name = source.path.stem if source.path is not None else ""
    named = source.data["problem"] if source.kind == "rrf-certificate" else source.data
    return Design(source.problem, source.problem.resolve(list(named.get("selected", ()))), name)


def _from_path(path: Path, owner: Problem | None, options: Mapping[str, Any]) -> Source:
    if path.is_dir():
        inside = [path / name for name in ("document.json", "result.json", "scenario.json") if (path / name).is_file()]
        if not inside:
            raise InputError(f"{path}: a directory without a result document")
        path = inside[0]
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() == ".npz":
        from rrf_design.builders import load_operator

        return Source("problem", {}, load_operator(path), path, options=options)
    if path.suffix.lower() != ".json":
        return Source("problem", {}, _problem(path), path, options=options)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: can't be read as JSON ({error})") from None
    if isinstance(data, dict) and "format" not in data and "nodes" in data:
        return Source("problem", {}, _problem(path), path, options=options)
    if not isinstance(data, dict):
        raise InputError(f"{path}: not a document; expected a JSON object with a format")
    return _from_mapping(data, owner, path, options)


def _from_mapping(
    data: Mapping[str, Any], owner: Problem | None, path: Path | None, options: Mapping[str, Any]
) -> Source:
    where = f"{path}: " if path is not None else "report: "
    name = data.get("format")
    if not isinstance(name, str):
        raise InputError(
            f"{where}has no format, so its kind is unknown; expected one of {', '.join(_PAGES)} or a problem"
        )
    kind = name.partition("/")[0]
    if kind not in _PAGES:
        from rrf_design.files import suggestion

        raise InputError(f"{where}there is no page for the format {name!r}{suggestion(kind, _PAGES)}")
    return Source(kind, data, _matching(data, owner, path), path, options=options)


def _matching(data: Mapping[str, Any], owner: Problem | None, path: Path | None) -> Problem | None:
    """The problem of a document: the one it carries, or the one given; never one with another digest."""
    from rrf_design.files import digest, from_document

    carried = data.get("problem")
    if isinstance(carried, dict) and "nodes" in carried:
        return from_document(carried)
    named = carried.get("digest") if isinstance(carried, dict) else data.get("digest", carried)
    if owner is not None and isinstance(named, str) and named != digest(owner):
        raise InputError(
            f"{path or 'report'}: belongs to another problem (its digest is {named[:12]}…, the given one's {digest(owner)[:12]}…)"
        )
    return owner


def _problem(given: Any) -> Problem:
    from rrf_design.files import load

    if isinstance(given, str | os.PathLike):
        return load(given)
    if hasattr(given, "node_by_id"):
        problem: Problem = given
        return problem
    raise InputError(f"problem: a path or a Problem is needed, not a {type(given).__name__}")
