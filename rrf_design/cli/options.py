"""What verbs take: options that several of them share, each declared once, and the problem or the
table that they name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
JunitVerdicts = Annotated[
    Path | None,
    typer.Option("--junit", help="Write the verdicts as JUnit XML: only what is checked or consistent passes."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="The answer only: no progress, no messages.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes to use; -1 for all cores.")]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds after which the best bounds so far are returned.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed for everything random.")]
Cluster = Annotated[
    str | None, typer.Option("--cluster", help="Address of a Dask scheduler, tcp://HOST:PORT: work on its machines.")
]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "--out",
        "-o",
        help=(
            "Write the result; may be given several times. Of a table: .json all of it, .csv .tsv .jsonl .parquet the"
            " delivered table, .html a page, .xml JUnit."
        ),
    ),
]
ReviewFile = Annotated[
    Path | None,
    typer.Option(
        "--review", help="Write what people should look at, first things first (.csv, .jsonl; .json for Label Studio)."
    ),
]
ReviewsBack = Annotated[Path | None, typer.Option("--reviews", help="A review list that was filled in.")]
RequireShare = Annotated[
    float | None,
    typer.Option("--require-share", help="Exit with 0 only if this share of the rows is checked or consistent."),
]


def split_ids(select: str | None) -> list[str] | None:
    return None if select is None else [part.strip() for part in select.split(",") if part.strip()]


def is_dataset(file: Path, data: Path | None) -> bool:
    """Whether a verb speaks of many items: a table is given, or the file is a recipe."""
    from rrf_design.files import is_recipe, parse_text, read_source

    return data is not None or is_recipe(parse_text(read_source(file), file.suffix.lower()))


def open_dataset(
    file: Path,
    data: Path | None = None,
    *,
    item: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Dataset:
    """The data set of a recipe, or the part of it that the options choose: one item, or a sample,
    or the first few.
    """
    from rrf_design.questions import dataset

    refuse_together(item=item, limit=limit, sample=sample)
    found = dataset(file, data)
    if item is not None:
        return found.only([item])
    if sample is not None:
        return found.sample(sample, seed=seed)
    return found if limit is None else found.limit(limit)


def problem_or_dataset(
    file: Path,
    data: Path | None,
    item: str | None,
    *,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Problem | Dataset:
    """What a verb speaks of: the problem of a file, that of one item of a table, or the table."""
    from rrf_design.files import load_unless_recipe

    refuse_together(item=item, limit=limit, sample=sample)
    if data is None and (problem := load_unless_recipe(file)) is not None:
        only_with_tables(item=item, limit=limit, sample=sample)
        return problem
    if item is None:
        return open_dataset(file, data, limit=limit, sample=sample, seed=seed)
    return open_dataset(file, data).item(item).problem


def added(select: str | None, *, everything: bool) -> list[str] | str | None:
    """What is added to the owned blocks: the ids of --select, or all of --all."""
    if select is not None and everything:
        raise InputError("give --select or --all, not both")
    return "all" if everything else split_ids(select)


def refuse_together(*, item: str | None, limit: int | None, sample: int | None) -> None:
    if sum(option is not None for option in (item, limit, sample)) > 1:
        raise InputError("give one of --item, --limit and --sample")


def only_with_tables(**options: Any) -> None:
    """Refuse options that mean something for a table only."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} goes with a table; give --data, or a recipe")


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
    from rrf_design.errors import InputError, MissingDependency
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
    with client, parallel_config(backend="dask", n_jobs=-1), heard_of():
        yield
