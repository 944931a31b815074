"""From a path or a result to its page: what kind of document is it, and who draws that kind.

A kind is told by the document's `format` (rrf-plan, rrf-certificate, ...), never guessed from the
file's name. A page is a function of its document: nothing is solved, planned or proven here. So a
problem file has no page by itself; `rrf_design._explain` makes the document of the design that it
owns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.documents import in_todays_words, sealed
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.reporting.pages import PageParts

_PAGES = {
    "rrf-explanation": "rrf_design.reporting.designs:design_page",
    "rrf-plan": "rrf_design.reporting._plans:plan_page",
    "rrf-frontier": "rrf_design.reporting._plans:frontier_page",
    "rrf-certificate": "rrf_design.reporting.certificates:certificate_page",
    "rrf-repair": "rrf_design.reporting._repairs:repair_page",
    "rrf-repair-batch": "rrf_design.reporting.delivery:batch_page",
    "rrf-run": "rrf_design.reporting.runs:run_page",
    "rrf-delivery": "rrf_design.reporting.delivery:delivered",
    "rrf-delivered": "rrf_design.reporting._delivered:delivered_page",
    "rrf-item-table": "rrf_design.reporting.delivery:item_table_page",
    "rrf-policy": "rrf_design.reporting._policies:policy_page",
    "rrf-policy-run": "rrf_design.reporting._policies:policy_run_page",
    "rrf-audit": "rrf_design.reporting._policies:audit_page",
    "rrf-scenario": "rrf_design.reporting._scenarios:scenario_page",
}
"""Format name to the function that says what its page shows: (PageSource) -> PageParts. Imported
when used. The one place where a kind of document meets its page.
"""


@dataclass(frozen=True)
class PageSource:
    """A document with what its page may need besides: the problem it belongs to, and the directory
    it lies in.
    """

    kind: str
    data: Mapping[str, Any]
    problem: Problem | None = None
    path: Path | None = None
    problems: Mapping[str, Problem] = field(default_factory=dict)
    """Of a run over a data set: item to problem."""
    answers: Sequence[Mapping[str, Any]] = ()
    """Of a run: its recorded answers (`rrf_design.acquisition.answer_log`), prompts and raw
    texts.
    """
    redone: bool = False
    """Of a policy or an audit: whether its tests were redone (`promises.prove_policy`,
    `prove_audit`) before the page was made; of a run under a policy, those of the policy.
    """
    refused: str | None = None
    """What they did not prove then."""
    refresh: int | None = None
    """Seconds after which the page is to be loaded anew, while more is to come."""


def has_page(kind: str) -> bool:
    """Whether documents of this format have a page."""
    return kind in _PAGES


def write_report(
    document: Any,
    out: str | os.PathLike[str],
    *,
    problem: Any = None,
    answers: Sequence[Mapping[str, Any]] = (),
    redone: bool = False,
) -> Path:
    """Write the page of `document` (a path, a mapping, or a result such as a plan or an
    explanation) to `out`.

    `problem` (a path, a Problem, or for a data set a mapping of item to Problem) is what a plan, a
    repair or a run belongs to, for the drawing of the field; a document that carries its problem
    does not need it. `answers` are those that a run recorded (`rrf_design.acquisition.answer_log`):
    prompts and raw texts. `redone`: the caller has redone the tests behind a promise, and they
    hold.
    """
    from rrf_design.documents import write_text

    source = replace(read(document, problem=problem), answers=answers, redone=redone)
    write_text(out, render(source))
    return Path(out)


def read(document: Any, *, problem: Any = None) -> PageSource:
    """What the document is; InputError when it is nothing that has a page."""
    if isinstance(problem, Mapping):
        owners = {str(item): _problem(each) for item, each in problem.items()}
        return replace(read(document), problems=owners)
    owner = _problem(problem) if problem is not None else None
    if isinstance(document, str | os.PathLike):
        return _from_path(Path(document), owner)
    if hasattr(document, "node_by_id"):
        return PageSource("problem", {}, document)
    own = getattr(document, "problem", None)
    if owner is None and hasattr(own, "node_by_id"):
        owner = own
    document = _as_mapping(document)
    if isinstance(document, Mapping):
        return _from_mapping(document, owner, None)
    raise InputError(f"report: a {type(document).__name__} has no page")


def _as_mapping(result: Any) -> Any:
    """A result object as its document; anything else as it is."""
    package, name = type(result).__module__.rpartition(".")[0], type(result).__name__
    if (package, name) in (("rrf_design.certificates", "Certificate"), ("rrf_design.promises", "TestedDelivery")):
        return result.document
    if package == "rrf_design.planning" and name in ("Plan", "Frontier"):
        return sealed(f"rrf-{name.lower()}", result.to_json())
    if (package, name) == ("rrf_design.repairing", "Repair"):
        from rrf_design.repairing.contract import to_document

        return to_document(result)
    return result.to_json() if hasattr(result, "to_json") else result


def render(source: PageSource) -> str:
    """The page as text."""
    return fragments(source).html()


def fragments(document: Any) -> PageParts:
    """What there is to show of a document: its sentence, one picture, its sections.

    A page in a file and the studio are made of them, so both show the same.

    Parameters
    ----------
    document : PageSource, path, mapping or result
        As `write_report` takes it.

    Returns
    -------
    PageParts

    Examples
    --------
    >>> counts = {"checked": 2, "consistent": 1}
    >>> head = {"title": "three rows", "sentence": "2 checked.", "verdicts": counts}
    >>> rows = {"head": head, "columns": ["item"], "rows": [["a"], ["b"], ["c"]]}
    >>> fragments({"format": "rrf-item-table", "version": 1, **rows}).title
    'three rows'
    """
    source = document if isinstance(document, PageSource) else read(document)
    if source.kind == "problem":
        raise InputError("report: a problem has no page before it is explained; write_report(explain(problem), ...)")
    module, _, name = _PAGES[source.kind].partition(":")
    make: Callable[[PageSource], PageParts] = getattr(import_module(module), name)
    try:
        return make(source)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        where = f"{source.path}: " if source.path is not None else "report: "
        raise InputError(f"{where}the {source.kind} document is damaged ({type(error).__name__}: {error})") from error


def selected_of(source: PageSource) -> tuple[str, ...]:
    """What the design that a document speaks of adds to what is owned, for comparisons."""
    if source.problem is None:
        raise InputError(f"report: the {source.kind} does not carry its problem; give it with --problem")
    named = source.data["problem"] if source.kind == "rrf-certificate" else source.data
    return source.problem.resolve(list(named.get("selected", ())))


def _from_path(path: Path, owner: Problem | None) -> PageSource:
    if path.is_dir():
        inside = [path / name for name in ("document.json", "result.json", "scenario.json") if (path / name).is_file()]
        if not inside:
            raise InputError(f"{path}: a directory without a result document")
        path = inside[0]
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() == ".npz":
        from rrf_design import load_operator

        return PageSource("problem", {}, load_operator(path), path)
    if path.suffix.lower() != ".json":
        return PageSource("problem", {}, _problem(path), path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: can't be read as JSON ({error})") from None
    if isinstance(data, dict) and "format" not in data and "nodes" in data:
        return PageSource("problem", {}, _problem(path), path)
    if not isinstance(data, dict):
        raise InputError(f"{path}: not a document; expected a JSON object with a format")
    return _from_mapping(data, owner, path)


def _from_mapping(data: Mapping[str, Any], owner: Problem | None, path: Path | None) -> PageSource:
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
    return PageSource(kind, in_todays_words(data), _matching(data, owner, path), path)


def _matching(data: Mapping[str, Any], owner: Problem | None, path: Path | None) -> Problem | None:
    """The problem of a document: the one it carries, or the one given; never one with another
    digest.
    """
    from rrf_design.files import digest, from_document

    carried = data.get("problem")
    if isinstance(carried, dict) and "nodes" in carried:
        return from_document(carried)
    named = carried.get("digest") if isinstance(carried, dict) else data.get("digest", carried)
    if owner is not None and isinstance(named, str) and named != digest(owner):
        raise InputError(
            f"{path or 'report'}: belongs to another problem (its digest is {named[:12]}…, the given one's"
            f" {digest(owner)[:12]}…)"
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
