"""Questions about many items: tables, templates, recipes and data sets.

One row of a table is one item; a recipe says what is asked about it, how the answers must agree,
and who checks.
"""

from __future__ import annotations

from rrf_design.questions._slots import find_slots as find_slots
from rrf_design.questions.answers import RecordedAnswer, RecordedAnswers
from rrf_design.questions.datasets import DataItem, Dataset, ItemClass, dataset
from rrf_design.questions.recipe import Recipe, dumps_recipe, load_recipe

__all__ = [
    "DataItem",
    "Dataset",
    "ItemClass",
    "Recipe",
    "RecordedAnswer",
    "RecordedAnswers",
    "dataset",
    "dumps_recipe",
    "load_recipe",
]
