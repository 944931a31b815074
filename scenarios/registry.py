"""Scenarios by name.

A module is imported only when its scenario is asked for; the order here is that of the index.
"""

from __future__ import annotations

from importlib import import_module

from scenarios.kit.scenario import Scenario

NAMES: tuple[str, ...] = (
    "consistency-truth",
    "anchor-transition",
    "duplicate-saturation",
    "spectral-difficulty",
    "robustness-sweeps",
    "negative-controls",
    "worked-examples",
    "noise-laws",
    "published-replay",
    "paper-audit",
    "real-model",
    "real-model-coder",
    "cross-model",
    "error-directions",
    "acquisition-policies",
    "data-set-promises",
    "one-pass",
    "shared-errors",
    "premise-on-real-answers",
    "relation-error",
    "planner-comparison",
    "benchmark-margin",
    "benchmark-planning",
    "benchmark-repair",
    "benchmark-tables",
    "benchmark-acquisition",
    "benchmark-certificates",
    "benchmark-versions",
    "stress",
    "certificate-ladder",
    "rigour",
    "answer-readings",
    "protection",
    "declared-relations",
    "judges-and-scatter",
)


def names() -> tuple[str, ...]:
    return NAMES


def get(name: str) -> Scenario:
    """The scenario called `name`; InputError with the nearest known name otherwise."""
    if name not in NAMES:
        from rrf_design.errors import InputError
        from rrf_design.files import suggestion

        raise InputError(f"there is no scenario {name!r}{suggestion(name, NAMES)}; `scenario list` shows them all")
    scenario: Scenario = import_module(f"scenarios.{name.replace('-', '_')}").SCENARIO
    return scenario
