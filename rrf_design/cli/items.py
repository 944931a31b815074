"""The options by which a verb takes a table (--data, --item, --limit, --sample) and hands one back (-o, --review)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli.output import note, say, table

if TYPE_CHECKING:
    from rrf_design.handover import ByStructure, Delivery
    from rrf_design.problem import Problem
    from rrf_design.questions import Dataset

Data = Annotated[
    Path | None,
    typer.Option("--data", help="The table, one item a row: .csv, .tsv, .json, .jsonl or .parquet."),
]
ItemId = Annotated[str | None, typer.Option("--item", help="Only the item of this id.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Only the first so many items.")]
Sample = Annotated[int | None, typer.Option("--sample", help="Only so many items, drawn at random with --seed.")]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "--out",
        "-o",
        help="Write the result; may be given several times. Of a table: .json all of it, .csv .tsv .jsonl .parquet the delivered"
        " table, .html a page, .xml JUnit.",
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
    typer.Option("--require-share", help="Exit with 0 only if at least this share of the items is certified."),
]
Cluster = Annotated[
    str | None, typer.Option("--cluster", help="Address of a Dask scheduler, tcp://HOST:PORT: work on its machines.")
]
OF_TABLES = {
    **dict.fromkeys((".csv", ".tsv", ".jsonl", ".parquet"), ""),
    ".html": "; a page is made by rrf-design report",
    ".xml": "; JUnit is written by --junit",
}
"""Endings of outputs that a table has and a single problem has not, with who makes them there."""
SHOWN = 12
"""Items of a table that are listed."""


def is_dataset(file: Path, data: Path | None) -> bool:
    """Whether a verb speaks of many items: a table is given, or the file is a recipe."""
    from rrf_design.files import parse_text, read_source
    from rrf_design.questions.recipe import is_recipe

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
    """The data set of a recipe, or the part of it that the options choose: one item, or a sample, or the first few."""
    from rrf_design.questions import dataset

    refuse_together(item=item, limit=limit, sample=sample)
    found = dataset(file, data)
    if item is not None:
        return found.only([item])
    if sample is not None:
        return found.sample(sample, seed=seed)
    return found if limit is None else found.limit(limit)


def one_item(file: Path, data: Path | None, item: str | None) -> Problem:
    """The problem that a verb speaks of: the file's own, or that of one item of a table."""
    from rrf_design.errors import InputError
    from rrf_design.files import load
    from rrf_design.questions import dataset

    if not is_dataset(file, data):
        only_with_tables(item=item)
        return load(file)
    found = dataset(file, data)
    if item is None:
        if len(found.structures) == 1 and data is None and len(found) == 1:
            return next(iter(found.values()))
        first = next(iter(found))
        raise InputError(f"{file}: this is a recipe of {len(found)} items; name one of them, as in --item {first}")
    return found.item(item).problem


def many_items(
    file: Path,
    data: Path | None,
    item: str | None,
    *,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Dataset | None:
    """The data set that a verb speaks of, structure by structure; None where it speaks of one problem."""
    if item is not None:
        refuse_together(item=item, limit=limit, sample=sample)
        return None
    if not is_dataset(file, data):
        only_with_tables(limit=limit, sample=sample)
        return None
    return open_dataset(file, data, limit=limit, sample=sample, seed=seed)


def refuse_together(*, item: str | None, limit: int | None, sample: int | None) -> None:
    from rrf_design.errors import InputError

    if sum(option is not None for option in (item, limit, sample)) > 1:
        raise InputError("give one of --item, --limit and --sample")


def describe_structures(found: ByStructure[Any]) -> None:
    """Which items are like the one that is described next."""
    worst, count = found.worst, len(found.speakers)
    total = f"{found.dataset.recipe.name}: {len(found.dataset)} items of {count} structure{'s' if count > 1 else ''}"
    say(
        f"{total}; this is that of item {worst.item}{f' and {worst.count - 1} more, the weakest' if count > 1 else ''}."
    )


def only_with_tables(**options: Any) -> None:
    """Refuse options that mean something for a table only."""
    from rrf_design.errors import InputError

    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} goes with a table; give --data, or a recipe")


def one_document(outputs: Sequence[Path] | None) -> Path | None:
    """The output of a single problem: one JSON document."""
    from rrf_design.errors import InputError

    if outputs is not None and len(outputs) > 1:
        raise InputError("-o: a single problem has one output, its JSON document; several are for tables")
    for path in outputs or ():
        if path.suffix.lower() in OF_TABLES:
            also = OF_TABLES[path.suffix.lower()]
            raise InputError(f"{path}: of a single problem -o is its JSON document; end it in .json{also}")
    return outputs[0] if outputs else None


def one_of(given: Sequence[Path] | None, option: str) -> Path | None:
    """The only file of an option that takes several with --policy."""
    from rrf_design.errors import InputError

    if given is not None and len(given) > 1:
        raise InputError(f"{option}: one file; several are for runs under a --policy")
    return given[0] if given else None


def hand_over(delivery: Delivery, outputs: Sequence[Path], *, review: Path | None, quiet: bool) -> None:
    """Write everything that was asked for; endings are looked at before anything is written."""
    from rrf_design.handover import write_output, write_reviews
    from rrf_design.handover.outputs import check_outputs, spare_inputs

    check_outputs(outputs)
    spare_inputs(outputs, delivery.dataset)
    for path in outputs:
        write_output(path, delivery)
        if not quiet:
            note(f"written to {path}")
    if review is not None:
        count = write_reviews(review, delivery)
        if not quiet:
            note(f"{count} question{'s' * (count != 1)} for people, first things first, written to {review}")


def describe_delivery(delivery: Delivery) -> None:
    """A table of items for people: what may be handed over, and what they should look at first."""
    say(f"{delivery.dataset.recipe.name}: {delivery.sentence()}")
    mended: list[tuple[str, ...]] = []
    open_items: list[tuple[int, tuple[str, ...]]] = []
    for _, row, rank in delivery.ranked():
        if rank is not None and rank <= SHOWN:
            open_items.append((rank, (str(rank), row.id, _short(row.raw), row.verdict.value, _short(row.reason, 70))))
        elif row.changed and len(mended) <= SHOWN:
            mended.append((row.id, _short(row.raw), _short(row.answer), ", ".join(row.wrong)))
    if mended:
        table("", ["item", "answered", "is", "wrong"], mended[:SHOWN])
        if len(mended) > SHOWN:
            say("and more with wrong answers; -o delivered.csv has them all")
    if open_items:
        table("", ["look at", "item", "answered", "verdict", "why"], [row for _, row in sorted(open_items)], right=[0])
        if len(delivery.ranks) > SHOWN:
            say(f"and {len(delivery.ranks) - SHOWN} more; --review review.csv has them all")


def share_holds(delivery: Delivery, share: float | None) -> bool:
    """Whether what was required of a data set holds; without a requirement, being complete is enough."""
    return share is None or delivery.certified_share >= share


def _short(value: Any, most: int = 40) -> str:
    text = "" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= most else f"{text[: most - 1]}…"


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
