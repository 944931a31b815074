"""Keys and passwords never leave the process: every text that is stored, printed or raised passes
through here.

What counts as a secret: the value of an environment variable whose name says so, the password of a
store address, what an adapter declares in `secrets`, and strings in the shape of a bearer token or
provider key, wherever from.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from rrf_design.errors import InputError
from rrf_design.texts import json_text

HIDDEN = "[hidden]"
_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_COUNTS = re.compile(r"(?:^|_)(?:max|min|num|n)_(?:\w+_)?tokens$", re.IGNORECASE)
"""How many tokens: a number that a run must keep, and no secret."""
_SHAPES = re.compile(r"\b(?:sk|pk|hf|gsk|xai|ghp)[-_][A-Za-z0-9_\-]{12,}|(?<=[Bb]earer )[A-Za-z0-9._~+/\-]{8,}=*")
_SIGNS = ("earer ", *(f"{name}{dash}" for name in ("sk", "pk", "hf", "xai", "ghp") for dash in "-_"))
"""A text without any of these has nothing in those shapes; looking for them is ten times faster
than the pattern is.
"""
_SETTING = re.compile(r"([^?&=]+)=([^&]*)")
_SHORTEST = 6
"""Shorter values are words ("none", "yes") rather than secrets, and hiding them would garble every
text.
"""


def secret_name(name: str) -> bool:
    """Whether a variable or option of this name holds a secret."""
    return _NAMES.search(name) is not None and _COUNTS.search(name) is None


class Redactor:
    """Replaces every known secret in a text, or in a document on its way to JSON."""

    def __init__(self, extra: Iterable[str] = (), *, environment: Mapping[str, str] | None = None) -> None:
        given = os.environ if environment is None else environment
        self._values = {value for name, value in given.items() if secret_name(name)}
        self.add(extra)

    def add(self, values: Iterable[str]) -> None:
        """Hide these as well from now on."""
        self._values.update(values)
        known = self._values
        self._known = sorted((value for value in known if len(value.strip()) >= _SHORTEST), key=len, reverse=True)
        forms = [(value, quote(value, safe=""), json.dumps(value)[1:-1]) for value in self._known]
        found = [form for group in forms for form in dict.fromkeys(group)]
        parts = [re.escape(form) for form in found]
        self._signs = (*found, *_SIGNS)
        self._pattern = re.compile("|".join([*parts, _SHAPES.pattern]))

    def text(self, text: str) -> str:
        for sign in self._signs:
            if sign in text:
                return self._pattern.sub(HIDDEN, text)
        return text

    def json(self, document: Any) -> str:
        """A document as JSON text without secrets; they are looked for in the text, escaped as JSON
        would have them.
        """
        return self.jsons([document])[0]

    def jsons(self, documents: Iterable[Any]) -> list[str]:
        """Each document as `json` has it."""
        texts = [json_text(document, separators=(",", ":")) for document in documents]
        return [self.text(text) for text in texts]


def password_of(address: str) -> tuple[str, ...]:
    """The passwords inside an address (a store, a server), as they are written and as they are
    meant.

    Everything after the user's name up to the last "@" counts, also where a careless "/" or "#"
    makes it no good address; and every setting behind "?" whose name says so.
    """
    _, _, rest = address.partition("://")
    written = set()
    user, found, _ = rest.rpartition("@")
    if found and ":" in user:
        written.add(user.partition(":")[2])
    for name, value in _SETTING.findall(rest.partition("?")[2]):
        if secret_name(name):
            written.add(value)
    return tuple({form for password in written if password for form in (password, unquote(password))})


def without_password(address: str) -> str:
    """An address that can be shown."""
    for password in sorted(password_of(address), key=len, reverse=True):
        for before, after in ((":", "@"), ("=", "")):
            address = address.replace(f"{before}{password}{after}", f"{before}***{after}")
    return address


def no_secret_inside(documents: Mapping[str, Any], redactor: Redactor) -> None:
    """The journal keeps the problem word for word, so a secret in it would be kept as well."""
    for item, document in documents.items():
        text = json.dumps(document, ensure_ascii=False)
        if redactor.text(text) != text:
            where = f"item {item!r}: " if item else ""
            raise InputError(f"{where}the problem contains a key or password; take it out, the journal would keep it")
