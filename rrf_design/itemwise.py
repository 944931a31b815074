"""One verb for a problem and for a data set: called with a data set, it does for every item what it does for a problem."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

from rrf_design.problem import Problem

Function = TypeVar("Function", bound=Callable[..., Any])


def for_each_item(module: str, name: str) -> Callable[[Function], Function]:
    """Let a function of a problem take a `Dataset` too; `name` in `module` is what is then called."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def verb(problem: Any = None, *arguments: Any, **options: Any) -> Any:
            if not isinstance(problem, Problem):
                from rrf_design.questions.datasets import Dataset

                if isinstance(problem, Dataset):
                    return getattr(import_module(module), name)(problem, *arguments, **options)
            return function(problem, *arguments, **options)

        return cast(Function, verb)

    return decorate
