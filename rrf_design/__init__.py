"""Which questions to ask a language model, and which answers to check, so that wrong answers can't
hide.

The public names are imported when they are first used, so that `import rrf_design` stays instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rrf_design._lazy import lazy_names

__version__ = "0.3.0"

_HOME = {
    "rrf_design.field": "Node",
    "rrf_design.blocks": "Relation Anchor Rule Tier Transport",
    "rrf_design.problem": "Problem",
    "rrf_design.operators": "Operator",
    "rrf_design._margin": "DesignMargin component_criterion margin",
    "rrf_design.files": "load loads save dumps digest",
    "rrf_design.builders": "from_graph from_matrix save_operator load_operator",
    "rrf_design.planning": "plan frontier portfolio Plan Frontier Portfolio",
    "rrf_design.certificates": "certify verify Certificate Verification",
    "rrf_design.repairing": "repair Repair",
    "rrf_design.acquisition": "acquire Acquisition",
    "rrf_design.tables": "estimate repairer DatasetPlan Delivery Estimate Repairer ByStructure",
    "rrf_design.promises._pilot": "pilot Pilot",
    "rrf_design.promises._audits": "audit Audit",
    "rrf_design.promises._delivery": "deliver TestedDelivery",
    "rrf_design.promises._measure": "measure Measurement",
    "rrf_design._explain": "explain Explanation",
    "rrf_design.questions": "dataset Dataset",
    "rrf_design.noise": "Noise",
    "rrf_design.errors": "RRFError InputError BudgetError RetryLater MissingDependency Refused",
    "rrf_design.risk": "risk",
    "rrf_design.testing": "testing",
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
    "Repairer",
    "RetryLater",
    "Rule",
    "TestedDelivery",
    "Tier",
    "Transport",
    "Verification",
    "__version__",
    "acquire",
    "audit",
    "certify",
    "component_criterion",
    "dataset",
    "deliver",
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
    "repairer",
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
    from rrf_design.promises._audits import Audit, audit
    from rrf_design.promises._delivery import TestedDelivery, deliver
    from rrf_design.promises._measure import Measurement, measure
    from rrf_design.promises._pilot import Pilot, pilot
    from rrf_design.questions import Dataset, dataset
    from rrf_design.repairing import Repair, repair
    from rrf_design.tables import ByStructure, DatasetPlan, Delivery, Estimate, Repairer, estimate, repairer

__getattr__, __dir__ = lazy_names(__name__, _HOME)
