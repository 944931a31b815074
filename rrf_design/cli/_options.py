"""What verbs take: options that several of them share, each declared once, alone or as a group, and
the problem or the table that they name.

A group is a frozen dataclass whose fields are options. A verb has it as one parameter; `flattened`
makes the options of its fields of it, and `rrf-design VERB --help` lists them like all others.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.questions import Dataset

DEFAULT_FILE = Path("rrf.toml")


def default_file() -> Path:
    """The problem or recipe that a verb means when none is named: rrf.toml in this folder."""
    if not DEFAULT_FILE.is_file():
        raise InputError(f"there is no {DEFAULT_FILE} in this folder; name a FILE, or write one with rrf-design init")
    return DEFAULT_FILE


def there(context: typer.Context, parameter: typer.CallbackParam, file: Any) -> Any:
    """The file that is named; the folder's own, if none is. Completion asks for nothing."""
    source = context.get_parameter_source(parameter.name or "")
    if source is not None and source.name == "DEFAULT" and not context.resilient_parsing:
        default_file()
    return file


ProblemFile = Annotated[
    Path,
    typer.Argument(
        help="Problem file or recipe (.toml or .json); rrf.toml by default.",
        show_default=False,
        default_factory=lambda: DEFAULT_FILE,
        callback=there,
    ),
]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="The table, one item a row: .csv, .tsv, .json, .jsonl or .parquet."),
]
ItemId = Annotated[str | None, typer.Option("--item", help="Only the item of this id.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Only the first so many items.")]
Sample = Annotated[int | None, typer.Option("--sample", help="Only so many items, drawn at random with --seed.")]
Select = Annotated[str | None, typer.Option("--select", help="Comma-separated ids of what to add to the owned blocks.")]
Everything = Annotated[bool, typer.Option("--all", help="Add everything that is on sale.")]
Corruptions = Annotated[int | None, typer.Option("--k", help="Corruption budget; default: the problem's.")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="Noise radius; default: the problem's.")]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="Server of an openai: model.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Write the outcome as JUnit XML.")]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds after which the best bounds so far are returned.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed for everything random.")]
Cluster = Annotated[
    str | None, typer.Option("--cluster", help="Address of a Dask scheduler, tcp://HOST:PORT: work on its machines.")
]
JunitVerdicts = Annotated[
    Path | None,
    typer.Option("--junit", help="Write the verdicts as JUnit XML: only what is checked or consistent passes."),
]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "--out",
        "-o",
        help=(
            "Write the result; may be given several times. Of a table: .json all of it, .csv .tsv .jsonl .parquet the"
            " delivered table, .html a page, .xml JUnit; FOLDER/ (repair of a Parquet table) a folder of Parquet parts."
        ),
    ),
]
ReviewPlace = Annotated[
    str | None,
    typer.Option(
        "--review",
        metavar="<file|store>",
        help=(
            "Ask people here: what is filled in is read, then what is open is written, first things first (.csv,"
            " .jsonl; .json for Label Studio; .sqlite or postgresql://... for the studio)."
        ),
    ),
]
ReviewWritten = Annotated[
    str | None, typer.Option("--review-file", hidden=True, help="As --review, but what is there is not read.")
]
ReviewsBack = Annotated[
    Path | None, typer.Option("--reviews", hidden=True, help="A review list that was filled in; as --review reads it.")
]
RequireShare = Annotated[
    float | None,
    typer.Option("--require-share", help="Exit with 0 only if this share of the rows is checked or consistent."),
]


@dataclass(frozen=True, slots=True)
class Items:
    """Which items a verb speaks of: all of a table, one of them, a sample, or the first few."""

    data: Data = None
    item: ItemId = None
    limit: Limit = None
    sample: Sample = None
    seed: Seed = 0

    def many(self, file: Path) -> bool:
        """Whether a verb speaks of many items: a table is given, or the file is a recipe."""
        from rrf_design.files import is_recipe, parse_text, read_source

        return self.data is not None or is_recipe(parse_text(read_source(file), file.suffix.lower()))

    def dataset(self, file: Path) -> Dataset:
        """The data set of a recipe, or the part of it that is chosen."""
        from rrf_design.questions import dataset

        self._refuse_together()
        found = dataset(file, self.data)
        if self.item is not None:
            return found.only([self.item])
        if self.sample is not None:
            return found.sample(self.sample, seed=self.seed)
        return found if self.limit is None else found.limit(self.limit)

    def given(self, file: Path) -> Problem | Dataset:
        """The problem of a file, that of one item of a table, or the table."""
        from rrf_design.files import load_unless_recipe

        self._refuse_together()
        if self.data is None and (problem := load_unless_recipe(file)) is not None:
            self.refuse()
            return problem
        return self.dataset(file) if self.item is None else Items(self.data).dataset(file).item(self.item).problem

    def refuse(self, **others: Any) -> None:
        """InputError for these options and `others`, which mean something for a table only."""
        only_with_tables(data=self.data, item=self.item, limit=self.limit, sample=self.sample, **others)

    def refuse_part(self, **others: Any) -> None:
        """InputError for options that a folder of parts has no use for."""
        for name, value in {"item": self.item, "limit": self.limit, "sample": self.sample, **others}.items():
            if value is not None:
                raise InputError(f"--{name} does not go with -o FOLDER/, which takes the table as it is; leave it out")

    def _refuse_together(self) -> None:
        if sum(option is not None for option in (self.item, self.limit, self.sample)) > 1:
            raise InputError("give one of --item, --limit and --sample")


def only_with_tables(**options: Any) -> None:
    """InputError for options that mean something for a table only."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} goes with a table; give --data, or a recipe")


@dataclass(frozen=True, slots=True)
class Work:
    """How much a verb may work."""

    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes to use; -1 for all cores.")] = 1
    time_limit: TimeLimit = None

    def means(self, progress: Any, *, cluster: str | None = None) -> dict[str, Any]:
        """The same as keywords of the public functions."""
        return {"n_jobs": -1 if cluster else self.jobs, "time_limit": self.time_limit, "progress": progress}


def flattened(verb: Callable[..., int | None]) -> Callable[..., None]:
    """The verb with the options of its groups as options of its own; what it returns is its exit
    code.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for one in inspect.signature(verb).parameters.values():
        if one.name in groups:
            kind = groups[one.name]
            types = get_type_hints(kind, include_extras=True)
            own = [one.replace(name=f.name, annotation=types[f.name], default=f.default) for f in fields(kind)]
        else:
            own = [one.replace(annotation=hints[one.name])]
        parameters += [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]

    @functools.wraps(verb)
    def called(**given: Any) -> None:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()
        }
        if code := verb(**given, **made):
            raise typer.Exit(code)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def split_ids(select: str | None) -> list[str] | None:
    return None if select is None else [part.strip() for part in select.split(",") if part.strip()]


def added(select: str | None, *, everything: bool) -> list[str] | str | None:
    """What is added to the owned blocks: the ids of --select, or all of --all."""
    if select is not None and everything:
        raise InputError("give --select or --all, not both")
    return "all" if everything else split_ids(select)


OF_TABLES = {
    **dict.fromkeys((".csv", ".tsv", ".jsonl", ".parquet"), ""),
    ".html": "; a page is made by rrf-design report",
    ".xml": "; JUnit is written by --junit",
}
"""Endings of outputs that a table has and a single problem has not, with who makes them there."""


def one_document(outputs: Sequence[Path] | None) -> Path | None:
    """The output of a single problem: one JSON document."""
    if outputs is not None and len(outputs) > 1:
        raise InputError("-o: a single problem has one output, its JSON document; several are for tables")
    for path in outputs or ():
        if path.suffix.lower() in OF_TABLES:
            also = OF_TABLES[path.suffix.lower()]
            raise InputError(f"{path}: of a single problem -o is its JSON document; end it in .json{also}")
    return outputs[0] if outputs else None


def one_folder(outputs: Sequence[Path] | None) -> Path | None:
    """The folder among the outputs, whose name has no ending; it is the only one then."""
    folders = [path for path in outputs or () if not path.suffix]
    if folders and len(outputs or ()) > 1:
        raise InputError(f"-o {folders[0]}/: a folder of parts is the only output; make the others from it")
    return folders[0] if folders else None


def one_of(given: Sequence[Path] | None, option: str) -> Path | None:
    """The only file of an option that takes several with --policy."""
    if given is not None and len(given) > 1:
        raise InputError(f"{option}: one file; several are for runs under a --policy")
    return given[0] if given else None


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Run what joblib runs on a Dask cluster; nothing changes without an address."""
    if address is None:
        yield
        return
    from rrf_design.errors import MissingDependency
    from rrf_design.workers import heard_of

    try:
        from distributed import Client
        from joblib import parallel_config
    except ImportError:
        raise MissingDependency("--cluster needs Dask: pip install 'rrf-design[cluster]'") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"--cluster {address}: no scheduler answers there ({error})") from None
    # What it says of lost connections we say in a line; some loggers have levels of their own.
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with heard_of(client), parallel_config(backend="dask", n_jobs=-1):
            yield
    finally:
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):  # a cluster that has gone needs no good-bye
            client.close()
