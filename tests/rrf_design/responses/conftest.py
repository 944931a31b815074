"""On a busy machine an example may take long without anything being wrong, so no deadline per example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("responses", deadline=None)
settings.load_profile("responses")
