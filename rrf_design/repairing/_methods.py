"""Which decoder: by name, or for "auto" by what the field allows; what a method has no use for is
refused.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from rrf_design.errors import InputError
from rrf_design.repairing.contract import Decoder, Task

DENSE_SUPPORTS = 20_000
"""Prefixes that an exact search may walk through on a dense field before `auto` prefers the convex
decoder.
"""


_DECODERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "exact": ("_exact:Exact", ()),
    "convex": ("_convex:Convex", ()),
    "discrete": ("_discrete:Discrete", ()),
    "min-sum": ("_discrete:Discrete", ("min-sum",)),
}
"""Module and class of each decoder, and what it is made with; imported when it is used."""
METHODS = ("auto", *_DECODERS)


def choose(method: str, task: Task) -> tuple[Decoder, str]:
    """The decoder, and for "auto" the reason (paper's Algorithm 1: exact where feasible, candidates
    where given, else convex).
    """
    from rrf_design.files import suggestion

    if method not in METHODS:
        hint = suggestion(method, METHODS) or f"; known: {', '.join(METHODS)}"
        raise InputError(f"unknown method {method!r}{hint}")
    name, why = _automatic(task) if method == "auto" else (method, "")
    decoder = _decoder(name)
    _refuse_units(decoder, task)
    for option in task.work.options:
        if option not in decoder.options:
            others = [other for other in _DECODERS if option in _decoder(other).options]
            hint = f"; it belongs to {' and '.join(others)}" if others else suggestion(option, decoder.options)
            raise InputError(f"method {name} has no option {option!r}{hint}")
    return decoder, why


def _decoder(name: str) -> Decoder:
    home, made_with = _DECODERS[name]
    module, _, kind = home.partition(":")
    decoder: Decoder = getattr(import_module(f"rrf_design.repairing.{module}"), kind)(*made_with)
    return decoder


def _refuse_units(decoder: Decoder, task: Task) -> None:
    """Better no answer than one that counts something else."""
    premise = task.operator.premise
    if decoder.counts_units or not (premise.units or premise.wrong_checks):
        return
    what = "units of several nodes" if premise.units else "checks that may be wrong"
    raise InputError(f"method {decoder.name}: it knows nothing of {what}; use method exact")


def _automatic(task: Task) -> tuple[str, str]:
    premise = task.operator.premise
    if premise.units or premise.wrong_checks:
        also = "; candidates are not used" if task.candidates else ""
        return "exact", f"exact, the only method that knows units and checks that may be wrong{also}"
    if task.candidates:
        return "discrete", "discrete, because candidates were given"
    nodes = len(task.operator.node_ids) - len(task.erased)
    prefixes = np.prod([float(nodes - i) for i in range(max(0, min(task.k, nodes) - 2))])
    rows, columns = task.operator.shape
    filled = task.operator.matrix.nnz / max(1, rows * columns)
    if task.k <= 2 or filled <= 0.2 or prefixes <= DENSE_SUPPORTS:
        return "exact", "exact, because the support search is feasible"
    why = f"convex, because an exact search at k = {task.k} on a dense field of {nodes} nodes is not feasible"
    return "convex", why
