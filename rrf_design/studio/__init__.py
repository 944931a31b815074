"""A local page that shows what is in a folder or a store, and asks people: `rrf-design studio`.

    server    who may ask: loopback, a token, Host and Origin, a strict content security policy
    library   what lies there: documents, delivered tables, runs, stores of labels, each with its
              sentence
    index     the rows of one table, to be filtered, searched, sorted and paged
    items     one row: its input, who answered what, and the drawing
    pages     HTML of all of it, from the fragments that static pages are made of
    views     what may be promised, what changed, what money buys, a proof made again
    labels    questions for people, their leases and their labels, in a file of their own
    live      a run while it goes on, read and never written

Nothing here writes to a run, a table or a document. The one thing that is written is a store of
labels, and only by a request that came from the page itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rrf_design._lazy import lazy_names

_HOME = {
    "rrf_design.studio.labels": "LabelStore is_label_store review_file",
    "rrf_design.studio._library": "Library",
    "rrf_design.studio._pages": "export",
    "rrf_design.studio._server": "make_app serve",
}

__all__ = ["LabelStore", "Library", "export", "is_label_store", "make_app", "review_file", "serve"]

if TYPE_CHECKING:
    from rrf_design.studio._library import Library
    from rrf_design.studio._pages import export
    from rrf_design.studio._server import make_app, serve
    from rrf_design.studio.labels import LabelStore, is_label_store, review_file

__getattr__, __dir__ = lazy_names(__name__, _HOME)
