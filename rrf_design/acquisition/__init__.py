"""Run it live: buy answers, relations and anchors one by one or in batches, and never lose a
cent.
"""

from __future__ import annotations

from rrf_design.acquisition._driver import INTERRUPTED as INTERRUPTED
from rrf_design.acquisition._live import acquire
from rrf_design.acquisition._live import entries_of as entries_of
from rrf_design.acquisition._loop import Acquirer
from rrf_design.acquisition._purchases import Buys, Doubt, Purchase, Settlement
from rrf_design.acquisition.journal import Journal
from rrf_design.acquisition.result import Acquisition, Bought, ItemResult, RunFollower, answer_log, read_run
from rrf_design.acquisition.settings import Mode, Settings, Terms

__all__ = [
    "Acquirer",
    "Acquisition",
    "Bought",
    "Buys",
    "Doubt",
    "ItemResult",
    "Journal",
    "Mode",
    "Purchase",
    "RunFollower",
    "Settings",
    "Settlement",
    "Terms",
    "acquire",
    "answer_log",
    "read_run",
]
