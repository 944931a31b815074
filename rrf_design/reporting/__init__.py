"""Documents to pages: one self-contained HTML file for a design, a plan, a certificate, a run, a
repair or a scenario.

`write_report` reads a document and writes its page; `pages` and `_charts` are the building blocks.
"""

from __future__ import annotations

from rrf_design.reporting._fieldview import FieldView
from rrf_design.reporting._graph import draw_field
from rrf_design.reporting._scenarios import thumbnail
from rrf_design.reporting.documents import fragments, write_report
from rrf_design.reporting.pages import page, section, table

__all__ = ["FieldView", "draw_field", "fragments", "page", "section", "table", "thumbnail", "write_report"]
