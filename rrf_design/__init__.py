"""Which questions to ask a language model, and which answers to check, so that wrong answers can't
hide.

The public names are imported when they are first used, so that `import rrf_design` stays instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rrf_design._lazy import lazy_names

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
    "DesignMargin": "rrf_design._margin",
    "component_criterion": "rrf_design._margin",
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
    "estimate": "rrf_design.tables",
    "pilot": "rrf_design.promises._pilot",
    "Pilot": "rrf_design.promises._pilot",
    "audit": "rrf_design.promises.audits",
    "Audit": "rrf_design.promises.audits",
    "margin": "rrf_design._margin",
    "measure": "rrf_design.promises._measure",
    "Measurement": "rrf_design.promises._measure",
    "explain": "rrf_design._explain",
    "Explanation": "rrf_design._explain",
    "dataset": "rrf_design.questions",
    "Dataset": "rrf_design.questions",
    "Plan": "rrf_design.planning",
    "Frontier": "rrf_design.planning",
    "Portfolio": "rrf_design.planning",
    "Certificate": "rrf_design.certificates",
    "Verification": "rrf_design.certificates",
    "Repair": "rrf_design.repairing",
    "Acquisition": "rrf_design.acquisition",
    "DatasetPlan": "rrf_design.tables",
    "Delivery": "rrf_design.tables",
    "Estimate": "rrf_design.tables",
    "ByStructure": "rrf_design.tables",
    "Noise": "rrf_design.noise",
    "RRFError": "rrf_design.errors",
    "InputError": "rrf_design.errors",
    "BudgetError": "rrf_design.errors",
    "RetryLater": "rrf_design.errors",
    "MissingDependency": "rrf_design.errors",
    "Refused": "rrf_design.errors",
    "risk": "rrf_design.risk",
    "testing": "rrf_design.testing",
}

__all__ = [
    "Acquisition",
    "Anchor",
    "Audit",
    "BudgetError",
    "ByStructure",
    "Certificate",
    "Dataset",
    "DatasetPlan",
    "Delivery",
    "DesignMargin",
    "Estimate",
    "Explanation",
    "Frontier",
    "InputError",
    "Measurement",
    "MissingDependency",
    "Node",
    "Noise",
    "Operator",
    "Pilot",
    "Plan",
    "Portfolio",
    "Problem",
    "RRFError",
    "Refused",
    "Relation",
    "Repair",
    "RetryLater",
    "Rule",
    "Tier",
    "Transport",
    "Verification",
    "__version__",
    "acquire",
    "audit",
    "certify",
    "component_criterion",
    "dataset",
    "digest",
    "dumps",
    "estimate",
    "explain",
    "from_graph",
    "from_matrix",
    "frontier",
    "load",
    "load_operator",
    "loads",
    "margin",
    "measure",
    "pilot",
    "plan",
    "portfolio",
    "repair",
    "risk",
    "save",
    "save_operator",
    "testing",
    "verify",
]

if TYPE_CHECKING:
    from rrf_design import risk, testing
    from rrf_design._explain import Explanation, explain
    from rrf_design._margin import DesignMargin, component_criterion, margin
    from rrf_design.acquisition import Acquisition, acquire
    from rrf_design.blocks import Anchor, Relation, Rule, Tier, Transport
    from rrf_design.builders import from_graph, from_matrix, load_operator, save_operator
    from rrf_design.certificates import Certificate, Verification, certify, verify
    from rrf_design.errors import BudgetError, InputError, MissingDependency, Refused, RetryLater, RRFError
    from rrf_design.field import Node
    from rrf_design.files import digest, dumps, load, loads, save
    from rrf_design.noise import Noise
    from rrf_design.operators import Operator
    from rrf_design.planning import Frontier, Plan, Portfolio, frontier, plan, portfolio
    from rrf_design.problem import Problem
    from rrf_design.promises._measure import Measurement, measure
    from rrf_design.promises._pilot import Pilot, pilot
    from rrf_design.promises.audits import Audit, audit
    from rrf_design.questions import Dataset, dataset
    from rrf_design.repairing import Repair, repair
    from rrf_design.tables import ByStructure, DatasetPlan, Delivery, Estimate, estimate

__getattr__, __dir__ = lazy_names(__name__, _HOME)
