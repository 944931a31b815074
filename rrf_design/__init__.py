"""Which questions to ask a language model, and which answers to check, so that wrong answers can't hide.

The public names are imported when they are first used, so that `import rrf_design` stays instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOME = {
    "Node": "rrf_design.field",
    "Relation": "rrf_design.blocks",
    "Anchor": "rrf_design.blocks",
    "Rule": "rrf_design.blocks",
    "Tier": "rrf_design.blocks",
    "Transport": "rrf_design.blocks",
    "Problem": "rrf_design.problem",
    "Operator": "rrf_design.operators",
    "DesignMargin": "rrf_design.margins",
    "component_criterion": "rrf_design.components",
    "load": "rrf_design.files",
    "loads": "rrf_design.files",
    "save": "rrf_design.files",
    "dumps": "rrf_design.files",
    "digest": "rrf_design.files",
    "from_graph": "rrf_design.builders",
    "from_matrix": "rrf_design.builders",
    "save_operator": "rrf_design.builders",
    "load_operator": "rrf_design.builders",
    "plan": "rrf_design.planning",
    "frontier": "rrf_design.planning",
    "portfolio": "rrf_design.planning",
    "certify": "rrf_design.certificates",
    "verify": "rrf_design.certificates",
    "repair": "rrf_design.repairing",
    "acquire": "rrf_design.acquisition",
    "estimate": "rrf_design.handover",
    "dataset": "rrf_design.questions",
    "Dataset": "rrf_design.questions",
    "Noise": "rrf_design.noise",
    "Measure": "rrf_design.bundles",
    "Backend": "rrf_design.bundles",
    "Claims": "rrf_design.bundles",
    "Given": "rrf_design.bundles",
    "Limits": "rrf_design.bundles",
    "Strategy": "rrf_design.bundles",
    "Surroundings": "rrf_design.bundles",
    "RRFError": "rrf_design.errors",
    "InputError": "rrf_design.errors",
    "BudgetError": "rrf_design.errors",
    "RetryLater": "rrf_design.errors",
    "MissingDependency": "rrf_design.errors",
    "Refused": "rrf_design.errors",
}

_ROOMS = ("risk",)
"""Packages whose names are used with the package's own: `rrf_design.risk.bound`."""

__all__ = [
    "Anchor",
    "Backend",
    "BudgetError",
    "Claims",
    "Dataset",
    "DesignMargin",
    "Given",
    "InputError",
    "Limits",
    "Measure",
    "MissingDependency",
    "Node",
    "Noise",
    "Operator",
    "Problem",
    "RRFError",
    "Refused",
    "Relation",
    "RetryLater",
    "Rule",
    "Strategy",
    "Surroundings",
    "Tier",
    "Transport",
    "__version__",
    "acquire",
    "certify",
    "component_criterion",
    "dataset",
    "digest",
    "dumps",
    "estimate",
    "from_graph",
    "from_matrix",
    "frontier",
    "load",
    "load_operator",
    "loads",
    "plan",
    "portfolio",
    "repair",
    "risk",
    "save",
    "save_operator",
    "verify",
]

if TYPE_CHECKING:
    from rrf_design import risk
    from rrf_design.acquisition import acquire
    from rrf_design.blocks import Anchor, Relation, Rule, Tier, Transport
    from rrf_design.builders import from_graph, from_matrix, load_operator, save_operator
    from rrf_design.bundles import Backend, Claims, Given, Limits, Measure, Strategy, Surroundings
    from rrf_design.certificates import certify, verify
    from rrf_design.components import component_criterion
    from rrf_design.errors import BudgetError, InputError, MissingDependency, Refused, RetryLater, RRFError
    from rrf_design.field import Node
    from rrf_design.files import digest, dumps, load, loads, save
    from rrf_design.handover import estimate
    from rrf_design.margins import DesignMargin
    from rrf_design.noise import Noise
    from rrf_design.operators import Operator
    from rrf_design.planning import frontier, plan, portfolio
    from rrf_design.problem import Problem
    from rrf_design.questions import Dataset, dataset
    from rrf_design.repairing import repair


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"rrf_design.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'rrf_design' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
