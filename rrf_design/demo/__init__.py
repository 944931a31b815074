"""The demonstration's data: questions at the edge of what a very small model can do, and how its
answers are judged.
"""

from __future__ import annotations

from rrf_design.demo.questions import FieldVerdict, Grade, Topic, judge, topics

__all__ = ["FieldVerdict", "Grade", "Topic", "judge", "topics"]
