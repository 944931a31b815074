"""Documents to pages: one self-contained HTML file for a design, a plan, a certificate, a run, a
repair or a scenario.

`pages` and `charts` are building blocks that any command may use; `write_report` reads a document
and writes its page.
"""

from __future__ import annotations

from rrf_design.reporting._charts import Bar, Series, bar_chart, line_chart, step_chart
from rrf_design.reporting.documents import write_report
from rrf_design.reporting.pages import (
    Card,
    Picture,
    Section,
    bullets,
    callout,
    cards,
    code,
    figure,
    number,
    page,
    prose,
    section,
    table,
)

__all__ = [
    "Bar",
    "Card",
    "Picture",
    "Section",
    "Series",
    "bar_chart",
    "bullets",
    "callout",
    "cards",
    "code",
    "figure",
    "line_chart",
    "number",
    "page",
    "prose",
    "section",
    "step_chart",
    "table",
    "write_report",
]
