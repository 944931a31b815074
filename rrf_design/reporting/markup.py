"""HTML and SVG that can't be injected into: text is escaped unless it was built here.

Every text of a model, a problem file or a user enters a page through `tag`, which escapes each child that is not
`Markup` and every attribute. Attribute names and tags are given by our own code and checked all the same, so that
no path leads from data to markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9:-]*\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_VOID = frozenset({"meta", "input", "br", "hr", "img"})


class Markup(str):
    """Text that is already HTML or SVG. Only `tag`, `join` and our own constants make it."""

    __slots__ = ()


Child = str | float | None | Iterable["Child"]


def escape(value: object) -> Markup:
    """Text as markup; control and direction-changing characters become visible, so that they can't disguise a page."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(visible(str(value)), quote=True))


def visible(text: str) -> str:
    """Text in which nothing changes how the rest is shown."""
    if text.isprintable():  # most texts of most pages
        return text
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def join(*children: Child) -> Markup:
    """All children one after the other; None is nothing, lists are flattened, text is escaped."""
    parts = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str | int | float):
            parts.append(escape(child))
        else:
            parts.append(join(*child))
    return Markup("".join(parts))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """One element. `class_` is class, `data_x` is data-x; False and None leave an attribute out, True has no value."""
    if not _NAME.match(name):
        raise ValueError(f"not the name of an element: {name!r}")
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.match(name) or name.lower().startswith("on"):
        raise ValueError(f"not an attribute that a page may have: {name!r}")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else escape(value)
    return f' {name}="{text}"'
