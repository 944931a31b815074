"""The field: nodes, one per transformed query, each with a fiber its parsed answer lives in.

A node is the atomic unit of corruption (paper, "Finite-dimensional fibers and direct sums"): a wrong answer is
one wrong node, however many coordinates or tokens it changes. Everything in this module is plain checked data.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0)]
Whole = Annotated[int, Field(strict=True)]
Text = Annotated[str, Field(strict=True, min_length=1)]
Matrix = tuple[tuple[Real, ...], ...]


class Entry(BaseModel):
    """Base of everything that can stand in a problem file: frozen, and no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Node(Entry):
    """One transformed query and the space ℝ^dim its parsed answer lives in."""

    id: Text
    dim: Annotated[int, Field(strict=True, ge=1)] = 1
    cost: NonNegative | None = None
    """Present: the query is not asked yet, and asking it costs this. Absent: asked already."""
    metric: Positive | Matrix | None = None
    """Positive definite W_i: lengths in this fiber are sqrt(hᵀ W_i h). A number means that multiple of the identity."""
    prompt: Text | None = None
    """What a live run asks; the fields below belong to it."""
    system: Text | None = None
    parser: Text | dict[str, Any] | None = None
    max_tokens: Annotated[int, Field(strict=True, ge=1)] | None = None
    variables: dict[str, Any] | None = None
