"""Typed prompts: each way of asking an item comes with the affine relation its answer must satisfy.

A variant asks for ``z_variant = T z + t`` of the item's answer ``z``: a paraphrase has ``T = I``, "three times (...)" has
``T = 3 I``, "... plus 19" shifts by 19, a decomposition asks for some coordinates only. Because text and relation are
declared side by side, the relation between any two variants follows by algebra and can't drift from the wording.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.models.base import Request
from rrf_design.questions.templates import render
from rrf_design.responses import parsers


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """``z_head = matrix @ z_tail + offset``; matrix is (rows, dim), offset is (rows,). Both are read-only."""

    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("matrix", "offset"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def apply(self, value: Sequence[float]) -> NDArray[np.float64]:
        return self.matrix @ np.asarray(value, dtype=np.float64) + self.offset

    def after(self, first: Affine) -> Affine:
        """This relation applied to the result of ``first``."""
        return Affine(self.matrix @ first.matrix, self.matrix @ first.offset + self.offset)

    def inverse(self) -> Affine:
        """The way back to the tail; a projection has none."""
        rows, dim = self.matrix.shape
        if rows != dim or np.linalg.matrix_rank(self.matrix) < dim:
            raise InputError(f"a relation of shape {rows} x {dim} that loses coordinates has no way back")
        diagonal = np.diagonal(self.matrix)
        # A scaling is inverted entry by entry, so that 1/s is the correctly rounded quotient.
        exact = np.array_equal(self.matrix, np.diag(diagonal))
        back: NDArray[Any] = np.diag(1.0 / diagonal) if exact else np.linalg.inv(self.matrix)
        return Affine(back, -(back @ self.offset))

    def transport(self) -> str | dict[str, Any]:
        """The shortest form that a problem file has for the matrix."""
        rows, dim = self.matrix.shape
        if rows == dim and np.array_equal(self.matrix, self.matrix[0, 0] * np.eye(dim)):
            scale = float(self.matrix[0, 0])
            return "identity" if scale == 1.0 else {"scale": scale}
        units = (self.matrix == 1.0).sum(axis=1) == 1
        if bool(units.all()) and np.count_nonzero(self.matrix) == rows:
            picks = [int(i) for i in self.matrix.argmax(axis=1)]
            return {"permute" if sorted(picks) == list(range(dim)) else "select": picks}
        return {"matrix": self.matrix.tolist()}

    def relation(self) -> dict[str, Any]:
        """``transport`` and ``offset`` as a relation of a problem file has them."""
        offset = self.offset.tolist()
        same = len(set(offset)) == 1
        return {"transport": self.transport(), "offset": offset[0] if same else offset}


class WordingKind(StrEnum):
    """What the wording does to the question; recorded with the answer, for audits by type."""

    ORIGINAL = "original"
    PARAPHRASE = "paraphrase"
    SCALE = "scale"
    SHIFT = "shift"
    PERMUTE = "permute"
    DECOMPOSE = "decompose"
    RENAME = "rename"
    LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class Transformation:
    """A typed change of the question. Build it with the functions below; ``variables`` are offered to the template."""

    kind: WordingKind
    scale: float = 1.0
    shift: float = 0.0
    picks: tuple[int, ...] | None = None
    rows: tuple[tuple[float, ...], ...] | None = None
    names: tuple[tuple[str, str], ...] = ()

    def affine(self, dim: int) -> Affine:
        """The relation from the item's answer of dimension ``dim`` to the variant's."""
        if self.rows is not None:
            matrix = np.array(self.rows, dtype=np.float64)
            if matrix.ndim != 2 or matrix.shape[1] != dim:
                raise InputError(f"{self.kind.value}: a matrix with {dim} columns is needed")
        elif self.picks is not None:
            if any(not 0 <= pick < dim for pick in self.picks):
                raise InputError(f"{self.kind.value}: {list(self.picks)} leaves the coordinates 0..{dim - 1}")
            matrix = np.eye(dim)[list(self.picks)]
        else:
            matrix = self.scale * np.eye(dim)
        return Affine(matrix, np.full(matrix.shape[0], self.shift))

    def variables(self) -> dict[str, object]:
        return {"s": _plain(self.scale), "t": _plain(self.shift)}

    def reword(self, text: str) -> str:
        """Rename whole words, all at once, so that a swap of two names stays a swap."""
        if not self.names:
            return text
        table = dict(self.names)
        pattern = "|".join(rf"(?<!\w){re.escape(old)}(?!\w)" for old in table)
        return re.sub(pattern, lambda match: table[match.group()], text)

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"kind": self.kind.value, "scale": self.scale, "shift": self.shift}
        if self.picks is not None:
            document["picks"] = list(self.picks)
        if self.rows is not None:
            document["rows"] = [list(row) for row in self.rows]
        if self.names:
            document["names"] = dict(self.names)
        return document


def original() -> Transformation:
    return Transformation(WordingKind.ORIGINAL)


def paraphrase() -> Transformation:
    return Transformation(WordingKind.PARAPHRASE)


def scale(s: float) -> Transformation:
    """Asks for ``s`` times the answer; the template may say ``{{ s }}``."""
    if s == 0 or not np.isfinite(s):
        raise InputError(f"scale: {s} times an answer says nothing about it; choose a finite s other than 0")
    return Transformation(WordingKind.SCALE, scale=float(s))


def shift(t: float) -> Transformation:
    """Asks for the answer plus ``t``; the template may say ``{{ t }}``."""
    if not np.isfinite(t):
        raise InputError(f"shift: {t} is not a finite number")
    return Transformation(WordingKind.SHIFT, shift=float(t))


def permute(*order: int) -> Transformation:
    """Asks for the coordinates in another order: entry i of the variant is entry ``order[i]`` of the answer."""
    if sorted(order) != list(range(len(order))):
        raise InputError(f"permute: {list(order)} is not an order of 0..{len(order) - 1}")
    return Transformation(WordingKind.PERMUTE, picks=order)


def decompose(*picks: int) -> Transformation:
    """Asks for some coordinates only; without any, it is a hint to work in steps and the answer stays the same."""
    return Transformation(WordingKind.DECOMPOSE, picks=picks or None)


def rename(names: Mapping[str, str]) -> Transformation:
    """Other names for the same things (arguments of a function); the answer stays the same."""
    return Transformation(WordingKind.RENAME, names=tuple(names.items()))


def linear(rows: Sequence[Sequence[float]], offset: float = 0.0) -> Transformation:
    """Asks for a linear map of the answer, such as the sum of its coordinates."""
    matrix = tuple(tuple(float(entry) for entry in row) for row in rows)
    return Transformation(WordingKind.LINEAR, shift=float(offset), rows=matrix)


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of asking. ``parser`` replaces the item's, where the variant's answer has another shape."""

    name: str
    template: str
    transformation: Transformation = Transformation(WordingKind.PARAPHRASE)
    parser: str | Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A question, its variables, and the ways it is asked; the first variant is the reference of the relations."""

    id: str
    variables: Mapping[str, object]
    variants: tuple[Variant, ...]
    parser: str | Mapping[str, Any] = "integer-last"
    system: str | None = None
    dim: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variants", tuple(self.variants))
        names = [variant.name for variant in self.variants]
        if not names or len(set(names)) != len(names):
            raise InputError(f"item {self.id!r}: variants need names, each one once")
        for variant in self.variants:
            rows = variant.transformation.affine(self.dim).matrix.shape[0]
            dim = parsers.get(self.parser if variant.parser is None else variant.parser).dim
            if dim != rows:
                raise InputError(
                    f"item {self.id!r}, variant {variant.name!r}: its parser gives {dim} numbers where {rows} are asked for"
                )

    def prompt(self, variant: Variant) -> str:
        change = variant.transformation
        return change.reword(render(variant.template, {**change.variables(), **self.variables}))

    def request(self, variant: Variant) -> Request:
        return Request(self.prompt(variant), system=self.system, **self.settings)

    def nodes(self) -> list[dict[str, Any]]:
        """The variants as nodes of a problem file, with what a live run needs to ask them."""
        nodes = []
        for variant in self.variants:
            parser = self.parser if variant.parser is None else variant.parser
            node: dict[str, Any] = {
                "id": variant.name,
                "dim": variant.transformation.affine(self.dim).matrix.shape[0],
                "prompt": self.prompt(variant),
                "parser": parser if isinstance(parser, str) else dict(parser),
            }
            if self.system is not None:
                node["system"] = self.system
            if "max_tokens" in self.settings:
                node["max_tokens"] = self.settings["max_tokens"]
            nodes.append(node)
        return nodes

    def between(self, tail: int, head: int) -> Affine:
        """The relation from variant ``tail`` to variant ``head``, through the item's own answer."""
        start, end = (self.variants[i].transformation.affine(self.dim) for i in (tail, head))
        return end.after(start.inverse())

    def relations(self, edges: Sequence[tuple[int, int]] | None = None) -> list[dict[str, Any]]:
        """Relations of a problem file along ``edges``; by default from the first variant to each other one."""
        pairs = [(0, i) for i in range(1, len(self.variants))] if edges is None else edges
        relations = []
        for tail, head in pairs:
            start, end = self.variants[tail], self.variants[head]
            relation = {"id": f"{start.name}-{end.name}", "tail": start.name, "head": end.name}
            relations.append({**relation, **self.between(tail, head).relation()})
        return relations


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else repr(float(number))
