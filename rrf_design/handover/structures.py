"""What holds for all items of a structure, said once for each: margins, explanations, certificates (docs/algorithms.md, fact 21).

The item that comes first in the table speaks for those like it: they differ in texts, offsets and values only, which no margin and
no proof depends on. Of several structures the worst one speaks for the data set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rrf_design.bundles import Backend
from rrf_design.errors import InputError
from rrf_design.problem import Problem
from rrf_design.questions.datasets import Dataset
from rrf_design.workers import shared_out
from solvers.cluster import active_client

if TYPE_CHECKING:
    from rrf_design.certificates import Certificate

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Speaker(Generic[T]):
    """The result of one structure: the item that it was found for, and how many are like it."""

    item: str
    count: int
    problem: Problem
    result: T


@dataclass(frozen=True, slots=True)
class ByStructure(Generic[T]):
    """One result for each structure of a data set, in the order of the table."""

    dataset: Dataset
    speakers: tuple[Speaker[T], ...]
    value: Callable[[T], float]

    @property
    def worst(self) -> Speaker[T]:
        """The structure with the smallest value; the first of them."""
        return min(self.speakers, key=lambda speaker: self.value(speaker.result))

    def to_json(self) -> dict[str, Any]:
        """The document of the worst structure, and those of all beside it."""
        parts = [
            {"item": speaker.item, "items": speaker.count, **_document(speaker.result)} for speaker in self.speakers
        ]
        return {
            **_document(self.worst.result),
            "item": self.worst.item,
            "items": len(self.dataset),
            "structures": parts,
        }

    def __repr__(self) -> str:
        return f"ByStructure({self.dataset.table.name!r}: {len(self.dataset)} items, {len(self.speakers)} structures)"


def by_structure(dataset: Dataset, solve: Callable[[Problem], T], value: Callable[[T], float]) -> ByStructure[T]:
    """`solve` for the first item of each structure; `value` says which result is the worst: the smallest."""
    speakers = (replace(one, result=solve(one.problem)) for one in _first_items(dataset))
    return ByStructure(dataset, tuple(speakers), value)


def _first_items(dataset: Dataset) -> Iterator[Speaker[Any]]:
    """The first item of each structure, before anything is solved."""
    wanted = dict(dataset.structures)
    for item in dataset.items_in_order():
        if not wanted:
            return
        shared = wanted.pop(item.structure, None)
        if shared is not None:
            yield Speaker(item.id, shared.count, item.problem, None)


def certify_dataset(dataset: Dataset, select: Any = None, **options: Any) -> ByStructure[Certificate]:
    """A certificate for each structure; `options` are those of `certify`. On a cluster each structure is a piece of work."""
    from rrf_design.certificates import certify

    if active_client() is None:
        return by_structure(dataset, lambda problem: certify(problem, select, **options), _certain)
    from joblib import delayed

    speakers = list(_first_items(dataset))
    means = options.get("backend") or Backend()
    told = options | {"backend": replace(means, n_jobs=None, progress=None)}
    tasks = (delayed(certify)(one.problem, select, **told) for one in speakers)
    found = []
    for one, result in zip(speakers, shared_out(tasks, n_jobs=means.n_jobs), strict=True):
        found.append(replace(one, result=result))
        if means.progress is not None:
            means.progress(
                len(found) / len(speakers), None, f"{len(found)} of {len(speakers)} structures are certified"
            )
    return ByStructure(dataset, tuple(found), _certain)


def _certain(certificate: Certificate) -> float:
    return certificate.robust_lower


def save_certificates(
    found: ByStructure[Certificate], path: str | os.PathLike[str]
) -> tuple[ByStructure[Certificate], list[Path]]:
    """Write them: one file for a single structure, a folder with one file for each of several."""
    target = Path(path)
    if len(found.speakers) == 1:
        paths = [target]
    else:
        if target.suffix.lower() == ".json":
            raise InputError(
                f"{target}: the items have {len(found.speakers)} structures, and each its own certificate; name a folder"
            )
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{target}: can't be made a folder for certificates ({error.strerror})") from None
        paths = [
            target / f"{number:03d}-{_safe(speaker.item)}.json"
            for number, speaker in enumerate(found.speakers, start=1)
        ]
    saved = tuple(
        Speaker(speaker.item, speaker.count, speaker.problem, speaker.result.save(place))
        for speaker, place in zip(found.speakers, paths, strict=True)
    )
    return ByStructure(found.dataset, saved, found.value), paths


def _document(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.to_json()
    return found


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)[:40]
