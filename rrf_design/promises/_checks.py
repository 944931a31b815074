"""Checks that machines make, as stages of a cascade: which there are, which answers each is shown,
and what a policy is bound to by them.

A value of the row and arithmetic are known at once. Tests in the sandbox, commands and judges have
to be fetched, each after the answers that it is about: an item that escalates to such a stage has
them, in the pilot as in the run, so that a check is shown the same both times. People's checks are
the last stage, and the gold column reaches no check at all (`questions.preflight`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.blocks import Anchor
from rrf_design.checks import cheapest_first, is_person, known_value
from rrf_design.errors import InputError
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.questions.datasets import Dataset


def machine_checks(problem: Problem) -> list[Anchor]:
    """The checks on sale that no person makes, the cheapest first.

    Of answers that are classes, those whose class the row knows.
    """
    from rrf_design.acquisition.classes import open_nodes

    worded = open_nodes(problem)
    sold = [anchor for anchor in problem.anchors if anchor.cost is not None and not is_person(anchor)]
    return cheapest_first(anchor for anchor in sold if worded.isdisjoint(anchor.nodes) or known_class(anchor))


def known_class(anchor: Anchor) -> str | None:
    """The class that a check of open answers names."""
    label = anchor.source.get("label") if isinstance(anchor.source, Mapping) else None
    return label if isinstance(label, str) else None


def is_known(problem: Problem, anchor: Anchor) -> bool:
    """Whether nobody has to be asked for its value."""
    return known_class(anchor) is not None or known_value(problem, anchor) is not None


def noisy(anchor: Anchor) -> bool:
    """Whether it declares how it errs: a judge's sigma, covariance or rate."""
    return anchor.sigma is not None or anchor.covariance is not None or anchor.rate is not None


def shown_to(problem: Problem, anchor: Anchor) -> tuple[str, ...]:
    """The nodes whose answers a check is made from: those it is about, and those that a judge's
    prompt names. None for what is known at once.
    """
    from rrf_design.questions.templates import template

    if is_known(problem, anchor):
        return ()
    source = anchor.source
    named: frozenset[str] | set[str] = frozenset()
    if isinstance(source, Mapping) and isinstance(source.get("prompt"), str):
        named = template(source["prompt"]).names
    return tuple(node.id for node in problem.nodes if node.id in anchor.nodes or node.id in named)


def may_run(dataset: Dataset, names: Collection[str], *, allowed: bool) -> None:
    """InputError where a check runs a program of the user's and nobody said that it may, or that is
    not where it would be run: before anything is bought.
    """
    for anchor in _every(dataset):
        if anchor.id in names:
            _at_hand(dataset, anchor)
        if anchor.id in names and _command(anchor) and not allowed:
            raise InputError(
                f"check {anchor.id!r} runs a command, and a ladder may climb to it; say --allow-commands, or keep"
                ' checks out of ladders: [ladder] check = ""'
            )


def _at_hand(dataset: Dataset, anchor: Anchor) -> None:
    """Commands, like files of models, are found from the folder where the call is made.

    A file that only the recipe's folder has would never be run, nor bound to the policy.
    """
    folder = dataset.recipe.folder
    for word in _command(anchor):
        if not Path(word).is_absolute() and not Path(word).exists() and (folder / word).is_file():
            raise InputError(
                f"check {anchor.id!r}: {word!r} is in {folder}, and commands run in the folder where they are called;"
                " call from there, or write the whole path"
            )


def refuse_unpriced(dataset: Dataset) -> None:
    """InputError where a check that has to be fetched has no price: it belongs to every design
    then, and a cascade has it or escalates to it.
    """
    from rrf_design.acquisition.classes import open_nodes

    for one in dataset.structures.values():
        worded = open_nodes(one.example)
        for anchor in one.example.anchors:
            free = anchor.cost is None and not is_person(anchor) and worded.isdisjoint(anchor.nodes)
            if free and not is_known(one.example, anchor):
                raise InputError(
                    f"check {anchor.id!r}: it has to be fetched, so a ladder climbs to it or not; give it a cost, cost"
                    " = 0 where it is free"
                )


def check_names(dataset: Dataset) -> set[str]:
    """The checks of machines that any item may have."""
    return {anchor.id for anchor in _every(dataset)}


def program_digests(dataset: Dataset) -> dict[str, dict[str, str]]:
    """Of the checks that run programs: every word of the command that is a file, with what the file
    holds. Other words are in the recipe's digest.

    Where rows fill in words of a command, those of every row.
    """
    words = dict.fromkeys((anchor.id, word) for anchor in _every(dataset) for word in _command(anchor))
    filled = _filled_commands(dataset)
    if filled:
        for item in dataset.items_in_order():
            words |= dict.fromkeys((a.id, word) for a in item.problem.anchors if a.id in filled for word in _command(a))
    found: dict[str, dict[str, str]] = {}
    for name, word in words:
        path = Path(word)
        if path.is_file():
            found.setdefault(name, {})[word] = sha256(path.read_bytes()).hexdigest()
    return found


def _filled_commands(dataset: Dataset) -> set[str]:
    """Machine checks whose command shows columns of the row."""
    from rrf_design.questions.templates import template

    here = {str(entry["id"]): entry.get("source") for entry in dataset.recipe.long.get("anchors", ())}
    commands = {
        name: source["command"] for name, source in here.items() if isinstance(source, Mapping) and "command" in source
    }
    named = check_names(dataset)
    return {
        name
        for name, words in commands.items()
        if name in named and any(isinstance(word, str) and template(word).names for word in words)
    }


def _every(dataset: Dataset) -> list[Anchor]:
    return [anchor for one in dataset.structures.values() for anchor in machine_checks(one.example)]


def _command(anchor: Anchor) -> tuple[str, ...]:
    source: Any = anchor.source
    words = source.get("command", ()) if isinstance(source, Mapping) else ()
    return tuple(word for word in words if isinstance(word, str))
