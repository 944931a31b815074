"""From a table to answers one can hand over: every item repaired, delivered, ranked for review, and
read back.
"""

from __future__ import annotations

from rrf_design.questions.reviews import Reviews, read_reviews
from rrf_design.tables._engine import repair_dataset
from rrf_design.tables._estimates import Estimate, estimate
from rrf_design.tables._parts import DeliveredParts, repair_parts
from rrf_design.tables._repairer import Repairer, repairer
from rrf_design.tables._runs import delivery_of
from rrf_design.tables._runs import keep_labels as keep_labels
from rrf_design.tables._runs import recorded_run as recorded_run
from rrf_design.tables._structures import (
    ByStructure,
    DatasetPlan,
    ItemPlan,
    by_structure,
    certify_dataset,
    plan_dataset,
    save_certificates,
)
from rrf_design.tables._structures import Speaker as Speaker
from rrf_design.tables.delivered import Delivery, write_output, write_reviews
from rrf_design.tables.rows import Row, Value

__all__ = [
    "ByStructure",
    "DatasetPlan",
    "DeliveredParts",
    "Delivery",
    "Estimate",
    "ItemPlan",
    "Repairer",
    "Reviews",
    "Row",
    "Value",
    "by_structure",
    "certify_dataset",
    "delivery_of",
    "estimate",
    "plan_dataset",
    "read_reviews",
    "repair_dataset",
    "repair_parts",
    "repairer",
    "save_certificates",
    "write_output",
    "write_reviews",
]
