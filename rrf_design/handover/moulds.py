"""What all items share that hold the same parts of one structure: rows, their key and their scales (docs/algorithms.md, fact 21).

An item then is a response and a right-hand side: no problem is built for it. `rrf_design.repairing` on the item's own
problem is the slow and obvious way, and gives the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from rrf_design.blocks import Anchor
from rrf_design.errors import InputError
from rrf_design.noise import Noise, Radius, radius_of
from rrf_design.operators import Operator
from rrf_design.problem import Problem
from rrf_design.repairing.batch import operator_key
from rrf_design.rows import family_scale, row_whitener

Numbers = float | tuple[float, ...]


class Mould:
    """One structure, and what is held of it. The example's own texts and values mean nothing here."""

    def __init__(
        self, example: Problem, held: frozenset[str], absent: frozenset[str], *, noise: Noise | None = None
    ) -> None:
        self.problem, self._noise = example, noise
        design = example.structure.holding(held, absent)
        self.empty = design.empty
        self.operator: Operator = design.slice(example)
        _ = (
            self.operator.groups,
            self.operator.node_index,
            self.operator.block_index,
            self.operator.of_anchors,
            self.operator.anchor_ids,
            self.operator.longest_row,
            self.operator.longest_units,
            self.operator.magnitudes,
        )  # known from here on, and not worked out again for every item
        self.selected = design.selected
        self._blocks = [example.block_by_id[name] for name in self.operator.block_ids]
        heights = np.diff(self.operator.block_offsets).tolist()
        self._rows = [
            slice(int(top), int(top) + height)
            for top, height in zip(self.operator.block_offsets, heights, strict=False)
        ]
        factors, self._dense = [], {}
        for place, (block, height) in enumerate(zip(self._blocks, heights, strict=True)):
            factor, white = family_scale(example, block), row_whitener(example, block, height)
            if isinstance(white, float):
                factor *= white
            else:
                self._dense[place] = white
            factors.append(factor)
        self._factors = np.repeat(factors, heights) if heights else np.zeros(0)

    @cached_property
    def key(self) -> str:
        return operator_key(self.operator)

    @cached_property
    def radius(self) -> Radius:
        return radius_of(self.problem, self.operator, self._noise)

    def aimed(self, values: Mapping[str, Numbers]) -> Operator:
        """The operator with an item's own offsets and values, by block; relations that are not named have none."""
        bare = np.zeros(self.operator.shape[0])
        for block, rows in zip(self._blocks, self._rows, strict=True):
            value = values.get(block.id)
            if value is None:
                if isinstance(block, Anchor):
                    raise InputError(f"check {block.id!r}: no value is known")
                continue
            height = rows.stop - rows.start
            if (isinstance(value, tuple) and len(value) != height) or (
                isinstance(block, Anchor) and not isinstance(value, tuple) and height != 1
            ):
                raise InputError(f"{block.title}: {value!r} is not a value for {height} rows")
            bare[rows] = value
        target = bare * self._factors
        for place, white in self._dense.items():
            target[self._rows[place]] = white @ target[self._rows[place]]
        return self.operator.aiming(target)
