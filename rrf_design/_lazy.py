"""Names of a package that are imported when they are first used.

`import rrf_design` must stay instant, and the checker's process must never load what it doesn't
need: a package lists its public names with the modules they live in, and imports none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package. `homes` says which of its public names live in
    which module, apart by spaces; a name that is its own module's (`rrf_design.risk`) is that
    module.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(home[name])
        value = module if home[name] == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(home)
