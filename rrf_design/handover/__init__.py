"""From a table to answers one can hand over: every item repaired, delivered, ranked for review, and read back."""

from __future__ import annotations

from rrf_design.handover.delivered import Delivery
from rrf_design.handover.estimates import Estimate, estimate
from rrf_design.handover.outputs import write_output
from rrf_design.handover.plans import DatasetPlan, ItemPlan, plan_dataset
from rrf_design.handover.repairing import repair_dataset
from rrf_design.handover.reviews import Reviews, read_reviews, write_reviews
from rrf_design.handover.rows import DeliveredRow
from rrf_design.handover.runs import acquire_dataset, delivery_of
from rrf_design.handover.structures import ByStructure, by_structure, certify_dataset, save_certificates

__all__ = [
    "ByStructure",
    "DatasetPlan",
    "DeliveredRow",
    "Delivery",
    "Estimate",
    "ItemPlan",
    "Reviews",
    "acquire_dataset",
    "by_structure",
    "certify_dataset",
    "delivery_of",
    "estimate",
    "plan_dataset",
    "read_reviews",
    "repair_dataset",
    "save_certificates",
    "write_output",
    "write_reviews",
]
